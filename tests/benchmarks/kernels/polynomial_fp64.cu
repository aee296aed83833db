// Horner's rule in double precision, 64 terms: one dependent chain.
#include "bench.cuh"

__global__ void polynomial_fp64(const float *in, double *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const double x = in[i];
    double sum = 1.0;
    for (int k = 64; k > 0; --k) {
        sum = sum * x + 1.0 / k;
    }
    out[i] = sum;
}

int main()
{
    const int count = 1 << 20;
    polynomial_fp64<<<count / 256, 256>>>(upload(random_floats(count, 1)), zeros<double>(count));
    return finish();
}
