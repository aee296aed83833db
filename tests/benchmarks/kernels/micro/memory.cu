// Latency and bandwidth of each level of memory, "name value unit" a line.
//
// Per-SM figures are taken with clock64 in one block of 1024 threads, device figures with events.
#include <cstdint>
#include <numeric>

#include "micro.cuh"

enum Kind { CACHED, L2_ONLY, SHARED };

template <Kind kind> __global__ void chase(const uint64_t *ring, long long *result, int steps)
{
    __shared__ uint64_t own[1024];
    const uint64_t *at = ring;
    if (kind == SHARED) {
        for (int k = 0; k < 1024; ++k) {
            own[k] = (k * 7 + 11) % 1024;
        }
        __syncthreads();
    }
    uint64_t place = 0;
    for (int k = 0; kind == CACHED && k < steps; ++k) {
        at = reinterpret_cast<const uint64_t *>(*at);
    }
    const long long begin = clock64();
    for (int k = 0; k < steps; ++k) {
        uint64_t next;
        if (kind == SHARED) {
            place = own[place];
        } else if (kind == CACHED) {
            asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(next) : "l"(at));
            at = reinterpret_cast<const uint64_t *>(next);
        } else {
            asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(next) : "l"(at));
            at = reinterpret_cast<const uint64_t *>(next);
        }
    }
    result[0] = clock64() - begin;
    result[1] = place + reinterpret_cast<uint64_t>(at);
}

// A cycle through all of `bytes`, one element for every `stride` bytes, in random order.
static uint64_t *make_ring(size_t bytes, size_t stride)
{
    char *device;
    CHECK(cudaMalloc(&device, bytes));
    const size_t count = bytes / stride;
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    uint64_t state = 1;
    for (size_t k = count - 1; k > 0; --k) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(order[k], order[(state >> 33) % (k + 1)]);
    }
    std::vector<uint64_t> host(bytes / 8);
    for (size_t k = 0; k < count; ++k) {
        host[order[k] * (stride / 8)] =
            reinterpret_cast<uint64_t>(device + order[(k + 1) % count] * stride);
    }
    CHECK(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice));
    return reinterpret_cast<uint64_t *>(device);
}

template <Kind kind>
static void chain(const char *name, size_t bytes, size_t stride, long long *result, int steps)
{
    uint64_t *ring = make_ring(bytes, stride);
    chase<kind><<<1, 1>>>(ring, result, steps);
    if (kind == L2_ONLY && bytes <= (32u << 20)) {  // once more, now that the L2 holds it
        chase<kind><<<1, 1>>>(ring, result, steps);
        CHECK(cudaDeviceSynchronize());
    }
    say(name, fetch(result) / steps, "cycles");
    CHECK(cudaFree(ring));
}

// ---- one SM's load/store path

template <int STRIDE, int WIDTH>
__global__ void stream_l1(const float *in, float *out, long long *result, int rounds)
{
    const float *at = in + (threadIdx.x % 32) * STRIDE + threadIdx.x / 32 % 4 * 128;
    float sum[4] = {};
    long long begin = 0;
    for (int k = -2; k < rounds; ++k) {
        if (k == 0) {
            __syncthreads();
            begin = clock64();
        }
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            const float *place = at + u * 512;
            if (WIDTH == 4) {
                float a, b, c, d;
                asm volatile("ld.global.ca.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
                             : "l"(place));
                sum[u] += a + b + c + d;
            } else {
                float a;
                asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(a) : "l"(place));
                sum[u] += a;
            }
        }
    }
    __syncthreads();
    result[0] = clock64() - begin;
    out[threadIdx.x] = sum[0] + sum[1] + sum[2] + sum[3];
}

template <int STRIDE, int WIDTH>
static void l1_requests(const char *name, const float *in, float *out, long long *result)
{
    const int rounds = 256;
    stream_l1<STRIDE, WIDTH><<<1, 1024>>>(in, out, result, rounds);
    say(name, fetch(result) / (rounds * 4 * 32), "cycles/request");
}

template <bool STORE, int WIDTH>
__global__ void stream_shared(float *out, long long *result, int stride, int rounds)
{
    __shared__ __align__(16) float own[8192];
    for (int k = threadIdx.x; k < 8192; k += 1024) {
        own[k] = k;
    }
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(own));
    const unsigned at = base + ((threadIdx.x % 32) * stride * 4 * WIDTH) % 32768;
    float sum[4] = {};
    __syncthreads();
    const long long begin = clock64();
    for (int k = 0; k < rounds; ++k) {
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            if (STORE) {
                asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(sum[u]) : "memory");
            } else if (WIDTH == 4) {
                float a, b, c, d;
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
                             : "r"(at));
                sum[u] += a + b + c + d;
            } else {
                float a;
                asm volatile("ld.shared.f32 %0, [%1];" : "=f"(a) : "r"(at));
                sum[u] += a;
            }
        }
    }
    __syncthreads();
    result[0] = clock64() - begin;
    out[threadIdx.x] = sum[0] + sum[1] + sum[2] + sum[3];
}

template <bool STORE, int WIDTH>
static void shared_requests(const char *name, int stride, float *out, long long *result)
{
    const int rounds = 256;
    stream_shared<STORE, WIDTH><<<1, 1024>>>(out, result, stride, rounds);
    say(name, fetch(result) / (rounds * 4 * 32), "cycles/request");
}

// ---- the L2 and DRAM

__global__ void read_all(const float4 *in, float *out, size_t count, int rounds)
{
    float sum = 0;
    const size_t first = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const size_t step = size_t(gridDim.x) * blockDim.x;
    for (int round = 0; round < rounds; ++round) {
        for (size_t i = first; i < count; i += 4 * step) {
            float4 v[4];
#pragma unroll
            for (int u = 0; u < 4; ++u) {
                v[u] = i + u * step < count ? __ldcg(&in[i + u * step]) : float4{};
            }
#pragma unroll
            for (int u = 0; u < 4; ++u) {
                sum += v[u].x + v[u].y + v[u].z + v[u].w;
            }
        }
    }
    if (sum == -1.0f) {
        *out = sum;
    }
}

__global__ void write_all(float4 *out, size_t count)
{
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i < count; i += size_t(gridDim.x) * blockDim.x) {
        out[i] = float4{1, 2, 3, 4};
    }
}

__global__ void read_sectors(const float *in, float *out, size_t count)
{
    // Each lane its own sector: what a scattered access gets.
    float sum = 0;
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i < count; i += size_t(gridDim.x) * blockDim.x) {
        sum += __ldcg(&in[i * 8]);
    }
    if (sum == -1.0f) {
        *out = sum;
    }
}

static void say_bandwidth(const char *what, int megabytes, size_t bytes, double s, double ghz)
{
    char name[64];
    std::snprintf(name, sizeof name, "bandwidth.%s_%d_MB", what, megabytes);
    say(name, bytes / (s * ghz * 1e9), "bytes/cycle");
}

static void bandwidth(int sms, float *sink, double ghz)
{
    float4 *big;
    const size_t whole = 2ull << 30;
    CHECK(cudaMalloc(&big, whole));
    CHECK(cudaMemset(big, 0, whole));
    for (int megabytes : {4, 16, 24, 32, 40, 48, 64, 96, 192, 2048}) {
        const size_t size = size_t(megabytes) << 20;
        const int rounds = megabytes > 200 ? 1 : 8;
        const auto read = [&] { read_all<<<2 * sms, 1024>>>(big, sink, size / 16, rounds); };
        say_bandwidth("read", megabytes, size * rounds, net_seconds(read), ghz);
    }
    for (int blocks : {1, 2, 16, 33, 66, 132}) {
        const size_t size = 16u << 20;
        const auto read = [&] { read_all<<<blocks, 1024>>>(big, sink, size / 16, 4); };
        char what[32];
        std::snprintf(what, sizeof what, "read_by_%d_blocks", blocks);
        say_bandwidth(what, 16, size * 4, net_seconds(read), ghz);
    }
    for (int megabytes : {16, 2048}) {
        const size_t size = size_t(megabytes) << 20;
        const auto write = [&] { write_all<<<2 * sms, 1024>>>(big, size / 16); };
        say_bandwidth("write", megabytes, size, net_seconds(write), ghz);
    }
    const float *words = reinterpret_cast<const float *>(big);
    for (int megabytes : {32, 1024}) {
        const size_t size = size_t(megabytes) << 20;
        const auto read = [&] { read_sectors<<<2 * sms, 1024>>>(words, sink, size / 32); };
        say_bandwidth("read_sectors", megabytes, size, net_seconds(read), ghz);
    }
    CHECK(cudaFree(big));
}

int main()
{
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    const int sms = properties.multiProcessorCount;
    long long *result;
    float *memory;
    CHECK(cudaMalloc(&result, 1024 * sizeof(long long)));
    CHECK(cudaMalloc(&memory, 64u << 20));
    CHECK(cudaMemset(memory, 0, 64u << 20));
    const double ghz = sm_clock(result);
    say("clock.sm", ghz * 1e3, "MHz");
    say("device.sms", sms, "SMs");
    say("device.l2", properties.l2CacheSize, "bytes");
    chain<SHARED>("latency.shared", 8192, 8, result, 4096);
    chain<CACHED>("latency.l1", 8192, 128, result, 4096);
    chain<CACHED>("latency.l1_64_KB", 64 << 10, 128, result, 4096);
    chain<CACHED>("latency.l1_192_KB", 192 << 10, 128, result, 8192);
    chain<CACHED>("latency.l1_240_KB", 240 << 10, 128, result, 8192);
    chain<L2_ONLY>("latency.l2_1_MB", 1 << 20, 128, result, 8192);
    chain<L2_ONLY>("latency.l2_16_MB", 16 << 20, 128, result, 131072);
    chain<L2_ONLY>("latency.l2_32_MB", 32 << 20, 128, result, 262144);
    chain<L2_ONLY>("latency.dram", 1ull << 30, 1 << 12, result, 16384);
    l1_requests<0, 1>("l1.uniform", memory, memory + 65536, result);
    l1_requests<1, 1>("l1.unit", memory, memory + 65536, result);
    l1_requests<4, 4>("l1.unit_v4", memory, memory + 65536, result);
    l1_requests<2, 1>("l1.stride_2", memory, memory + 65536, result);
    l1_requests<4, 1>("l1.stride_4", memory, memory + 65536, result);
    l1_requests<8, 1>("l1.stride_8", memory, memory + 65536, result);
    l1_requests<16, 1>("l1.stride_16", memory, memory + 65536, result);
    l1_requests<32, 1>("l1.stride_32", memory, memory + 65536, result);
    l1_requests<33, 1>("l1.stride_33", memory, memory + 65536, result);
    shared_requests<false, 1>("shared.uniform", 0, memory, result);
    shared_requests<false, 1>("shared.unit", 1, memory, result);
    shared_requests<false, 4>("shared.unit_v4", 1, memory, result);
    shared_requests<false, 1>("shared.stride_2", 2, memory, result);
    shared_requests<false, 1>("shared.stride_8", 8, memory, result);
    shared_requests<false, 1>("shared.stride_32", 32, memory, result);
    shared_requests<true, 1>("shared.store_unit", 1, memory, result);
    shared_requests<true, 1>("shared.store_stride_8", 8, memory, result);
    bandwidth(sms, memory, ghz);
    return 0;
}
