// Atomics on few and many words, and what launches and blocks cost, "name value unit" a line.
#include "micro.cuh"

enum Spread { SAME, CONSECUTIVE, RANDOM_4096, RANDOM_256, SECTOR_EACH };

template <Spread spread> __device__ unsigned bin(unsigned i, unsigned k)
{
    const unsigned random = (i * 2654435761u + k * 40503u) * 2246822519u >> 8;
    switch (spread) {
    case SAME: return 0;
    case CONSECUTIVE: return i;
    case RANDOM_4096: return random & 4095;
    case RANDOM_256: return random & 255;
    default: return i * 8;
    }
}

template <Spread spread> __global__ void add_global(unsigned *bins, int rounds)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < rounds; ++k) {
        asm volatile("red.global.add.u32 [%0], 1;" ::"l"(bins + bin<spread>(i, k)) : "memory");
    }
}

template <Spread spread> __global__ void add_shared(unsigned *out, long long *result, int rounds)
{
    __shared__ unsigned bins[4096];
    for (int k = threadIdx.x; k < 4096; k += blockDim.x) {
        bins[k] = 0;
    }
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(bins));
    __syncthreads();
    const long long begin = clock64();
    for (int k = 0; k < rounds; ++k) {
        const unsigned at = base + (bin<spread>(threadIdx.x, k) & 4095) * 4;
        asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(at) : "memory");
    }
    __syncthreads();
    result[0] = clock64() - begin;
    out[threadIdx.x] = bins[threadIdx.x];
}

__global__ void atomic_chain(unsigned *global, long long *result, int steps)
{
    __shared__ unsigned own;
    unsigned value = 0;
    long long begin = clock64();
    for (int k = 0; k < steps; ++k) {
        value = atomicAdd(global + (value >> 31), 1u);
    }
    result[0] = clock64() - begin;
    own = value;
    begin = clock64();
    for (int k = 0; k < steps; ++k) {
        value = atomicAdd(&own + (value >> 31), 1u);
    }
    result[1] = clock64() - begin;
    *global = value;
}

template <Spread spread>
static void global_atomics(const char *name, int sms, double ghz, unsigned *bins)
{
    const int rounds = 16, threads = 2 * sms * 1024;
    const double s = net_seconds([&] { add_global<spread><<<2 * sms, 1024>>>(bins, rounds); });
    say(name, double(threads) * rounds / (s * ghz * 1e9), "lanes/cycle");
}

template <Spread spread>
static void shared_atomics(const char *name, unsigned *bins, long long *result)
{
    const int rounds = 128;
    add_shared<spread><<<1, 1024>>>(bins, result, rounds);
    say(name, fetch(result) / (rounds * 32), "cycles/request");
}

static void atomics(int sms, double ghz, unsigned *bins, long long *result)
{
    atomic_chain<<<1, 1>>>(bins, result, 512);
    say("latency.atomic_global", fetch(result, 0) / 512.0, "cycles");
    say("latency.atomic_shared", fetch(result, 1) / 512.0, "cycles");
    global_atomics<SAME>("atomics.global_same", sms, ghz, bins);
    global_atomics<CONSECUTIVE>("atomics.global_consecutive", sms, ghz, bins);
    global_atomics<RANDOM_4096>("atomics.global_random_4096", sms, ghz, bins);
    global_atomics<RANDOM_256>("atomics.global_random_256", sms, ghz, bins);
    global_atomics<SECTOR_EACH>("atomics.global_sector_each", sms, ghz, bins);
    shared_atomics<SAME>("atomics.shared_same", bins, result);
    shared_atomics<CONSECUTIVE>("atomics.shared_consecutive", bins, result);
    shared_atomics<RANDOM_4096>("atomics.shared_random_4096", bins, result);
    shared_atomics<RANDOM_256>("atomics.shared_random_256", bins, result);
    shared_atomics<SECTOR_EACH>("atomics.shared_stride_8", bins, result);
}

__global__ void start_and_end(long long *result)
{
    if (threadIdx.x == 0) {
        result[blockIdx.x & 1023] = clock64();
    }
}

static void launches(int sms, double ghz, long long *result)
{
    say("launch.nothing", 1e6 * seconds([] { nothing<<<1, 32>>>(); }, 99), "us");
    say("launch.one_wave", 1e6 * seconds([&] { nothing<<<2 * sms, 1024>>>(); }, 99), "us");
    for (int threads : {32, 128, 256, 1024}) {
        const int blocks = 1 << 18;
        char name[64];
        std::snprintf(name, sizeof name, "launch.blocks_of_%d", threads);
        const double empty = net_seconds([&] { nothing<<<blocks, threads>>>(); });
        say(name, empty * ghz * 1e9 * sms / blocks, "cycles/block/sm");
        std::snprintf(name, sizeof name, "launch.storing_blocks_of_%d", threads);
        const double storing = net_seconds([&] { start_and_end<<<blocks, threads>>>(result); });
        say(name, storing * ghz * 1e9 * sms / blocks, "cycles/block/sm");
    }
}

int main()
{
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    const int sms = properties.multiProcessorCount;
    long long *result;
    unsigned *bins;
    CHECK(cudaMalloc(&result, 1024 * sizeof(long long)));
    CHECK(cudaMalloc(&bins, 64u << 20));
    CHECK(cudaMemset(bins, 0, 64u << 20));
    const double ghz = sm_clock(result);
    atomics(sms, ghz, bins, result);
    launches(sms, ghz, result);
    return 0;
}
