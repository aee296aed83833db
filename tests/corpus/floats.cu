// Single precision: roundings, exact and approximate functions, conversions, NaN and denormals.
#include <cmath>

#include "corpus.h"

__global__ void rounding(const float *x, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float a = x[i] / 3.0f;
    out[i] = __fadd_ru(a, 1e-6f) + __fadd_rd(a, -1e-6f) + __fmul_rz(a, 0.1f) + __fmaf_rd(a, a, 0.7f)
             + __fdiv_ru(a, 1.1f) + __fsqrt_rz(fabsf(a)) + __frcp_rn(a + 20.0f);
}

__global__ void exact_functions(const float *x, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = sqrtf(fabsf(x[i])) + x[i] / 1.7f + fmaf(x[i], 0.3f, 0.1f) + floorf(x[i] * 1.3f)
             + rintf(x[i] * 3.1f) + truncf(x[i]) + fmodf(x[i], 0.7f) + copysignf(2.5f, x[i])
             + roundf(x[i] * 0.9f) + ceilf(x[i]);
}

__global__ void approximate_functions(const float *x, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float a = fabsf(x[i]) + 0.25f;
    out[i] = __expf(x[i] * 0.5f) + __logf(a) + __sinf(x[i]) + __cosf(x[i]) + rsqrtf(a)
             + __fdividef(x[i], a) + __powf(a, 1.5f) + __tanf(0.1f * x[i]);
}

__global__ void library_functions(const float *x, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float a = fabsf(x[i]) + 0.25f;
    out[i] = expf(x[i]) + logf(a) + sinf(x[i] * 1e5f) + cosf(x[i]) + powf(a, 2.3f) + tanhf(x[i])
             + erff(x[i]) + atanf(x[i]) + cbrtf(a) + hypotf(x[i], a) + exp2f(x[i]) + log10f(a);
}

__global__ void to_integer(const float *x, int *out, unsigned *bits)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __float2int_rn(x[i] * 10) + __float2int_ru(x[i]) * 3 + __float2int_rd(x[i]) * 5
             + __float2int_rz(x[i] * 1e10f) + static_cast<int>(__float2ll_rn(x[i] * 1e6f));
    bits[i] = __float2uint_rz(x[i] * 1e3f) ^ __float_as_uint(__int2float_rd(i * 123456789))
              ^ __float_as_uint(__uint2float_ru(0xffffff00u + i))
              ^ __float_as_uint(__ll2float_rz((1ll << 50) * i + 1))
              ^ static_cast<unsigned char>(x[i] + 100);
}

__global__ void special_values(const float *x, float *out, int *kinds)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float zero = x[i] - x[i], odd[] = {zero / zero, 1 / zero, -1 / zero, 1e-40f, -0.0f, x[i]};
    const float a = odd[i % 6], b = odd[(i / 6) % 6];
    out[i] = fminf(a, b) + fmaxf(b, a) * 0.5f + __saturatef(a);
    kinds[i] = isnan(a) + 2 * isinf(b) + 4 * (a < b) + 8 * (a != b) + 16 * !(a >= b) + 32 * signbit(b)
               + 64 * (a * 0.5f > 0);
}

__global__ void denormals(const float *x, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = ldexpf(x[i], -140) * 0.75f + 1e-42f;
}

__global__ void mandelbrot(int *out, int width)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float re = -2.0f + 3.0f * (i % width) / width, im = -1.0f + 2.0f * (i / width) / width;
    float x = 0, y = 0;
    int steps = 0;
    while (x * x + y * y < 4 && steps < 100) {
        const float next = x * x - y * y + re;
        y = 2 * x * y + im;
        x = next;
        ++steps;
    }
    out[i] = steps;
}

int main()
{
    rounding<<<2, 64>>>(sixteenths(128), zeros<float>(128));
    exact_functions<<<2, 64>>>(sixteenths(128), zeros<float>(128));
    approximate_functions<<<2, 64>>>(sixteenths(128), zeros<float>(128));
    library_functions<<<2, 64>>>(sixteenths(128), zeros<float>(128));
    to_integer<<<2, 64>>>(sixteenths(128), zeros<int>(128), zeros<unsigned>(128));
    special_values<<<1, 72>>>(sixteenths(72), zeros<float>(72), zeros<int>(72));
    denormals<<<1, 64>>>(sixteenths(64), zeros<float>(64));
    mandelbrot<<<4, 64>>>(zeros<int>(256), 16);
    return finish();
}
