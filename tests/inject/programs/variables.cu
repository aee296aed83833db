// Kernels that use variables of their module, which the host sets between launches.
#include <cstdio>

__constant__ float scale;
__device__ int counter;
__device__ float table[4] = {1, 2, 3, 4};

__global__ void with_variables(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = out[i] * 0.5f + i * scale + table[i & 3];
  if ((i & 31) == 0) atomicAdd(&counter, 1);
}

int main() {
  const int n = 1 << 16;
  static float host[n];
  float *out, s = 0.5f;
  cudaMalloc(&out, sizeof host);
  cudaMemset(out, 0, sizeof host);
  for (int launch = 0; launch < 20; launch++) {
    s += 0.25f;
    cudaMemcpyToSymbol(scale, &s, sizeof s);
    with_variables<<<n / 256, 256>>>(out, n);
  }
  int count = 0;
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&count, counter, sizeof count);
  double sum = 0;
  for (float one : host) sum += one;
  printf("sum %.6f, counted %d, %s\n", sum, count, cudaGetErrorString(cudaDeviceSynchronize()));
  return 7;
}
