// By way of a padded tile in shared memory: no bank conflicts.
#include "bench.cuh"

__global__ void transpose_padded(const float *in, float *out, int size)
{
    __shared__ float tile[32][33];
    const int x = threadIdx.x, column = blockIdx.x * 32, row = blockIdx.y * 32;
    for (int y = threadIdx.y; y < 32; y += blockDim.y) {
        tile[y][x] = in[static_cast<size_t>(row + y) * size + column + x];
    }
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += blockDim.y) {
        out[static_cast<size_t>(column + y) * size + row + x] = tile[x][y];
    }
}

int main()
{
    const int size = 2048;
    const float *in = upload(random_floats(size * size, 1));
    transpose_padded<<<dim3(size / 32, size / 32), dim3(32, 8)>>>(in, zeros<float>(size * size),
                                                                  size);
    return finish();
}
