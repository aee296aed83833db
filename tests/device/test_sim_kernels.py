"""Kernels on the simulated device against numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sim_support import ptx_of, run

SOURCE = r"""
extern "C" {
__global__ void vecadd(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
__global__ void naive(const float *a, const float *b, float *c, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || col >= n) return;
  float sum = 0;
  for (int k = 0; k < n; k++) sum = __fmaf_rn(a[row * n + k], b[k * n + col], sum);
  c[row * n + col] = sum;
}
__global__ void tiled(const float *a, const float *b, float *c, int n) {
  __shared__ float x[16][16], y[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0;
  for (int t = 0; t < n / 16; t++) {
    x[ty][tx] = a[row * n + t * 16 + tx];
    y[ty][tx] = b[(t * 16 + ty) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; k++) sum = __fmaf_rn(x[ty][k], y[k][tx], sum);
    __syncthreads();
  }
  c[row * n + col] = sum;
}
__global__ void collatz(const unsigned *a, unsigned *steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = a[i], count = 0;
  while (v != 1) { if (v & 1) v = 3 * v + 1; else v /= 2; count++; if (count > 500) return; }
  steps[i] = count;
}
__global__ void warp_sum(const int *a, int *out) {
  int v = a[blockIdx.x * 32 + threadIdx.x];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) out[blockIdx.x] = v;
}
__global__ void ballots(const int *a, unsigned *out) {
  int i = threadIdx.x, v = a[i];
  out[i] = __ballot_sync(0xffffffffu, v > 2);
  out[32 + i] = __match_any_sync(0xffffffffu, v);
  out[64 + i] = __reduce_max_sync(0xffffffffu, (unsigned)v);
}
__global__ void histogram(const unsigned char *a, unsigned *bins, int n) {
  __shared__ unsigned local[256];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[a[i]], 1u);
  __syncthreads();
  for (int i = t; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}
__global__ void indices(int *out) {
  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * (blockDim.x * blockDim.y * blockDim.z) + t] =
      threadIdx.x + 100 * threadIdx.y + 10000 * blockIdx.x + 1000000 * blockIdx.z;
}
__global__ void vectors(const float4 *a, float4 *b) {
  float4 v = a[threadIdx.x];
  b[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
}
__global__ void arithmetic(const int *a, const int *b, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = a[i] / b[i]; out[n + i] = a[i] % b[i]; out[2 * n + i] = __mulhi(a[i], b[i]);
  out[3 * n + i] = __clz(a[i]); out[4 * n + i] = __popc(a[i]);
  out[5 * n + i] = a[i] >> (b[i] & 31); out[6 * n + i] = max(a[i], b[i]);
}
__global__ void clocks(long long *out, int *sm) {
  long long begin = clock64();
  __syncthreads();
  int w = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) { out[2 * w] = begin; out[2 * w + 1] = clock64(); }
  int id; asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  if (threadIdx.x == 0) sm[blockIdx.x] = id;
}
__global__ void locals(const int *a, int *out) {
  int table[16];
  for (int k = 0; k < 16; k++) table[(a[threadIdx.x] + k) & 15] = k;
  out[threadIdx.x] = table[a[threadIdx.x + 64] & 15];
}
}
"""


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("kernels")
    return ptx_of(folder, SOURCE)


def fma32(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Exact float32 fma: the product is exact in double, the sum in long double."""
    exact = a.astype(np.float64) * b.astype(np.float64)
    return (exact.astype(np.longdouble) + c.astype(np.longdouble)).astype(np.float32)


def matrices(n: int) -> list[np.ndarray]:
    r = np.random.default_rng(1)
    a, b = (r.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    return [a, b, np.zeros((n, n), np.float32)]


def gemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = np.zeros_like(a)
    for k in range(a.shape[0]):
        total = fma32(a[:, k : k + 1], b[k : k + 1, :], total)
    return total


@pytest.mark.parametrize("block", [48, 128, 51])
def test_vector_addition(ptx: str, block: int) -> None:
    n = 1000
    a, b = (np.random.default_rng(k).standard_normal(n).astype(np.float32) for k in (0, 1))
    out = run(ptx, "vecadd", (-(-n // block), 1, 1), (block, 1, 1),
              [a, b, np.zeros_like(a), np.int32(n)]).buffers[2]  # fmt: skip
    assert np.array_equal(out, a + b)


@pytest.mark.parametrize("block", [(32, 24, 1), (16, 16, 1), (17, 3, 1)])
def test_naive_gemm_is_bit_exact(ptx: str, block: tuple[int, int, int]) -> None:
    n = 70
    given = matrices(n)
    grid = (-(-n // block[0]), -(-n // block[1]), 1)
    out = run(ptx, "naive", grid, block, [*given, np.int32(n)]).buffers[2]
    assert np.array_equal(out, gemm(*given[:2]))


def test_tiled_gemm_is_bit_exact(ptx: str) -> None:
    given = matrices(64)
    out = run(ptx, "tiled", (4, 4, 1), (16, 16, 1), [*given, np.int32(64)]).buffers[2]
    assert np.array_equal(out, gemm(*given[:2]))


def test_divergent_loops(ptx: str) -> None:
    a = np.arange(1, 301, dtype=np.uint32)

    def steps(v: int) -> int:
        count = 0
        while v != 1:
            v = 3 * v + 1 if v & 1 else v // 2
            count += 1
        return count

    out = run(ptx, "collatz", (3, 1, 1), (128, 1, 1), [a, np.zeros_like(a), np.int32(300)])
    assert out.buffers[1].tolist() == [steps(int(v)) for v in a]


def test_shuffles_sum_a_warp(ptx: str) -> None:
    a = np.random.default_rng(0).integers(-99, 99, 160).astype(np.int32)
    out = run(ptx, "warp_sum", (5, 1, 1), (32, 1, 1), [a, np.zeros(5, np.int32)]).buffers[1]
    assert np.array_equal(out, a.reshape(5, 32).sum(1))


def test_votes_matches_and_reductions(ptx: str) -> None:
    a = (np.arange(32) % 5).astype(np.int32)
    out = run(ptx, "ballots", (1, 1, 1), (32, 1, 1), [a, np.zeros(96, np.uint32)]).buffers[1]
    ballot = sum(1 << k for k in range(32) if a[k] > 2)
    peers = [sum(1 << k for k in range(32) if a[k] == v) for v in a]
    assert out[:32].tolist() == [ballot] * 32
    assert out[32:64].tolist() == peers
    assert out[64:].tolist() == [4] * 32


def test_atomics_count(ptx: str) -> None:
    a = np.random.default_rng(0).integers(0, 256, 9000).astype(np.uint8)
    given = [a, np.zeros(256, np.uint32), np.int32(a.size)]
    out = run(ptx, "histogram", (5, 1, 1), (192, 1, 1), given).buffers[1]
    assert np.array_equal(out, np.bincount(a, minlength=256))


def test_three_dimensional_grids(ptx: str) -> None:
    grid, block = (3, 2, 2), (5, 3, 2)
    out = run(ptx, "indices", grid, block, [np.zeros(12 * 30, np.int32)]).buffers[0]
    expected = [
        x + 100 * y + 10000 * bx + 1000000 * bz
        for bz in range(2) for _ in range(2) for bx in range(3)
        for _ in range(2) for y in range(3) for x in range(5)
    ]  # fmt: skip
    assert out.tolist() == expected


@pytest.mark.parametrize("threads", [32, 20])
def test_vector_loads(ptx: str, threads: int) -> None:
    a = np.arange(threads * 4, dtype=np.float32).reshape(threads, 4)
    out = run(ptx, "vectors", (1, 1, 1), (threads, 1, 1), [a, np.zeros_like(a)]).buffers[1]
    assert np.array_equal(out, a[:, ::-1])


def test_integer_arithmetic(ptx: str) -> None:
    n = 200
    r = np.random.default_rng(3)
    a = r.integers(-(2**31), 2**31, n).astype(np.int32)
    b = r.integers(1, 2**20, n).astype(np.int32) * r.choice([-1, 1], n).astype(np.int32)
    out = run(ptx, "arithmetic", (2, 1, 1), (128, 1, 1),
              [a, b, np.zeros((7, n), np.int32), np.int32(n)]).buffers[2]  # fmt: skip
    wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
    quotient = np.trunc(wide_a / wide_b).astype(np.int64)
    bits = a.view(np.uint32)
    assert np.array_equal(out[0], quotient)
    assert np.array_equal(out[1], wide_a - quotient * wide_b)
    assert np.array_equal(out[2], wide_a * wide_b >> 32)
    assert out[3].tolist() == [32 - int(v).bit_length() for v in bits]
    assert out[4].tolist() == [int(v).bit_count() for v in bits]
    assert np.array_equal(out[5], a >> (b & 31))
    assert np.array_equal(out[6], np.maximum(a, b))


def test_local_memory(ptx: str) -> None:
    a = np.random.default_rng(0).integers(0, 16, 128).astype(np.int32)
    out = run(ptx, "locals", (1, 1, 1), (64, 1, 1), [a, np.zeros(64, np.int32)]).buffers[1]
    assert np.array_equal(out, (a[64:] - a[:64]) % 16)


def test_cycles_and_results_do_not_depend_on_host_threads(ptx: str) -> None:
    given = [np.zeros(2 * 4 * 300, np.int64), np.zeros(300, np.int32)]
    one, two, again = (
        run(ptx, "clocks", (300, 1, 1), (128, 1, 1), given, threads=t) for t in (1, 2, 2)
    )
    assert one.seconds == two.seconds == again.seconds
    assert one.instructions == two.instructions
    for a, b, c in zip(one.buffers, two.buffers, again.buffers, strict=True):
        assert np.array_equal(a, b)
        assert np.array_equal(a, c)
    times = one.buffers[0].reshape(-1, 2)
    assert (times[:, 1] > times[:, 0]).all()
    assert set(one.buffers[1].tolist()) == set(range(72))
