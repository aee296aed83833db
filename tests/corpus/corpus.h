// What the programs of the corpus share: buffers filled by a fixed rule, checksums at the end.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

// A 32-bit number made from `k`, the same on every machine.
inline unsigned mixed(unsigned k)
{
    k = (k + 0x9e3779b9u) * 0x85ebca6bu;
    k ^= k >> 13;
    k *= 0xc2b2ae35u;
    return k ^ (k >> 16);
}

inline void require(cudaError_t status)
{
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
    std::exit(EXIT_FAILURE);
}

inline struct { void *device; size_t bytes; } allocated[64];
inline int allocations;

// `n` elements on the device, the k-th of them make(k).
template <class T, class Make> T *filled(int n, Make make)
{
    const size_t bytes = sizeof(T) * n;
    T *host = static_cast<T *>(std::malloc(bytes)), *device;
    for (int k = 0; k < n; ++k) host[k] = make(k);
    require(cudaMalloc(&device, bytes));
    require(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    std::free(host);
    allocated[allocations++] = {device, bytes};
    return device;
}

template <class T> T *zeros(int n)
{
    T *device;
    require(cudaMalloc(&device, sizeof(T) * n));
    require(cudaMemset(device, 0, sizeof(T) * n));
    allocated[allocations++] = {device, sizeof(T) * n};
    return device;
}

// Any 32-bit pattern; whole numbers below `limit`; sixteenths in [-8, 8), whose sums are exact.
inline unsigned *patterns(int n) { return filled<unsigned>(n, [](int k) { return mixed(k); }); }
inline int *below(int limit, int n)
{
    return filled<int>(n, [limit](int k) { return static_cast<int>(mixed(k) % limit); });
}
inline float sixteenth(int k) { return (static_cast<int>(mixed(k) % 256u) - 128) / 16.0f; }
inline float *sixteenths(int n) { return filled<float>(n, sixteenth); }

// Waits, copies each buffer back and prints its FNV-1a checksum.
inline int finish()
{
    require(cudaGetLastError());
    require(cudaDeviceSynchronize());
    for (int i = 0; i < allocations; ++i) {
        const size_t bytes = allocated[i].bytes;
        unsigned char *host = static_cast<unsigned char *>(std::malloc(bytes));
        require(cudaMemcpy(host, allocated[i].device, bytes, cudaMemcpyDeviceToHost));
        unsigned long long sum = 0xcbf29ce484222325ull;
        for (size_t k = 0; k < bytes; ++k) sum = (sum ^ host[k]) * 0x100000001b3ull;
        std::printf("%d %zu %016llx\n", i, bytes, sum);
        std::free(host);
    }
    return 0;
}
