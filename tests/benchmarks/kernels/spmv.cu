// Compressed sparse rows, a warp for each row, columns at random.
#include "bench.cuh"

__global__ void spmv(const uint32_t *starts, const uint32_t *columns, const float *values,
                     const float *x, float *y, int rows)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    float sum = 0.0f;
    for (uint32_t k = starts[row] + lane; k < starts[row + 1]; k += 32) {
        sum += values[k] * x[columns[k]];
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(0xffffffff, sum, step);
    }
    if (lane == 0) {
        y[row] = sum;
    }
}

int main()
{
    const int rows = 32768;
    std::vector<uint32_t> starts(rows + 1);
    Random random{7};
    for (int row = 0; row < rows; ++row) {
        starts[row + 1] = starts[row] + 16 + random.bits() % 128;
    }
    const uint32_t count = starts[rows];
    const uint32_t *columns = upload(random_words(count, 2, rows));
    const float *values = upload(random_floats(count, 3)), *x = upload(random_floats(rows, 4));
    spmv<<<rows / 8, 256>>>(upload(starts), columns, values, x, zeros<float>(rows), rows);
    return finish();
}
