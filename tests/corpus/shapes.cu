// Odd shapes: blocks of 48, 33, 1 and 1023 threads, blocks and grids of three dimensions.
#include "corpus.h"

__global__ void warp_and_a_half(const unsigned *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * 3u + blockIdx.x;
}

__global__ void one_too_many(const float *in, float *out)
{
    __shared__ float row[33];
    const int i = blockIdx.x * 33 + threadIdx.x;
    row[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = row[(threadIdx.x + 1) % 33] - row[threadIdx.x];
}

__global__ void lone_threads(const unsigned *in, unsigned *out)
{
    unsigned sum = 0;
    for (unsigned k = 0; k <= blockIdx.x; ++k) sum += in[k];
    out[blockIdx.x] = sum;
}

__global__ void all_but_one(const unsigned *in, unsigned *out)
{
    __shared__ unsigned part[1024];
    const int i = threadIdx.x;
    part[i] = in[blockIdx.x * 1023 + i];
    if (i == 0) part[1023] = 0;
    __syncthreads();
    for (int step = 512; step > 0; step /= 2) {
        if (i < step) part[i] += part[i + step];
        __syncthreads();
    }
    if (i == 0) out[blockIdx.x] = part[0];
}

__global__ void cuboid(unsigned *out)
{
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
    out[i] = threadIdx.x + 16 * threadIdx.y + 256 * threadIdx.z + 4096 * blockIdx.x
             + 65536 * blockIdx.y + 1048576 * blockIdx.z;
}

__global__ void tower(const float *in, float *out)
{
    __shared__ float level[64];
    const int i = blockIdx.y * 64 + threadIdx.z;
    level[threadIdx.z] = in[i];
    __syncthreads();
    const int below = threadIdx.z == 0 ? 0 : threadIdx.z - 1;
    out[i] = 0.5f * (level[threadIdx.z] + level[below]);
}

int main()
{
    warp_and_a_half<<<7, 48>>>(patterns(336), zeros<unsigned>(336));
    one_too_many<<<9, 33>>>(sixteenths(297), zeros<float>(297));
    lone_threads<<<37, 1>>>(patterns(37), zeros<unsigned>(37));
    all_but_one<<<3, 1023>>>(patterns(3069), zeros<unsigned>(3));
    cuboid<<<dim3(3, 2, 4), dim3(5, 3, 7)>>>(zeros<unsigned>(2520));
    tower<<<dim3(1, 5), dim3(1, 1, 64)>>>(sixteenths(320), zeros<float>(320));
    return finish();
}
