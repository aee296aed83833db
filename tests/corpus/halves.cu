// Half precision and bfloat16: scalar, packed, conversions, comparisons, fused, division.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "corpus.h"

__global__ void half_arithmetic(const __half *x, const __half *y, __half *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __half sum = __hadd(x[i], y[i]), difference = __hsub(x[i], y[i]);
    out[i] = __hfma(sum, difference, __hmul(x[i], __float2half(0.125f)));
}

__global__ void half_pairs(const __half2 *x, __half2 *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __half2 scaled = __hfma2(x[i], __float2half2_rn(1.5f), y[i]);
    y[i] = __hadd2(__lowhigh2highlow(scaled), __hneg2(x[i]));
}

__global__ void half_compared(const __half *x, const __half *y, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __hlt(x[i], y[i]) + 2 * __hge(x[i], y[i]) + 4 * __heq(x[i], x[i]) + 8 * __hisnan(y[i]);
}

__global__ void half_converted(const float *in, __half *rounded, float *back, int *whole)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    rounded[i] = __float2half_rn(in[i] * 1.001f);
    back[i] = __half2float(__float2half_rz(in[i] * 3.3f)) + __half2float(__int2half_rn(i * 37));
    whole[i] = __half2int_rd(__float2half(in[i])) * 100 + __half2short_rz(__float2half(-in[i]));
}

__global__ void half_extremes(const __half2 *x, const __half2 *y, __half2 *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __hmax2(__hmin2(x[i], y[i]), __habs2(__hsub2(x[i], y[i])));
}

__global__ void half_shared_sum(const __half *in, float *out)
{
    __shared__ __half row[64];
    const int i = threadIdx.x;
    row[i] = in[blockIdx.x * 64 + i];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += __half2float(row[(i + k) & 63]);
    out[blockIdx.x * 64 + i] = sum;
}

__global__ void bfloat_arithmetic(const float *in, __nv_bfloat16 *out, float *wide)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __nv_bfloat16 x = __float2bfloat16(in[i]), y = __float2bfloat16(0.75f);
    out[i] = __hfma(x, y, __hmul(x, x));
    wide[i] = __bfloat162float(__hadd(x, y)) + __bfloat162float(__float2bfloat16_rz(in[i] * 1.01f));
}

__global__ void bfloat_pairs(const __nv_bfloat162 *x, __nv_bfloat162 *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __hfma2(x[i], __float2bfloat162_rn(2.5f), __hmax2(x[i], __hneg2(x[i])));
}

__global__ void half_atomics(const __half *in, __half2 *sums)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sums[i & 1], __halves2half2(__float2half(0.25f), in[i]));
}

static __half halved(int k) { return __float2half(sixteenth(k)); }

int main()
{
    const auto pair = [](int k) { return __halves2half2(halved(k), halved(k + 5000)); };
    const auto bfloats = [](int k) { return __float2bfloat162_rn(sixteenth(k)); };
    half_arithmetic<<<2, 64>>>(filled<__half>(128, halved), filled<__half>(128, [](int k) {
        return halved(k + 999);
    }), zeros<__half>(128));
    half_pairs<<<2, 48>>>(filled<__half2>(96, pair), filled<__half2>(96, pair));
    half_compared<<<2, 64>>>(filled<__half>(128, halved), filled<__half>(128, [](int k) {
        return k % 9 ? halved(k % 7 ? k + 3 : k) : __float2half(NAN);
    }), zeros<int>(128));
    half_converted<<<2, 64>>>(sixteenths(128), zeros<__half>(128), zeros<float>(128),
                              zeros<int>(128));
    half_extremes<<<1, 64>>>(filled<__half2>(64, pair), filled<__half2>(64, [](int k) {
        return __halves2half2(halved(k + 77), halved(k + 88));
    }), zeros<__half2>(64));
    half_shared_sum<<<2, 64>>>(filled<__half>(128, halved), zeros<float>(128));
    bfloat_arithmetic<<<2, 64>>>(sixteenths(128), zeros<__nv_bfloat16>(128), zeros<float>(128));
    bfloat_pairs<<<1, 64>>>(filled<__nv_bfloat162>(64, bfloats), zeros<__nv_bfloat162>(64));
    half_atomics<<<2, 32>>>(filled<__half>(64, [](int k) { return __float2half(float(k % 5)); }),
                            zeros<__half2>(2));
    return finish();
}
