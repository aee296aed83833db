// Warp-wide operations: shuffles of every kind and width, votes, match, redux, masks.
#include "corpus.h"

__global__ void shuffles(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, value = in[i];
    const int sum = __shfl_up_sync(~0u, value, 3) * 3 + __shfl_down_sync(~0u, value, 5) * 5
                    + __shfl_xor_sync(~0u, value, 9) * 7 + __shfl_sync(~0u, value, value & 31);
    out[i] = sum;
}

__global__ void narrow_shuffles(const float *in, double *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = in[i];
    for (int step = 4; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step, 8);
    const double twice = __shfl_xor_sync(~0u, static_cast<double>(in[i]), 2, 4);
    out[i] = sum + twice + __shfl_sync(~0u, in[i], i, 16);
}

__global__ void partial_mask(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 32 < 20) {
        int value = in[i];
        value += __shfl_sync(0xfffffu, value, (i + 7) % 20);
        out[i] = value;
    } else {
        out[i] = -__shfl_xor_sync(0xfff00000u, in[i], 1);
    }
}

__global__ void votes(const int *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool odd = in[i] & 1;
    unsigned bits = __ballot_sync(~0u, odd);
    bits = bits * 2 + __any_sync(~0u, in[i] == 7);
    bits = bits * 2 + __all_sync(~0u, in[i] < 1000);
    out[i] = bits ^ __popc(__ballot_sync(~0u, in[i] > 500));
}

__global__ void matches(const int *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int same = 0;
    const unsigned equal = __match_any_sync(~0u, in[i] % 5);
    const unsigned wide = __match_any_sync(~0u, static_cast<long long>(in[i] % 3) << 35);
    const unsigned all = __match_all_sync(~0u, i / 32, &same);
    out[i] = equal ^ (wide << 1) ^ (all + same);
}

__global__ void reductions(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __reduce_add_sync(~0u, in[i]) + __reduce_min_sync(~0u, in[i] - 500)
             + __reduce_max_sync(~0u, in[i]) + __reduce_and_sync(~0u, in[i] | 64u)
             + __reduce_or_sync(~0u, static_cast<unsigned>(in[i]))
             + __reduce_xor_sync(~0u, static_cast<unsigned>(in[i]));
}

__global__ void divergent_votes(const int *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool chosen = in[i] % 4 == 1;
    const unsigned members = __ballot_sync(~0u, chosen);
    if (chosen) {
        out[i] = __ballot_sync(members, in[i] & 8) + __shfl_sync(members, i, __ffs(members) - 1);
    } else {
        out[i] = __popc(members);
    }
}

__global__ void lane_masks(unsigned *out)
{
    unsigned below, upto, above, self, lane;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(upto));
    asm("mov.u32 %0, %%lanemask_gt;" : "=r"(above));
    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(self));
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    out[threadIdx.x] = below ^ (upto << 1) ^ (above >> 1) ^ (self + lane);
}

__global__ void warp_barrier(const int *in, int *out)
{
    __shared__ int box[128];
    const int i = threadIdx.x, first = i & ~31;
    box[i] = in[i];
    __syncwarp();
    if (i % 32 < 16) box[i] += box[first + 31 - i % 32];
    __syncwarp();
    out[i] = box[first + (i + 1) % 32];
}

__global__ void aggregated(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] % 5 == 0) {
        const unsigned active = __activemask();
        if ((i & 31) == __ffs(active) - 1) atomicAdd(out, __popc(active));
    }
}

int main()
{
    shuffles<<<2, 96>>>(below(1000, 192), zeros<int>(192));
    narrow_shuffles<<<2, 64>>>(sixteenths(128), zeros<double>(128));
    partial_mask<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    votes<<<2, 64>>>(below(1000, 128), zeros<unsigned>(128));
    matches<<<2, 64>>>(below(1000, 128), zeros<unsigned>(128));
    reductions<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    divergent_votes<<<2, 64>>>(below(1000, 128), zeros<unsigned>(128));
    lane_masks<<<1, 64>>>(zeros<unsigned>(64));
    warp_barrier<<<1, 128>>>(below(1000, 128), zeros<int>(128));
    aggregated<<<3, 96>>>(below(1000, 288), zeros<int>(1));
    return finish();
}
