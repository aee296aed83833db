"""CuPy's RawKernel; prints a digest of what it gave."""

import hashlib

import cupy

SOURCE = r"""
extern "C" __global__ void scaled_add(const float *x, const float *y, float *z, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) z[i] = x[i] * 1.5f + y[i];
}
"""
kernel = cupy.RawKernel(SOURCE, "scaled_add")
x = cupy.arange(1 << 20, dtype=cupy.float32)
z = cupy.zeros_like(x)
for _ in range(50):
    kernel((4096,), (256,), (x, x, z, 1 << 20))
print(hashlib.sha256(cupy.asnumpy(z).tobytes()).hexdigest())
