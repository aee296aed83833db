// Double precision: arithmetic, roundings, square root and division, library functions, conversions.
#include <cmath>

#include "corpus.h"

__global__ void double_arithmetic(const double *x, const double *y, double *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = fma(x[i], y[i], x[i] / (y[i] + 9.0)) - sqrt(fabs(x[i] - y[i]));
}

__global__ void double_rounding(const double *x, double *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __dadd_ru(x[i], 1e-17) - __dmul_rd(x[i], 1.0 / 3) + __dsub_rz(x[i], 0.1)
             + __fma_ru(x[i], x[i], 0.3) + __ddiv_rn(x[i], 7.0) + __dsqrt_rn(fabs(x[i]));
}

__global__ void double_library(const double *x, double *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const double a = fabs(x[i]) + 0.5;
    out[i] = exp(x[i]) + log(a) * sin(x[i]) + cos(x[i]) + pow(a, 1.7) + atan2(x[i], a) + tanh(x[i])
             + cbrt(a);
}

__global__ void double_to_integer(const double *x, long long *out, unsigned *low)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __double2ll_rn(x[i] * 1e9) + __double2ll_ru(x[i]) * 3 + llrint(x[i] * 1e12)
             + static_cast<long long>(floor(x[i])) - static_cast<long long>(ceil(-x[i] / 2));
    low[i] = __double2uint_rz(x[i]) ^ __double2hiint(x[i]) ^ __double2loint(x[i] / 3);
}

__global__ void double_extremes(const double *x, double *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const double endless = x[i] / 0.0;
    out[i] = fmax(fmin(x[i], 3.0), -2.0) + copysign(0.5, x[i]) + (isinf(endless) ? 64 : 0)
             + (signbit(x[i]) ? 128 : 0) + fmod(x[i] * 7, 3.0) + trunc(x[i]);
}

__global__ void nbody(const double *position, double *force, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double sum = 0;
    for (int k = 0; k < n; ++k) {
        const double d = position[k] - position[i], square = d * d + 0.01;
        sum += d / (square * sqrt(square));
    }
    force[i] = sum;
}

int main()
{
    const auto some = [](int k) { return sixteenth(k) + k * 1e-7; };
    double_arithmetic<<<2, 64>>>(filled<double>(128, some), filled<double>(128, [](int k) {
        return sixteenth(k + 500) / 3.0;
    }), zeros<double>(128));
    double_rounding<<<2, 64>>>(filled<double>(128, some), zeros<double>(128));
    double_library<<<2, 64>>>(filled<double>(128, some), zeros<double>(128));
    double_to_integer<<<2, 64>>>(filled<double>(128, some), zeros<long long>(128),
                                 zeros<unsigned>(128));
    double_extremes<<<2, 64>>>(filled<double>(128, some), zeros<double>(128));
    nbody<<<2, 48>>>(filled<double>(90, some), zeros<double>(90), 90);
    return finish();
}
