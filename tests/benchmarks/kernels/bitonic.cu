// Sorts 1024 keys a block in shared memory: 55 steps with a barrier each.
#include "bench.cuh"

__global__ void bitonic(uint32_t *keys)
{
    __shared__ uint32_t own[1024];
    const int thread = threadIdx.x;
    uint32_t *mine = keys + static_cast<size_t>(blockIdx.x) * 1024;
    own[thread] = mine[thread];
    own[thread + 512] = mine[thread + 512];
#pragma unroll 1
    for (int size = 2; size <= 1024; size *= 2) {
#pragma unroll 1
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            const int low = 2 * thread - (thread & (stride - 1)), high = low + stride;
            const bool up = (low & size) == 0;
            const uint32_t a = own[low], b = own[high];
            if ((a > b) == up) {
                own[low] = b;
                own[high] = a;
            }
        }
    }
    __syncthreads();
    mine[thread] = own[thread];
    mine[thread + 512] = own[thread + 512];
}

int main()
{
    const int blocks = 1024;
    bitonic<<<blocks, 512>>>(upload(random_words(blocks * 1024, 1, 1u << 31)));
    return finish();
}
