// A grid-stride sum, warps reduced by shuffles, one atomic per block.
#include "bench.cuh"

__global__ void reduce_shuffle(const int *values, int *sum, int count)
{
    __shared__ int partial[32];
    int total = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        total += values[i];
    }
    for (int step = 16; step > 0; step /= 2) {
        total += __shfl_down_sync(0xffffffff, total, step);
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) {
        partial[warp] = total;
    }
    __syncthreads();
    if (warp == 0) {
        total = lane < blockDim.x / 32 ? partial[lane] : 0;
        for (int step = 16; step > 0; step /= 2) {
            total += __shfl_down_sync(0xffffffff, total, step);
        }
        if (lane == 0) {
            atomicAdd(sum, total);
        }
    }
}

int main()
{
    const int count = 1 << 23;
    const uint32_t *values = upload(random_words(count, 1, 100));
    reduce_shuffle<<<1056, 256>>>(reinterpret_cast<const int *>(values), zeros<int>(1), count);
    return finish();
}
