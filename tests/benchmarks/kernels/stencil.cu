// Five points of a plane; neighbours come out of the L1.
#include "bench.cuh"

__global__ void stencil(const float *in, float *out, int size)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < size - 1 && y < size - 1) {
        const int at = y * size + x;
        out[at] = 0.5f * in[at] +
                  0.125f * (in[at - 1] + in[at + 1] + in[at - size] + in[at + size]);
    }
}

int main()
{
    const int size = 2048;
    const float *in = upload(random_floats(size * size, 1));
    stencil<<<dim3(size / 32, size / 8), dim3(32, 8)>>>(in, zeros<float>(size * size), size);
    return finish();
}
