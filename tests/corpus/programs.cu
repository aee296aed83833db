// A program of several kernels: streams, events, pinned and pitched memory, many launches of each.
#include "corpus.h"

__global__ void initialise(float *field, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) field[i] = i % 17 == 0 ? 64.0f : 0.0f;
}

__global__ void diffuse(const float *from, float *to, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float left = i > 0 ? from[i - 1] : 0, right = i < n - 1 ? from[i + 1] : 0;
    to[i] = 0.5f * from[i] + 0.25f * (left + right);
}

__global__ void __maxnreg__(32) column_sums(const float *rows, size_t pitch, float *sums, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int y = 0; y < height; ++y)
        sum += reinterpret_cast<const float *>(reinterpret_cast<const char *>(rows) + y * pitch)[x];
    sums[x] = sum;
}

__global__ void largest(const float *field, float *out, int n)
{
    __shared__ float part[96];
    float most = 0;
    for (int i = threadIdx.x; i < n; i += 96) most = fmaxf(most, field[i]);
    part[threadIdx.x] = most;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 96; ++k) most = fmaxf(most, part[k]);
        *out = most;
    }
}

int main()
{
    const int n = 300, width = 64, height = 9;
    cudaStream_t first, second;
    cudaEvent_t begin, end;
    require(cudaStreamCreate(&first));
    require(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    require(cudaEventCreate(&begin));
    require(cudaEventCreate(&end));
    float *field = sixteenths(n), *other = zeros<float>(n), *most = zeros<float>(1);
    float *rows, *sums = zeros<float>(width), *pinned;
    size_t pitch;
    require(cudaMallocPitch(&rows, &pitch, width * sizeof(float), height));
    require(cudaMallocHost(&pinned, width * height * sizeof(float)));
    for (int k = 0; k < width * height; ++k) pinned[k] = sixteenth(k);
    require(cudaMemcpy2D(rows, pitch, pinned, width * sizeof(float), width * sizeof(float), height,
                         cudaMemcpyHostToDevice));
    initialise<<<5, 64, 0, first>>>(field, n);
    require(cudaEventRecord(begin, first));
    for (int step = 0; step < 20; ++step) {
        diffuse<<<5, 64, 0, first>>>(field, other, n);
        float *swapped = field;
        field = other;
        other = swapped;
    }
    require(cudaEventRecord(end, first));
    column_sums<<<2, 32, 0, second>>>(rows, pitch, sums, height);
    require(cudaStreamWaitEvent(second, end, 0));
    largest<<<1, 96, 0, second>>>(field, most, n);
    require(cudaEventSynchronize(end));
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end));
    return finish();
}
