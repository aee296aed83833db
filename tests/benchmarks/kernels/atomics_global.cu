// Atomics straight to 4096 words of global memory, at random.
#include "bench.cuh"

__global__ void atomics_global(const uint32_t *values, uint32_t *bins)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&bins[values[i]], 1u);
}

int main()
{
    const int count = 1 << 20;
    const uint32_t *values = upload(random_words(count, 1, 4096));
    atomics_global<<<count / 256, 256>>>(values, zeros<uint32_t>(4096));
    return finish();
}
