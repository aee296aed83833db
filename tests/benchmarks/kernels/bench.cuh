// What the programs in this folder share: deterministic inputs, checked calls, device copies.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                           \
    do {                                                                                      \
        const cudaError_t status_ = (call);                                                   \
        if (status_ != cudaSuccess) {                                                         \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
            std::exit(1);                                                                     \
        }                                                                                     \
    } while (0)

// A linear congruential generator (multiplier and increment of Knuth's MMIX).
struct Random {
    uint64_t state;
    uint32_t bits()
    {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<uint32_t>(state >> 33);
    }
    float unit() { return static_cast<float>(bits() & 0xffffff) / 16777216.0f; }
};

inline std::vector<float> random_floats(size_t count, uint64_t seed)
{
    Random random{seed};
    std::vector<float> values(count);
    for (float &value : values) {
        value = random.unit();
    }
    return values;
}

inline std::vector<uint32_t> random_words(size_t count, uint64_t seed, uint32_t below)
{
    Random random{seed};
    std::vector<uint32_t> values(count);
    for (uint32_t &value : values) {
        value = random.bits() % below;
    }
    return values;
}

template <typename T> T *zeros(size_t count)
{
    T *place;
    CHECK(cudaMalloc(&place, count * sizeof(T)));
    CHECK(cudaMemset(place, 0, count * sizeof(T)));
    return place;
}

template <typename T> T *upload(const std::vector<T> &values)
{
    T *place;
    CHECK(cudaMalloc(&place, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(place, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return place;
}

inline int finish()
{
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return 0;
}
