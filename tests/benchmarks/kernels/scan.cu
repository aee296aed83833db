// Inclusive sums of 1024 elements a block, after Hillis and Steele: 10 steps, two barriers each.
#include "bench.cuh"

__global__ void scan(const uint32_t *in, uint32_t *out)
{
    __shared__ uint32_t sums[1024];
    const int thread = threadIdx.x;
    const size_t at = static_cast<size_t>(blockIdx.x) * 1024 + thread;
    sums[thread] = in[at];
    __syncthreads();
    for (int step = 1; step < 1024; step *= 2) {
        const uint32_t other = thread >= step ? sums[thread - step] : 0;
        __syncthreads();
        sums[thread] += other;
        __syncthreads();
    }
    out[at] = sums[thread];
}

int main()
{
    const int blocks = 4096;
    scan<<<blocks, 1024>>>(upload(random_words(blocks * 1024, 1, 100)),
                           zeros<uint32_t>(blocks * 1024));
    return finish();
}
