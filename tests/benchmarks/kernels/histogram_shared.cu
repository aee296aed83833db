// 256 bins per block in shared memory, merged by global atomics.
#include "bench.cuh"

__global__ void histogram_shared(const uint32_t *values, uint32_t *bins, int count)
{
    __shared__ uint32_t own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        atomicAdd(&own[values[i] & 255], 1u);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

int main()
{
    const int count = 1 << 22;
    const uint32_t *values = upload(random_words(count, 1, 1 << 20));
    histogram_shared<<<528, 256>>>(values, zeros<uint32_t>(256), count);
    return finish();
}
