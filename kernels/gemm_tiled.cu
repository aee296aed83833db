// Matrix product C = A * B in single precision, by way of tiles in shared memory.
//
//   nvcc -O2 -o gemm_tiled kernels/gemm_tiled.cu && ./gemm_tiled [M N K]
//
// A is M x K, B is K x N, C is M x N, all row-major; 1024 each unless given. A block computes a
// tile of C with a thread for each element; -DTILE=16 makes the tiles 16 x 16.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                                    \
    do {                                                                                    \
        const cudaError_t status_ = (call);                                                 \
        if (status_ != cudaSuccess) {                                                       \
            std::fprintf(stderr, "%s:%d: CUDA: %s\n", __FILE__, __LINE__,                   \
                         cudaGetErrorString(status_));                                      \
            std::exit(EXIT_FAILURE);                                                        \
        }                                                                                   \
    } while (0)

#ifndef TILE
#define TILE 32
#endif

__global__ void gemm_gpu(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float tile_A[TILE][TILE];
    __shared__ float tile_B[TILE][TILE];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int row = blockIdx.y * TILE + y;
    const int col = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int start = 0; start < K; start += TILE) {
        // Beyond the matrices' edges the tiles are padded with zeros, which add nothing.
        tile_A[y][x] = row < M && start + x < K ? A[row * K + start + x] : 0.0f;
        tile_B[y][x] = start + y < K && col < N ? B[(start + y) * N + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) {
            sum += tile_A[y][i] * tile_B[i][x];
        }
        __syncthreads();
    }
    if (row < M && col < N) {
        C[row * N + col] = sum;
    }
}

static std::vector<float> random_matrix(int rows, int columns, std::mt19937 &generator)
{
    std::uniform_real_distribution<float> unit(0.0f, 1.0f);
    std::vector<float> matrix(static_cast<size_t>(rows) * columns);
    std::generate(matrix.begin(), matrix.end(), [&] { return unit(generator); });
    return matrix;
}

// Row by row of B, so that the inner loop walks along memory; sums in double precision.
static double largest_relative_error(const std::vector<float> &A, const std::vector<float> &B,
                                     const std::vector<float> &C, int M, int N, int K)
{
    double largest = 0.0;
    std::vector<double> expected(N);
    for (int row = 0; row < M; ++row) {
        std::fill(expected.begin(), expected.end(), 0.0);
        for (int i = 0; i < K; ++i) {
            const double a = A[static_cast<size_t>(row) * K + i];
            const float *b = &B[static_cast<size_t>(i) * N];
            for (int col = 0; col < N; ++col) {
                expected[col] += a * b[col];
            }
        }
        for (int col = 0; col < N; ++col) {
            const double error = std::fabs(C[static_cast<size_t>(row) * N + col] - expected[col]);
            largest = std::max(largest, error / std::max(1.0, expected[col]));
        }
    }
    return largest;
}

static int size_from(const char *text)
{
    char *end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < 1 || value > 16384) {
        std::fprintf(stderr, "a size is a number from 1 to 16384, not \"%s\"\n", text);
        std::exit(2);
    }
    return static_cast<int>(value);
}

int main(int argc, char **argv)
{
    if (argc != 1 && argc != 4) {
        std::fprintf(stderr, "usage: %s [M N K]\n", argv[0]);
        return 2;
    }
    const int M = argc == 4 ? size_from(argv[1]) : 1024;
    const int N = argc == 4 ? size_from(argv[2]) : 1024;
    const int K = argc == 4 ? size_from(argv[3]) : 1024;
    std::printf("C (%d x %d) = A (%d x %d) * B (%d x %d)\n", M, N, M, K, K, N);

    std::mt19937 generator(20250814);
    const std::vector<float> A = random_matrix(M, K, generator);
    const std::vector<float> B = random_matrix(K, N, generator);
    std::vector<float> C(static_cast<size_t>(M) * N);

    float *device_A, *device_B, *device_C;
    CUDA_CHECK(cudaMalloc(&device_A, A.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&device_B, B.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&device_C, C.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(device_A, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(device_B, B.data(), B.size() * sizeof(float), cudaMemcpyHostToDevice));

    const dim3 block(TILE, TILE);
    const dim3 grid((N + block.x - 1) / block.x, (M + block.y - 1) / block.y);
    std::printf("grid %u x %u, block %u x %u\n", grid.x, grid.y, block.x, block.y);

    gemm_gpu<<<grid, block>>>(device_A, device_B, device_C, M, N, K);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaMemcpy(C.data(), device_C, C.size() * sizeof(float), cudaMemcpyDeviceToHost));

    const double error = largest_relative_error(A, B, C, M, N, K);
    const bool passed = error < 1e-5;
    std::printf("max relative error %.3g: %s\n", error, passed ? "PASSED" : "FAILED");

    CUDA_CHECK(cudaFree(device_A));
    CUDA_CHECK(cudaFree(device_B));
    CUDA_CHECK(cudaFree(device_C));
    return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
