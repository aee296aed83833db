// Register pressure: long straight code, many live values, spills, launch bounds, block limits.
#include "corpus.h"

template <int n> __device__ __forceinline__ void mix_all(unsigned (&state)[n])
{
#pragma unroll
    for (int round = 0; round < 3; ++round)
#pragma unroll
        for (int k = 0; k < n; ++k) state[k] = state[k] * 5 + (state[(k + 7) % n] ^ (k * round));
}

__global__ void many_registers(const unsigned *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state[96];
#pragma unroll
    for (int k = 0; k < 96; ++k) state[k] = in[(i + k * 3) & 127];
    mix_all(state);
    unsigned sum = 0;
#pragma unroll
    for (int k = 0; k < 96; ++k) sum = sum * 3 + state[k];
    out[i] = sum;
}

__global__ void __launch_bounds__(1024, 2) spilling(const unsigned *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state[48];
#pragma unroll
    for (int k = 0; k < 48; ++k) state[k] = in[(i + k * 5) & 127];
    mix_all(state);
    unsigned sum = 0;
#pragma unroll
    for (int k = 0; k < 48; ++k) sum = sum * 7 + state[k];
    out[i] = sum;
}

__global__ void __launch_bounds__(96, 8) bounded(const unsigned *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned a = in[i], b = ~a;
    for (int k = 0; k < 20; ++k) {
        a = __funnelshift_l(a, b, 7) + k;
        b ^= a >> 3;
    }
    out[i] = a ^ b;
}

__global__ void __block_size__((64, 1, 1)) required_size(const unsigned *in, unsigned *out)
{
    const int i = blockIdx.x * 64 + threadIdx.x;
    out[i] = in[i] + 64;
}

__global__ void unrolled_polynomial(const float *in, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[i] * 0.0625f, sum = 0;
#pragma unroll
    for (int k = 0; k < 200; ++k) {
        sum = fmaf(sum, value, (k % 13) * 0.25f);
        if (k % 50 == 49) value = -value;
    }
    out[i] = sum;
}

int main()
{
    many_registers<<<2, 64>>>(patterns(128), zeros<unsigned>(128));
    spilling<<<2, 64>>>(patterns(128), zeros<unsigned>(128));
    bounded<<<2, 96>>>(patterns(192), zeros<unsigned>(192));
    required_size<<<3, 64>>>(patterns(192), zeros<unsigned>(192));
    unrolled_polynomial<<<2, 64>>>(sixteenths(128), zeros<float>(128));
    return finish();
}
