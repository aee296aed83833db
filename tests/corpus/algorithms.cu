// Small algorithms: histogram, scan, compaction, sparse product, stencil, search, transform, random.
#include "corpus.h"

__global__ void histogram(const int *in, int *bins, int n)
{
    __shared__ int local[64];
    if (threadIdx.x < 64) local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[in[i] % 64], 1);
    __syncthreads();
    if (threadIdx.x < 64 && local[threadIdx.x]) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__global__ void warp_scan(const int *in, int *out, int *sums)
{
    __shared__ int parts[8];
    const int i = threadIdx.x, lane = i & 31, warp = i >> 5;
    int value = in[blockIdx.x * 256 + i];
    for (int step = 1; step < 32; step *= 2) {
        const int below = __shfl_up_sync(~0u, value, step);
        if (lane >= step) value += below;
    }
    if (lane == 31) parts[warp] = value;
    __syncthreads();
    for (int k = 0; k < warp; ++k) value += parts[k];
    out[blockIdx.x * 256 + i] = value;
    if (i == 255) sums[blockIdx.x] = value;
}

__global__ void compaction(const int *in, int *out, int *counts)
{
    __shared__ int places[129];
    const int i = threadIdx.x, at = blockIdx.x * 128 + i;
    const bool kept = in[at] % 3 == 1;
    if (i == 0) places[0] = 0;
    places[i + 1] = kept;
    __syncthreads();
    if (i == 0)
        for (int k = 1; k <= 128; ++k) places[k] += places[k - 1];
    __syncthreads();
    if (kept) out[blockIdx.x * 128 + places[i]] = in[at];
    if (i == 0) counts[blockIdx.x] = places[128];
}

__global__ void sparse_product(const int *starts, const int *columns, const float *values,
                               const float *x, float *y, int rows)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
    if (row >= rows) return;
    float sum = 0;
    for (int k = starts[row] + lane; k < starts[row + 1]; k += 8) sum += values[k] * x[columns[k]];
    for (int step = 4; step > 0; step /= 2) sum += __shfl_down_sync(0xffu << (threadIdx.x & 24), sum, step, 8);
    if (lane == 0) y[row] = sum;
}

__global__ void stencil(const float *in, float *out, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    out[y * width + x] = 0.25f * (in[y * width + x - 1] + in[y * width + x + 1]
                                  + in[(y - 1) * width + x] + in[(y + 1) * width + x]);
}

__global__ void breadth_first_step(const int *starts, const int *targets, int *depth, int *changed,
                                   int now, int n)
{
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= n || depth[node] != now) return;
    for (int k = starts[node]; k < starts[node + 1]; ++k)
        if (atomicCAS(&depth[targets[k]], -1, now + 1) == -1) atomicAdd(changed, 1);
}

__global__ void walsh_transform(int *data)
{
    __shared__ int row[128];
    const int i = threadIdx.x;
    row[i] = data[blockIdx.x * 128 + i];
    for (int step = 1; step < 128; step *= 2) {
        __syncthreads();
        const int a = row[i & ~step], b = row[i | step];
        __syncthreads();
        row[i] = i & step ? a - b : a + b;
    }
    data[blockIdx.x * 128 + i] = row[i];
}

__global__ void fourier(const float2 *in, float2 *out, const float2 *roots)
{
    __shared__ float2 row[64];
    const int i = threadIdx.x;
    row[__brev(i) >> 26] = in[blockIdx.x * 64 + i];
    __syncthreads();
    for (int half = 1; half < 64; half *= 2) {
        const int place = i % (2 * half);
        const float2 a = row[i - place + place % half], b = row[i - place + place % half + half];
        const float2 w = roots[place % half * (32 / half)];
        const float2 turned = make_float2(b.x * w.x - b.y * w.y, b.x * w.y + b.y * w.x);
        __syncthreads();
        row[i] = place < half ? make_float2(a.x + turned.x, a.y + turned.y)
                              : make_float2(a.x - turned.x, a.y - turned.y);
        __syncthreads();
    }
    out[blockIdx.x * 64 + i] = row[i];
}

__global__ void random_walk(const unsigned *seeds, int *out, int steps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long state = seeds[i] | 1ull << 40;
    int x = 0, y = 0;
    for (int k = 0; k < steps; ++k) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        switch (state >> 62) {
        case 0: ++x; break;
        case 1: --x; break;
        case 2: ++y; break;
        default: --y;
        }
    }
    out[i] = x * x + y * y;
}

__global__ void depth_first(const int *left, const int *right, const int *weights, int *out)
{
    int stack[32], top = 0, sum = 0;
    stack[top++] = threadIdx.x;
    while (top) {
        const int node = stack[--top];
        if (node < 0) continue;
        sum = sum * 3 + weights[node];
        if (top < 30) {
            stack[top++] = right[node];
            stack[top++] = left[node];
        }
    }
    out[threadIdx.x] = sum;
}

__global__ void tiled_product(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile_a[8][8], tile_b[8][8];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 8 + y, column = blockIdx.x * 8 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 8) {
        tile_a[y][x] = a[row * n + k + x];
        tile_b[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int j = 0; j < 8; ++j) sum += tile_a[y][j] * tile_b[j][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void upper_case(unsigned char *text, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && text[i] >= 'a' && text[i] <= 'z') text[i] -= 32;
}

__global__ void longest_common(const unsigned char *a, const unsigned char *b, int *out)
{
    __shared__ int now[33], before[33], older[33];
    const int i = threadIdx.x;
    now[i] = before[i] = older[i] = 0;
    if (i == 0) now[32] = before[32] = older[32] = 0;
    __syncthreads();
    for (int diagonal = 0; diagonal < 63; ++diagonal) {
        const int j = diagonal - i;
        if (j >= 0 && j < 32)
            now[i + 1] = a[i] == b[j] ? (j ? older[i] : 0) + 1
                                      : max(before[i], j ? before[i + 1] : 0);
        __syncthreads();
        const int kept = before[i + 1], fresh = now[i + 1];
        __syncthreads();
        older[i + 1] = kept;
        before[i + 1] = fresh;
        __syncthreads();
    }
    out[i] = before[i + 1];
}

__global__ void binary_search(const int *sorted, const int *wanted, int *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sorted[middle] < wanted[i]) low = middle + 1;
        else high = middle;
    }
    out[i] = low;
}

__global__ void row_softmax(const float *in, float *out, int n)
{
    const int lane = threadIdx.x, row = blockIdx.x;
    float largest = -1e30f, sum = 0;
    for (int k = lane; k < n; k += 32) largest = fmaxf(largest, in[row * n + k]);
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    for (int k = lane; k < n; k += 32) sum += expf(in[row * n + k] - largest);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    for (int k = lane; k < n; k += 32) out[row * n + k] = expf(in[row * n + k] - largest) / sum;
}

int main()
{
    const auto ladder = [](int k) { return k * 3; };
    const auto letter = [](int k) { return static_cast<unsigned char>('a' + mixed(k) % 4u); };
    histogram<<<3, 128>>>(below(1000, 1000), zeros<int>(64), 1000);
    warp_scan<<<2, 256>>>(below(1000, 512), zeros<int>(512), zeros<int>(2));
    compaction<<<3, 128>>>(below(1000, 384), zeros<int>(384), zeros<int>(3));
    sparse_product<<<2, 128>>>(filled<int>(31, [](int k) { return k * (k + 1) / 2; }),
                               below(30, 465), sixteenths(465), sixteenths(30), zeros<float>(30), 30);
    stencil<<<dim3(3, 3), dim3(16, 8)>>>(sixteenths(40 * 20), zeros<float>(40 * 20), 40, 20);
    breadth_first_step<<<2, 64>>>(filled<int>(101, ladder), below(100, 300), filled<int>(100, [](int k) {
        return k % 20 == 0 ? 2 : -1;
    }), zeros<int>(1), 2, 100);
    walsh_transform<<<2, 128>>>(below(1000, 256));
    fourier<<<2, 64>>>(filled<float2>(128, [](int k) {
        return make_float2(sixteenth(k), sixteenth(k + 77));
    }), zeros<float2>(128), filled<float2>(32, [](int k) {
        return make_float2(sixteenth(k) / 8, sixteenth(k + 33) / 8);
    }));
    random_walk<<<2, 64>>>(patterns(128), zeros<int>(128), 100);
    const auto child = [](int k) { return 2 * k + 1 < 63 && mixed(k) % 4u ? 2 * k + 1 : -1; };
    depth_first<<<1, 48>>>(filled<int>(63, child), filled<int>(63, [](int k) {
        return 2 * k + 2 < 63 ? 2 * k + 2 : -1;
    }), below(50, 63), zeros<int>(48));
    tiled_product<<<dim3(3, 3), dim3(8, 8)>>>(sixteenths(576), sixteenths(576), zeros<float>(576), 24);
    upper_case<<<3, 48>>>(filled<unsigned char>(140, letter), 140);
    longest_common<<<1, 32>>>(filled<unsigned char>(32, letter), filled<unsigned char>(32, [](int k) {
        return static_cast<unsigned char>('a' + mixed(k + 999) % 4u);
    }), zeros<int>(32));
    binary_search<<<2, 64>>>(filled<int>(200, ladder), below(700, 128), zeros<int>(128), 200);
    row_softmax<<<3, 32>>>(sixteenths(3 * 50), zeros<float>(3 * 50), 50);
    return finish();
}
