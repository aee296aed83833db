// Kernels that overwrite their input: prefix sum, accumulation, sorting, life, swaps.
#include "corpus.h"

__global__ void prefix_sum(int *data)
{
    __shared__ int row[128];
    const int i = threadIdx.x, at = blockIdx.x * 128 + i;
    row[i] = data[at];
    for (int step = 1; step < 128; step *= 2) {
        __syncthreads();
        const int other = i >= step ? row[i - step] : 0;
        __syncthreads();
        row[i] += other;
    }
    data[at] = row[i];
}

__global__ void accumulate(const float *x, float *y, float a)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] += a * x[i];
    y[i] *= 0.5f;
}

__global__ void sort_network(int *data)
{
    __shared__ int row[64];
    const int i = threadIdx.x, at = blockIdx.x * 64 + i;
    row[i] = data[at];
    __syncthreads();
    for (int size = 2; size <= 64; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            const int other = i ^ step;
            const bool upward = (i & size) == 0;
            if (other > i && (row[i] > row[other]) == upward) {
                const int kept = row[i];
                row[i] = row[other];
                row[other] = kept;
            }
            __syncthreads();
        }
    data[at] = row[i];
}

__global__ void life(unsigned char *cells)
{
    __shared__ unsigned char now[16][16];
    const int x = threadIdx.x, y = threadIdx.y;
    now[y][x] = cells[y * 16 + x];
    for (int generation = 0; generation < 6; ++generation) {
        __syncthreads();
        int near = 0;
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx)
                if (dx || dy) near += now[(y + dy) & 15][(x + dx) & 15];
        __syncthreads();
        now[y][x] = near == 3 || (near == 2 && now[y][x]);
    }
    cells[y * 16 + x] = now[y][x];
}

__global__ void swap_ends(long long *data, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 2) return;
    const long long first = data[i];
    data[i] = data[n - 1 - i];
    data[n - 1 - i] = first + 1;
}

__global__ void grid_stride(unsigned *data, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned x = data[i];
        for (int k = 0; k < 3; ++k) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
        }
        data[i] = x;
    }
}

int main()
{
    prefix_sum<<<3, 128>>>(below(1000, 384));
    accumulate<<<4, 48>>>(sixteenths(192), sixteenths(192), 3.25f);
    sort_network<<<3, 64>>>(below(100000, 192));
    life<<<1, dim3(16, 16)>>>(filled<unsigned char>(256, [](int k) { return mixed(k) % 3u == 0; }));
    swap_ends<<<2, 64>>>(filled<long long>(201, [](int k) { return (1ll << 33) * k; }), 201);
    grid_stride<<<3, 64>>>(patterns(1000), 1000);
    return finish();
}
