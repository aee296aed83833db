// The tiled product of 1024 x 1024 matrices again and again; prints the wall time of one.
#include <chrono>
#include <cstdio>
#include <cstdlib>

constexpr int N = 1024, T = 32;

__global__ void product(const float *a, const float *b, float *c) {
  __shared__ float left[T][T], right[T][T];
  int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < N; k += T) {
    left[threadIdx.y][threadIdx.x] = a[row * N + k + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * N + column];
    __syncthreads();
    for (int i = 0; i < T; i++) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  c[row * N + column] = sum;
}

int main(int count, char **words) {
  const int launches = count > 1 ? atoi(words[1]) : 2000;
  float *a, *b, *c;
  cudaMalloc(&a, N * N * 4);
  cudaMalloc(&b, N * N * 4);
  cudaMalloc(&c, N * N * 4);
  cudaMemset(a, 0, N * N * 4);
  cudaMemset(b, 0, N * N * 4);
  for (int i = 0; i < 200; i++) product<<<dim3(N / T, N / T), dim3(T, T)>>>(a, b, c);
  cudaDeviceSynchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; i++) product<<<dim3(N / T, N / T), dim3(T, T)>>>(a, b, c);
  cudaDeviceSynchronize();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  printf("%.4f us a launch\n", seconds / launches * 1e6);
}
