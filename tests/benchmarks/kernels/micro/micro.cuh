// What the microbenchmarks share: checked calls, timing by events, one line for each figure.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                      \
    do {                                                                                 \
        const cudaError_t status_ = (call);                                              \
        if (status_ != cudaSuccess) {                                                    \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(status_)); \
            std::exit(1);                                                                \
        }                                                                                \
    } while (0)

// Median of `runs` launches, after two that do not count.
template <typename Launch> double seconds(Launch launch, int runs = 9)
{
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    for (int k = 0; k < runs + 2; ++k) {
        CHECK(cudaEventRecord(begin));
        launch();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float milliseconds;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        times.push_back(milliseconds);
    }
    std::sort(times.begin() + 2, times.end());
    return times[2 + runs / 2] / 1e3;
}

__global__ void nothing() {}

// Median of `runs` launches, less that of an empty kernel.
template <typename Launch> double net_seconds(Launch launch, int runs = 9)
{
    static const double empty = seconds([] { nothing<<<1, 32>>>(); }, 49);
    return std::max(1e-9, seconds(launch, runs) - empty);
}

static void say(const char *name, double value, const char *unit)
{
    std::printf("%s %.4f %s\n", name, value, unit);
    std::fflush(stdout);
}

__global__ void spin(long long *result, long long cycles)
{
    unsigned long long from, to;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from));
    const long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(to));
    result[0] = clock64() - begin;
    result[1] = to - from;
}

// Word `k` of device memory, once all launches are through.
static double fetch(const long long *device, int k = 0)
{
    CHECK(cudaDeviceSynchronize());
    long long word;
    CHECK(cudaMemcpy(&word, device + k, sizeof word, cudaMemcpyDeviceToHost));
    return static_cast<double>(word);
}

// GHz of the SM clock under this load.
static double sm_clock(long long *result)
{
    spin<<<1, 1>>>(result, 20000000);
    return fetch(result, 0) / fetch(result, 1);
}
