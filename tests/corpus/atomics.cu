// Atomics on global and shared memory: every operation, 64 bits, float, compare-and-swap loops.
#include "corpus.h"

__global__ void integer_operations(const int *in, int *out, unsigned *bits)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, value = in[i] - 500;
    atomicAdd(&out[0], value);
    atomicSub(&out[1], value);
    atomicMin(&out[2], value);
    atomicMax(&out[3], value);
    atomicAnd(&bits[0], ~(1u << value % 17));
    atomicOr(&bits[1], 1u << (in[i] & 31));
    atomicXor(&bits[2], in[i] * 2654435761u);
    atomicMin(&bits[3], in[i] + 5u);
    atomicMax(&bits[4], in[i] + 5u);
}

__global__ void wide_operations(const unsigned *in, unsigned long long *out, long long *sums)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long value = in[i] * 0x100000001ull;
    atomicAdd(&out[0], value);
    atomicMax(&out[1], value);
    atomicMin(&out[2], value);
    atomicXor(&out[3], value);
    atomicOr(&out[4], 1ull << (in[i] & 63));
    atomicMin(&sums[0], static_cast<long long>(value));
    atomicMax(&sums[1], static_cast<long long>(value));
}

__global__ void wrapping(const int *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicInc(&out[0], 16);
    atomicDec(&out[1], 12);
    if (in[i] % 2) atomicInc(&out[2], 1000000);
}

__global__ void floats(const float *in, float *sum, double *wide)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sum[i & 3], in[i]);
    atomicAdd(&wide[i & 1], static_cast<double>(in[i]));
    atomicAdd_block(&sum[4], 0.5f);
}

__device__ float multiply(float *address, float factor)
{
    int *word = reinterpret_cast<int *>(address), seen = *word, assumed;
    do {
        assumed = seen;
        seen = atomicCAS(word, assumed, __float_as_int(__int_as_float(assumed) * factor));
    } while (seen != assumed);
    return __int_as_float(seen);
}

__global__ void swap_loop(const int *in, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    multiply(&out[i & 1], in[i] % 2 ? 2.0f : 0.5f);
}

__global__ void wide_swap(unsigned long long *out)
{
    unsigned long long seen = out[0], assumed;
    do {
        assumed = seen;
        seen = atomicCAS(&out[0], assumed, assumed + (1ull << 40) + threadIdx.x);
    } while (seen != assumed);
}

__global__ void in_shared(const int *in, int *out)
{
    __shared__ int bins[32];
    __shared__ unsigned long long total;
    __shared__ float mass;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
    if (threadIdx.x == 0) total = 0, mass = 0;
    __syncthreads();
    atomicAdd(&bins[in[i] % 32], 1);
    atomicAdd(&total, static_cast<unsigned long long>(in[i]) << 20);
    atomicAdd(&mass, 0.25f);
    __syncthreads();
    atomicMax(&bins[in[i] % 5], in[i] % 3);
    __syncthreads();
    if (threadIdx.x < 32) out[blockIdx.x * 34 + threadIdx.x] = bins[threadIdx.x];
    if (threadIdx.x == 0) {
        out[blockIdx.x * 34 + 32] = static_cast<int>(total >> 20);
        out[blockIdx.x * 34 + 33] = static_cast<int>(mass * 4);
    }
}

__global__ void used_results(const int *in, int *count, int *marks)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] % 3 == 0) {
        const int place = atomicAdd(count, 1);
        marks[place] = 1;
    }
    atomicExch(&marks[511], 77);
}

__global__ void scopes(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd_system(&out[0], in[i]);
    atomicAdd_block(&out[1 + blockIdx.x], in[i]);
    asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(out + 8), "r"(in[i]) : "memory");
    asm volatile("{ .reg .b32 old; atom.acq_rel.gpu.global.max.s32 old, [%0], %1; }"
                 ::"l"(out + 9), "r"(in[i]) : "memory");
}

int main()
{
    integer_operations<<<4, 96>>>(below(1000, 384), zeros<int>(4),
                                  filled<unsigned>(5, [](int k) { return k == 0 ? ~0u : 100u; }));
    wide_operations<<<4, 64>>>(patterns(256), filled<unsigned long long>(5, [](int k) {
        return k == 2 ? ~0ull : 0ull;
    }), zeros<long long>(2));
    wrapping<<<3, 64>>>(below(1000, 192), zeros<unsigned>(3));
    floats<<<4, 64>>>(sixteenths(256), zeros<float>(5), zeros<double>(2));
    swap_loop<<<3, 48>>>(below(1000, 144), filled<float>(2, [](int) { return 1.0f; }));
    wide_swap<<<3, 40>>>(zeros<unsigned long long>(1));
    in_shared<<<3, 128>>>(below(1000, 384), zeros<int>(102));
    used_results<<<4, 96>>>(below(1000, 384), zeros<int>(1), zeros<int>(512));
    scopes<<<4, 64>>>(below(1000, 256), zeros<int>(10));
    return finish();
}
