// Shared memory: dynamic, static beside dynamic, several types carved from one block, opted in.
#include "corpus.h"

__global__ void reversed(const int *in, int *out)
{
    extern __shared__ int box[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    box[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = box[blockDim.x - 1 - threadIdx.x];
}

__global__ void static_and_dynamic(const float *in, float *out)
{
    __shared__ float ends[2];
    extern __shared__ float row[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    row[threadIdx.x] = in[i];
    if (threadIdx.x == 0) ends[0] = in[i];
    if (threadIdx.x == blockDim.x - 1) ends[1] = in[i];
    __syncthreads();
    out[i] = row[threadIdx.x ^ 1] + ends[0] * ends[1];
}

__global__ void carved(const int *in, double *out, int n)
{
    extern __shared__ double weights[];
    int *keys = reinterpret_cast<int *>(weights + n);
    unsigned char *marks = reinterpret_cast<unsigned char *>(keys + n);
    const int i = threadIdx.x;
    keys[i] = in[blockIdx.x * n + i] % n;
    weights[i] = 0.25 * i;
    marks[i] = static_cast<unsigned char>(i * 7);
    __syncthreads();
    out[blockIdx.x * n + i] = weights[keys[i]] + marks[keys[n - 1 - i]];
}

__global__ void transposed(const float *in, float *out, int n)
{
    __shared__ float tile[16][17];
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    out[(blockIdx.x * 16 + threadIdx.y) * n + blockIdx.y * 16 + threadIdx.x]
        = tile[threadIdx.x][threadIdx.y];
}

__global__ void opted_in(const int *in, int *out)
{
    extern __shared__ int wide[];
    for (int k = threadIdx.x; k < 16384; k += blockDim.x) wide[k] = in[k & 255] + k;
    __syncthreads();
    int sum = 0;
    for (int k = threadIdx.x; k < 16384; k += 997) sum += wide[16383 - k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void conflicting(const int *in, int *out)
{
    __shared__ int bank[1024];
    const int i = threadIdx.x;
    for (int k = 0; k < 32; ++k) bank[(i * 32 + k) & 1023] = in[(i + k) & 31];
    __syncthreads();
    int sum = 0;
    for (int k = 0; k < 32; ++k) sum += bank[(i + k * 33) & 1023];
    out[i] = sum;
}

int main()
{
    reversed<<<4, 96, 96 * sizeof(int)>>>(below(999, 384), zeros<int>(384));
    static_and_dynamic<<<3, 64, 64 * sizeof(float)>>>(sixteenths(192), zeros<float>(192));
    carved<<<2, 50, 50 * 13>>>(below(5000, 100), zeros<double>(100), 50);
    transposed<<<dim3(3, 3), dim3(16, 16)>>>(sixteenths(48 * 48), zeros<float>(48 * 48), 48);
    require(cudaFuncSetAttribute(opted_in, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    opted_in<<<2, 128, 65536>>>(below(77, 256), zeros<int>(256));
    conflicting<<<1, 32>>>(below(77, 32), zeros<int>(32));
    return finish();
}
