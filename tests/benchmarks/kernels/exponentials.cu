// Exponentials and logarithms: the units for transcendental functions.
#include "bench.cuh"

__global__ void exponentials(const float *in, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[i];
    for (int k = 0; k < 32; ++k) {
        value = __logf(__expf(value) + 1.0f);
    }
    out[i] = value;
}

int main()
{
    const int count = 1 << 20;
    exponentials<<<count / 256, 256>>>(upload(random_floats(count, 1)), zeros<float>(count));
    return finish();
}
