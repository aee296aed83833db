// Neighbouring lanes eight elements apart: every lane has a sector of its own.
#include "bench.cuh"

__global__ void saxpy_strided(float factor, const float *x, float *y, int count, int stride)
{
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;
    if (i < count) {
        y[i] = factor * x[i] + y[i];
    }
}

int main()
{
    const int count = 1 << 22, stride = 8;
    const float *x = upload(random_floats(count, 1));
    saxpy_strided<<<count / stride / 256, 256>>>(1.5f, x, upload(random_floats(count, 2)), count,
                                                 stride);
    return finish();
}
