// A tree in shared memory with a barrier per level, half as many threads at each.
#include "bench.cuh"

__global__ void reduce_shared(const float *values, float *sums)
{
    __shared__ float tree[512];
    const int thread = threadIdx.x;
    const size_t first = static_cast<size_t>(blockIdx.x) * 1024;
    tree[thread] = values[first + thread] + values[first + 512 + thread];
    __syncthreads();
    for (int half = 256; half > 0; half /= 2) {
        if (thread < half) {
            tree[thread] += tree[thread + half];
        }
        __syncthreads();
    }
    if (thread == 0) {
        sums[blockIdx.x] = tree[0];
    }
}

int main()
{
    const int blocks = 8192;
    reduce_shared<<<blocks, 512>>>(upload(random_floats(blocks * 1024, 1)), zeros<float>(blocks));
    return finish();
}
