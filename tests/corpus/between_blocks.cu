// Blocks that meet: spin lock, last block reduces, flags handed on, whole-grid barrier.
#include <cooperative_groups.h>

#include "corpus.h"

namespace cg = cooperative_groups;

__global__ void spin_lock(int *lock, int *value)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) __nanosleep(20);
        __threadfence();
        *reinterpret_cast<volatile int *>(value) += static_cast<int>(blockIdx.x) + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

__global__ void last_block(const int *in, int *part, unsigned *arrived, int *out)
{
    __shared__ bool last;
    __shared__ int row[64];
    row[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int k = 0; k < 64; ++k) sum += row[k];
        part[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(arrived, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int sum = 0;
        for (unsigned k = 0; k < gridDim.x; ++k) sum += reinterpret_cast<volatile int *>(part)[k];
        *out = sum;
    }
}

__global__ void hand_on(volatile int *flags, int *out)
{
    const int b = blockIdx.x;
    if (threadIdx.x == 0) {
        while (b > 0 && flags[b - 1] == 0) {}
        __threadfence();
        out[b] = b == 0 ? 1 : out[b - 1] * 3 + b;
        __threadfence();
        flags[b] = 1;
    }
}

__global__ void grid_barrier(int *data, int n)
{
    cg::grid_group grid = cg::this_grid();
    const int i = static_cast<int>(grid.thread_rank());
    for (int step = 1; step < n; step *= 2) {
        const int other = data[(i + step) % n];
        grid.sync();
        data[i] += other;
        grid.sync();
    }
}

int main()
{
    spin_lock<<<8, 32>>>(zeros<int>(1), zeros<int>(1));
    last_block<<<6, 64>>>(below(1000, 384), zeros<int>(6), zeros<unsigned>(1), zeros<int>(1));
    hand_on<<<8, 32>>>(zeros<int>(8), zeros<int>(8));
    int *data = below(1000, 256), n = 256;
    void *arguments[] = {&data, &n};
    require(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(grid_barrier), dim3(4), dim3(64),
                                        arguments, 0, 0));
    return finish();
}
