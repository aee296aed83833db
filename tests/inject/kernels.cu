// What the programs of these tests launch; the fake driver knows what each computes by its name.

struct Wide {
  int values[1019];
};

__constant__ float factor;
__device__ int total;

extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void twice(float *a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= 2;
}

extern "C" __global__ void scale(const float *a, float *c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] * factor;
}

extern "C" __global__ void tally(int n) { atomicAdd(&total, threadIdx.x == 0 ? n : 0); }

// With parameters so large that the addresses of maps find no room behind them.
extern "C" __global__ void wide(int *out, Wide wide) { *out = wide.values[0]; }

extern "C" __global__ void nothing() {}
