// Reads along rows, writes along columns: 32 sectors for each store of a warp.
#include "bench.cuh"

__global__ void transpose_naive(const float *in, float *out, int size)
{
    const int x = blockIdx.x * 32 + threadIdx.x;
    for (int y = blockIdx.y * 32 + threadIdx.y; y < blockIdx.y * 32 + 32; y += blockDim.y) {
        out[static_cast<size_t>(x) * size + y] = in[static_cast<size_t>(y) * size + x];
    }
}

int main()
{
    const int size = 2048;
    const float *in = upload(random_floats(size * size, 1));
    transpose_naive<<<dim3(size / 32, size / 32), dim3(32, 8)>>>(in, zeros<float>(size * size),
                                                                 size);
    return finish();
}
