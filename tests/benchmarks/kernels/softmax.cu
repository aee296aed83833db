// A block for each row of 1024: maximum, sum of exponentials, quotient.
#include "bench.cuh"

template <typename Join> __device__ float over_block(float value, float *partial, Join join)
{
    for (int step = 16; step > 0; step /= 2) {
        value = join(value, __shfl_xor_sync(0xffffffff, value, step));
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        partial[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = partial[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp) {
        value = join(value, partial[warp]);
    }
    return value;
}

__global__ void softmax(const float *in, float *out)
{
    __shared__ float partial[8];
    const size_t row = static_cast<size_t>(blockIdx.x) * 1024;
    float value[4];
    float most = -1e30f;
    for (int k = 0; k < 4; ++k) {
        value[k] = in[row + k * 256 + threadIdx.x];
        most = fmaxf(most, value[k]);
    }
    most = over_block(most, partial, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0.0f;
    for (int k = 0; k < 4; ++k) {
        value[k] = __expf(value[k] - most);
        sum += value[k];
    }
    sum = over_block(sum, partial, [](float a, float b) { return a + b; });
    for (int k = 0; k < 4; ++k) {
        out[row + k * 256 + threadIdx.x] = value[k] / sum;
    }
}

int main()
{
    const int rows = 4096;
    softmax<<<rows, 256>>>(upload(random_floats(rows * 1024, 1)), zeros<float>(rows * 1024));
    return finish();
}
