// A chain of eight dependent loads per thread at random in 32 MB: latency of the L2.
#include "bench.cuh"

__global__ void gather(const uint32_t *next, uint32_t *out)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t at = i * 8;
    for (int k = 0; k < 8; ++k) {
        at = next[at];
    }
    out[i] = at;
}

int main()
{
    const int count = 1 << 23, threads = 1 << 18;
    gather<<<threads / 256, 256>>>(upload(random_words(count, 1, count)),
                                   zeros<uint32_t>(threads));
    return finish();
}
