// Launches as fast as it can, or so many a second: what does seeing them cost?
#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void nothing(int *p) {
  if (p) *p = 1;
}
__global__ void other(int *p) {
  if (p) *p = 2;
}

using Clock = std::chrono::steady_clock;
static double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int main(int count, char **words) {
  const int launches = count > 1 ? atoi(words[1]) : 500000;
  const double rate = count > 2 ? atof(words[2]) : 0;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  other<<<1, 32, 0, stream>>>(nullptr);
  nothing<<<1, 32, 0, stream>>>(nullptr);
  cudaStreamSynchronize(stream);
  const auto start = Clock::now();
  for (int i = 0; i < launches; i++) {
    nothing<<<1, 32, 0, stream>>>(nullptr);
    while (rate > 0 && since(start) < (i + 1) / rate) {
    }
  }
  cudaStreamSynchronize(stream);
  printf("%.4f us a launch\n", since(start) / launches * 1e6);
}
