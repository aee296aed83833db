// A warp for each row of 768, eight rows in a block: no barrier.
#include "bench.cuh"

__global__ void layernorm(const float *in, const float *gain, const float *bias, float *out)
{
    const int lane = threadIdx.x % 32;
    const size_t row = (static_cast<size_t>(blockIdx.x) * 8 + threadIdx.x / 32) * 768;
    float value[24];
    float sum = 0.0f;
    for (int k = 0; k < 24; ++k) {
        value[k] = in[row + k * 32 + lane];
        sum += value[k];
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    }
    const float mean = sum / 768.0f;
    float squares = 0.0f;
    for (int k = 0; k < 24; ++k) {
        squares += (value[k] - mean) * (value[k] - mean);
    }
    for (int step = 16; step > 0; step /= 2) {
        squares += __shfl_xor_sync(0xffffffff, squares, step);
    }
    const float scale = rsqrtf(squares / 768.0f + 1e-5f);
    for (int k = 0; k < 24; ++k) {
        const int column = k * 32 + lane;
        out[row + column] = (value[k] - mean) * scale * gain[column] + bias[column];
    }
}

int main()
{
    const int rows = 8192;
    const float *gain = upload(random_floats(768, 2)), *bias = upload(random_floats(768, 3));
    layernorm<<<rows / 8, 256>>>(upload(random_floats(rows * 768, 1)), gain, bias,
                                 zeros<float>(rows * 768));
    return finish();
}
