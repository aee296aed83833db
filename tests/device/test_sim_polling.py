"""Which loops poll, and that lanes of a warp stay together where none does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sim_support import ptx_of, run

from gpuwatch.device.sim.linking import build_program
from gpuwatch.ptx import parse

SOURCE = r"""
#include <cuda_runtime.h>
__device__ int leader() {
  unsigned active;
  asm volatile("activemask.b32 %0;" : "=r"(active));
  return threadIdx.x % 32 == __ffs(active) - 1;
}
__device__ void save(int *saved, int *trail, int k) {
  int w = threadIdx.x / 32;
  if (leader()) {
    int place = atomicAdd(&saved[w], 1);
    if (place < 64) trail[w * 64 + place] = k;
  }
}
extern "C" {
__global__ void saves(int *saved, int *trail, int *out) {
  for (int k = 0; k <= 50 * (threadIdx.x / 32); ++k) {
    save(saved, trail, k);
    *(volatile int *)(out + threadIdx.x) = k;
  }
}
__global__ void saves_after_spinning(int *saved, int *trail, int *out) {
  __shared__ volatile int turn;
  int w = threadIdx.x / 32;
  if (threadIdx.x == 0) turn = 0;
  __syncthreads();
  if (w == 3) for (int k = 0; k < 400; k++) *(volatile int *)(out + threadIdx.x) = k;
  if (w == 3) turn = 1;
  while (turn == 0) {}
  for (int k = 0; k <= 50 * w; ++k) save(saved, trail, k);
}
__global__ void counts(int *saved, int *trail) {
  for (int k = 0; k < 9; k++) {
    int n = atomicAdd(saved, 1);
    if (n < 5) trail[n] = k;
  }
}
__global__ void waits(volatile int *flag, int n) {
  for (int k = 0; k < n; k++) while (flag[k] == 0) {}
}
__global__ void waits_for_all(volatile int *flag) {
  int ready;
  do {
    ready = 1;
#pragma unroll 1
    for (int k = 0; k < 8; k++) ready &= flag[k];
  } while (!ready);
}
__global__ void locks(int *lock, int *value) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int *)value += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
__global__ void sleeps(int *out, int n) {
  for (int k = 0; k < n; k++) { __nanosleep(20); out[k] = k; }
}
}
"""


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("polling")
    return ptx_of(folder, SOURCE)


@pytest.mark.parametrize("kernel", ["saves", "saves_after_spinning"])
def test_a_warp_saves_once_a_round(ptx: str, kernel: str) -> None:
    """Lanes meet again behind a branch on an atomic's result, however long the loop takes."""
    arguments = [np.zeros(size, np.int32) for size in (4, 256, 128)]
    saved = run(ptx, kernel, (1, 1, 1), (128, 1, 1), arguments).buffers[0]
    assert saved.tolist() == [1, 51, 101, 151]


@pytest.mark.parametrize(
    ("kernel", "polls"),
    [("saves", False), ("saves_after_spinning", True), ("counts", False), ("waits", True),
     ("waits_for_all", True), ("locks", True), ("sleeps", True)],
)  # fmt: skip
def test_a_loop_polls_where_its_end_depends_on_others(ptx: str, kernel: str, polls: bool) -> None:
    module = parse(ptx)
    entry = next(one for one in module.entries() if one.name == kernel)
    assert build_program(module, entry).polls == polls
