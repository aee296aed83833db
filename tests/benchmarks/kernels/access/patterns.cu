// One kernel for each way of reaching memory, every one launched once, with a tail.
#include "../bench.cuh"

__device__ int thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void coalesced(const float *in, float *out, int n)
{
    const int i = thread();
    if (i < n) out[i] = in[i];
}

__global__ void strided(const float *in, float *out, int n)
{
    const int i = thread();
    if (i < n) out[i] = in[i * 3];
}

__global__ void misaligned(const float *in, float *out, int n)
{
    const int i = thread();
    if (i < n) out[i + 1] = in[i + 5];
}

__global__ void reversed(const float *in, float *out, int n)
{
    const int i = thread();
    if (i < n) out[n - 1 - i] = in[n - 1 - i];
}

__global__ void permuted(const float *in, float *out, int n)
{
    const int i = thread();
    if (i < n) out[i ^ 21] = in[(i * 37) & 65535];
}

__global__ void narrow(const unsigned char *in, unsigned char *out, int n)
{
    const int i = thread();
    if (i < n) out[i * 5] = in[i + 3];
}

__global__ void vectors(const float4 *in, float4 *out, int n)
{
    const int i = thread();
    if (i < n) {
        const float4 value = in[i];
        out[i] = make_float4(value.w, value.z, value.y, value.x);
    }
}

// Two of four components are used: ptxas loads these alone.
__global__ void vectors_in_part(const float4 *in, float *out, int n)
{
    const int i = thread();
    if (i < n) {
        const float4 value = in[i];
        out[i] = value.x + value.z;
    }
}

__global__ void broadcast(const float *in, float *out, int n)
{
    const int i = thread();
    if (i < n) out[i] = in[blockIdx.x] + in[7];
}

__global__ void divergent(const float *in, float *out, int n)
{
    const int i = thread();
    if (i >= n) return;
    if (i % 3 == 0) {
        out[i] = in[i] * 2.0f;
    } else if (i % 3 == 1) {
        out[i] = sinf(in[i * 2]);
    } else {
        out[i] = 1.0f;
    }
}

__global__ void predicated(const float *in, float *out, int n)
{
    const int i = thread();
    float value = 0.0f;
    if (i < n && (i & 5) != 4) value = in[i];
    if (value > 0.5f) out[i] = value;
}

// Each lane makes as many rounds as its data says.
__global__ void uneven_rounds(const unsigned *rounds, const float *in, float *out, int n)
{
    const int i = thread();
    if (i >= n) return;
    float sum = 0.0f;
    for (unsigned k = 0; k < rounds[i]; ++k) sum += in[i + k * 32];
    out[i] = sum;
}

__global__ void atomics(const unsigned *in, unsigned *out, float *total, int n)
{
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0.0f;
    __syncthreads();
    const int i = thread();
    if (i < n) {
        atomicAdd(&out[in[i] & 1023], 1u);
        atomicAdd(&sum, 1.0f);
    }
    __syncthreads();
    if (threadIdx.x == 0) total[blockIdx.x] = sum;
}

__global__ void shared_columns(const float *in, float *out, int n)
{
    __shared__ float tile[32][32];
    const int x = threadIdx.x & 31, y = threadIdx.x >> 5, i = thread();
    for (int row = y; row < 32; row += 8) tile[row][x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    if (i < n) out[i] = tile[x][y] + tile[y][5];
}

__global__ void shared_pairs(const float2 *in, float2 *out, int n)
{
    __shared__ float2 tile[256];
    const int i = thread();
    tile[threadIdx.x] = i < n ? in[i] : make_float2(0.0f, 0.0f);
    __syncthreads();
    if (i < n) out[i] = tile[threadIdx.x ^ 16];
}

// Each lane reads neighbouring words.
__global__ void shared_runs(const float *in, float *out, int n)
{
    __shared__ __align__(16) float tile[1024];
    const int i = thread();
    for (int k = 0; k < 4; ++k) tile[threadIdx.x + 256 * k] = i < n ? in[i] : 0.0f;
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 4; ++k) sum += tile[threadIdx.x * 4 + k];
    if (i < n) out[i] = sum;
}

int main()
{
    const int n = 65536 - 45, threads = 256, blocks = (n + threads - 1) / threads;
    const float *in = upload(random_floats(4 * 65536, 1));
    const unsigned *words = upload(random_words(65536, 2, 7));
    float *out = zeros<float>(5 * 65536);
    const float4 *quads = reinterpret_cast<const float4 *>(in);
    coalesced<<<blocks, threads>>>(in, out, n);
    strided<<<blocks, threads>>>(in, out, n);
    misaligned<<<blocks, threads>>>(in, out, n);
    reversed<<<blocks, threads>>>(in, out, n);
    permuted<<<blocks, threads>>>(in, out, n);
    narrow<<<blocks, threads>>>(reinterpret_cast<const unsigned char *>(in),
                                reinterpret_cast<unsigned char *>(out), n);
    vectors<<<blocks, threads>>>(quads, reinterpret_cast<float4 *>(out), n);
    vectors_in_part<<<blocks, threads>>>(quads, out, n);
    broadcast<<<blocks, threads>>>(in, out, n);
    divergent<<<blocks, threads>>>(in, out, n);
    predicated<<<blocks, threads>>>(in, out, n);
    uneven_rounds<<<blocks, threads>>>(words, in, out, n);
    atomics<<<blocks, threads>>>(words, zeros<unsigned>(1024), out, n);
    shared_columns<<<blocks, threads>>>(in, out, n);
    shared_pairs<<<blocks, threads>>>(reinterpret_cast<const float2 *>(in),
                                      reinterpret_cast<float2 *>(out), n);
    shared_runs<<<blocks, threads>>>(in, out, n);
    return finish();
}
