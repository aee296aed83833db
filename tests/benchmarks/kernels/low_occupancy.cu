// 100 KB of shared memory a block: two blocks of 64 threads on an SM, latencies in the open.
#include "bench.cuh"

__global__ void low_occupancy(const float *in, float *out, int rounds)
{
    extern __shared__ float table[];
    const int thread = threadIdx.x;
    for (int k = thread; k < 8192; k += 64) {
        table[k] = in[k];
    }
    __syncthreads();
    float value = thread;
    int at = thread;
    for (int k = 0; k < rounds; ++k) {
        value = value * 0.5f + table[at];
        at = (at * 5 + 64) & 8191;
    }
    out[blockIdx.x * 64 + thread] = value;
}

int main()
{
    const int blocks = 528, bytes = 100 * 1024;
    CHECK(cudaFuncSetAttribute(low_occupancy, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    low_occupancy<<<blocks, 64, bytes>>>(upload(random_floats(8192, 1)), zeros<float>(blocks * 64),
                                         1000);
    return finish();
}
