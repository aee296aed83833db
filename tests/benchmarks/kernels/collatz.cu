// Integer arithmetic in loops of different length for each lane.
#include "bench.cuh"

__global__ void collatz(uint32_t *steps)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t value = i + 1;
    uint32_t count = 0;
    while (value != 1) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        ++count;
    }
    steps[i] = count;
}

int main()
{
    const int count = 1 << 19;
    collatz<<<count / 128, 128>>>(zeros<uint32_t>(count));
    return finish();
}
