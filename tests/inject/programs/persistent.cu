// A kernel runs until another one has been launched often enough, in a shape that is new by then.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

__global__ void waits(const volatile int *flag) {
  while (*flag == 0) continue;
}

__global__ void add_one(unsigned *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += 1;
}

int main(int, char **words) {
  constexpr int n = 1024;
  const int launches = std::atoi(words[1]);
  int *flag = nullptr;
  unsigned *data = nullptr, sum = 0;
  cudaStream_t first, second;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped);
  cudaMalloc(&data, n * sizeof *data);
  cudaMemset(data, 0, n * sizeof *data);
  *flag = 1;
  waits<<<1, 1, 0, first>>>(flag);
  add_one<<<n / 256, 256, 0, second>>>(data, n);
  cudaDeviceSynchronize();
  *const_cast<volatile int *>(flag) = 0;
  waits<<<1, 1, 0, first>>>(flag);
  for (int k = 0; k < launches; k++) {
    add_one<<<n / 128, 128, 0, second>>>(data, n);
    cudaStreamSynchronize(second);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  *const_cast<volatile int *>(flag) = 1;
  for (int k = 0; k < launches; k++) {
    add_one<<<n / 128, 128, 0, second>>>(data, n);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  cudaDeviceSynchronize();
  unsigned all[n];
  cudaMemcpy(all, data, sizeof all, cudaMemcpyDeviceToHost);
  for (unsigned one : all) sum += one;
  std::printf("sum %u\n", sum);
  return sum == n * (1 + 2u * launches) ? 0 : 1;
}
