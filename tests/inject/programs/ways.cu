// Kernels launched in every way: streams, threads, graphs, cooperative, clusters, two shapes.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace cg = cooperative_groups;
constexpr int N = 1 << 16;

__global__ void add_one(unsigned *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += 1 + (i & 7);
}

__global__ void together(unsigned *data, int n) {
  cg::grid_group grid = cg::this_grid();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) data[i] += 3;
  grid.sync();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) data[i] ^= data[(i + 1) % n] & 1u << 30;
}

__global__ void __cluster_dims__(2, 1, 1) in_clusters(unsigned *data, int n) {
  cg::cluster_group cluster = cg::this_cluster();
  cluster.sync();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += cluster.block_rank();
}

static void in_threads(unsigned *data) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([=] {
      cudaStream_t stream;
      cudaStreamCreate(&stream);
      for (int k = 0; k < 200; k++) add_one<<<N / 4 / 256, 256, 0, stream>>>(data + t * N / 4, N / 4);
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    });
  for (auto &one : threads) one.join();
}

static void in_a_graph(unsigned *data) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t made;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int k = 0; k < 3; k++) add_one<<<N / 128, 128, 0, stream>>>(data, N);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&made, graph, 0);
  for (int k = 0; k < 5; k++) cudaGraphLaunch(made, stream);
  cudaStreamSynchronize(stream);
}

static void cooperatively(unsigned *data) {
  int n = N;
  void *arguments[] = {&data, &n};
  for (int k = 0; k < 5; k++)
    cudaLaunchCooperativeKernel((void *)together, dim3(64), dim3(256), arguments, 0, 0);
}

static void with_a_reset() {
  unsigned *data;
  cudaMalloc(&data, N * sizeof *data);
  for (int k = 0; k < 5; k++) add_one<<<N / 256, 256>>>(data, N);
  cudaDeviceReset();
}

static void on_every_device(unsigned *sums) {
  int devices = 0;
  cudaGetDeviceCount(&devices);
  static unsigned host[N];
  for (int k = 0; k < devices; k++) {
    unsigned *data;
    cudaSetDevice(k);
    cudaMalloc(&data, sizeof host);
    cudaMemset(data, k, sizeof host);
    for (int i = 0; i < 10; i++) add_one<<<N / 256, 256>>>(data, N);
    cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost);
    for (unsigned one : host) *sums += one;
  }
  cudaSetDevice(0);
}

int main(int count, char **words) {
  unsigned *data;
  static unsigned host[N];
  unsigned devices = 0;
  if (count > 1 && !strcmp(words[1], "reset")) with_a_reset();
  cudaMalloc(&data, sizeof host);
  cudaMemset(data, 0, sizeof host);
  for (int k = 1; k < count; k++) {
    if (!strcmp(words[k], "threads")) in_threads(data);
    if (!strcmp(words[k], "graph")) in_a_graph(data);
    if (!strcmp(words[k], "cooperative")) cooperatively(data);
    if (!strcmp(words[k], "cluster")) in_clusters<<<N / 256, 256>>>(data, N);
    if (!strcmp(words[k], "shapes"))
      for (int i = 0; i < 20; i++) add_one<<<N / 256 / (1 + i % 2), 256>>>(data, N / (1 + i % 2));
    if (!strcmp(words[k], "devices")) on_every_device(&devices);
    if (!strcmp(words[k], "fault")) add_one<<<1, 32>>>((unsigned *)8, 32);
  }
  cudaError_t status = cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost);
  unsigned long long sum = devices;
  for (unsigned i = 0; i < N; i++) sum = sum * 31 + host[i];
  printf("sum %llx, %s\n", sum, cudaGetErrorString(status));
  return status == cudaSuccess ? 0 : 3;
}
