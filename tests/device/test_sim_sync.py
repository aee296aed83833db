"""Lanes, warps and threads that wait for each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sim_support import ptx_of, run

from gpuwatch.errors import UserError

SOURCE = r"""
#include <cuda_runtime.h>
extern "C" {
__global__ void late_shuffle(int *out) {
  int t = threadIdx.x, v = t;
  if (t % 32 < 10) for (int k = 0; k < t; k++) v = v * 3 + 1;
  else v = v * 2;
  out[t] = __shfl_xor_sync(0xffffffffu, v, 16) + __ballot_sync(0xffffffffu, v & 1);
}
__global__ void halves(unsigned *out) {
  int t = threadIdx.x;
  unsigned low = 0xffffu, high = 0xffff0000u, own = t < 16 ? low : high;
  unsigned v = t * 7 % 13;
  out[t] = __ballot_sync(own, v > 6);
  out[32 + t] = __any_sync(own, t == 3) + 2 * __all_sync(own, t < 16);
  out[64 + t] = __match_any_sync(own, v % 3);
  out[96 + t] = __reduce_add_sync(own, v);
  int pred; out[128 + t] = __match_all_sync(own, t < 16 ? 1 : t, &pred) + pred;
}
__global__ void elects(int *out, int first) {
  int t = threadIdx.x, leader, leads;
  if (t < first) return;
  unsigned own = t < 16 ? 0xffffu : 0xffff0000u;
  asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.b32 %1, 1, 0, p; }"
               : "=r"(leader), "=r"(leads) : "r"(own));
  out[t] = leader;
  out[32 + t] = leads;
}
__global__ void early_exit(int *out) {
  int t = threadIdx.x;
  if (t >= 20) return;
  int v = t;
  if (t < 5) v = out[t] + 3 * t;
  out[t] = __shfl_sync(0xffffffffu, v, 4) + v;
}
__global__ void lane_lock(int *lock, int *count) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  int held = *(volatile int *)count;
  *(volatile int *)count = held + 1;
  __threadfence();
  atomicExch(lock, 0);
}
__global__ void warp_relay(int *out) {
  __shared__ volatile int turn;
  int w = threadIdx.x / 32, last = blockDim.x / 32 - 1;
  if (threadIdx.x == 0) turn = last;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    while (turn != w) {}
    out[w] = last - w;
    __threadfence_block();
    turn = w - 1;
  }
  __syncthreads();
  out[8 + w] = turn;
}
__global__ void named(int *out) {
  __shared__ int x[128];
  int t = threadIdx.x, w = t / 32;
  x[t] = 0;
  __syncthreads();
  if (w < 2) {
    x[t] = t + 1;
    asm volatile("bar.arrive 3, 128;");
    asm volatile("bar.sync 1, 64;");
    out[t] = x[(t + 32) % 64];
  } else {
    asm volatile("bar.sync 3, 128;");
    out[t] = x[t - 64];
  }
  int yes;
  asm volatile("{ .reg .pred p, q; setp.lt.s32 p, %1, 40; bar.red.popc.u32 %0, 0, p; }"
               : "=r"(yes) : "r"(t));
  out[128 + t] = yes;
  out[256 + t] = __syncthreads_and(t < 128) + 2 * __syncthreads_or(t == 70)
               + 4 * __syncthreads_and(t > 3);
}
__global__ void exits_before_barrier(int *out) {
  __shared__ int x[96];
  int t = threadIdx.x;
  x[t] = t;
  if (t >= 64) return;
  asm volatile("bar.sync 0;");
  asm volatile("bar.sync 2;");
  out[t] = x[63 - t];
}
__global__ void never_meet(int *out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 3);
  else __syncthreads();
}
__global__ void too_few(int *out) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 96;");
  else asm volatile("bar.sync 2, 96;");
  out[threadIdx.x] = 1;
}
__global__ void hangs(volatile int *out) {
  if (threadIdx.x < 32) while (out[0] == 0) {}
  __syncthreads();
}
}
"""


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("sync")
    return ptx_of(folder, SOURCE)


def out_of(ptx: str, kernel: str, threads: int, size: int, grid: int = 1) -> list[int]:
    given = [np.zeros(size, np.int32)]
    out = run(ptx, kernel, (grid, 1, 1), (threads, 1, 1), given).buffers[0]
    return [int(v) for v in out]


def test_lanes_that_come_late_are_waited_for(ptx: str) -> None:
    values = []
    for t in range(64):
        v = t
        for _ in range(t if t % 32 < 10 else 0):
            v = (v * 3 + 1) & 0xFFFFFFFF
        values.append(v if t % 32 < 10 else 2 * t)
    expected = []
    for t in range(64):
        warp = values[t // 32 * 32 : t // 32 * 32 + 32]
        ballot = sum((v & 1) << k for k, v in enumerate(warp))
        expected.append((values[t ^ 16] + ballot) & 0xFFFFFFFF)
    out = np.array(out_of(ptx, "late_shuffle", 64, 64), np.int64) & 0xFFFFFFFF
    assert out.tolist() == expected


def test_groups_of_lanes_with_masks_of_their_own(ptx: str) -> None:
    out = run(ptx, "halves", (1, 1, 1), (32, 1, 1), [np.zeros(160, np.uint32)]).buffers[0]
    v = [t * 7 % 13 for t in range(32)]
    groups = [range(16) if t < 16 else range(16, 32) for t in range(32)]
    assert out[:32].tolist() == [sum(1 << k for k in g if v[k] > 6) for g in groups]
    assert out[32:64].tolist() == [3] * 16 + [0] * 16
    peers = [sum(1 << k for k in g if v[k] % 3 == v[t] % 3) for t, g in enumerate(groups)]
    assert out[64:96].tolist() == peers
    assert out[96:128].tolist() == [sum(v[k] for k in g) for g in groups]
    assert out[128:].tolist() == [0xFFFF + 1] * 16 + [0] * 16


@pytest.mark.parametrize("first", [0, 3])
def test_each_group_of_lanes_elects_its_own_leader(ptx: str, first: int) -> None:
    given = [np.full(64, -1, np.int32), np.int32(first)]
    out = run(ptx, "elects", (1, 1, 1), (32, 1, 1), given).buffers[0]
    assert out[first:32].tolist() == [first] * (16 - first) + [16] * 16
    assert np.flatnonzero(out[32:] == 1).tolist() == [first, 16]


def test_lanes_that_have_exited_are_not_waited_for(ptx: str) -> None:
    v = [3 * t if t < 5 else t for t in range(20)]
    assert out_of(ptx, "early_exit", 32, 20) == [v[4] + x for x in v]


@pytest.mark.parametrize(("threads", "grid"), [(32, 1), (64, 3)])
def test_a_spin_lock_between_lanes_warps_and_blocks(ptx: str, threads: int, grid: int) -> None:
    given = [np.zeros(1, np.int32), np.zeros(1, np.int32)]
    out = run(ptx, "lane_lock", (grid, 1, 1), (threads, 1, 1), given).buffers
    assert [int(out[0][0]), int(out[1][0])] == [0, threads * grid]


def test_a_warp_that_spins_lets_later_warps_run(ptx: str) -> None:
    assert out_of(ptx, "warp_relay", 128, 12) == [3, 2, 1, 0, 0, 0, 0, 0, -1, -1, -1, -1]


def test_named_barriers_counts_and_reductions(ptx: str) -> None:
    out = out_of(ptx, "named", 128, 384)
    assert out[:64] == [(t + 32) % 64 + 1 for t in range(64)]
    assert out[64:128] == [t - 63 for t in range(64, 128)]
    assert out[128:256] == [40] * 128
    assert out[256:] == [3] * 128


def test_threads_that_have_exited_do_not_hold_up_barriers(ptx: str) -> None:
    assert out_of(ptx, "exits_before_barrier", 96, 64) == [63 - t for t in range(64)]


@pytest.mark.parametrize(
    ("kernel", "threads", "wanted"),
    [
        ("never_meet", 32, ["lanes 0-15", "shfl.sync.idx.b32", "lanes 16-31", "at barrier 0"]),
        ("too_few", 64, ["warp 0: waiting at barrier 1, ", "warp 1: waiting at barrier 2, "]),
    ],
)
def test_a_deadlock_is_reported_with_where_warps_stand(
    ptx: str, kernel: str, threads: int, wanted: list[str]
) -> None:
    with pytest.raises(UserError, match="deadlock") as caught:
        out_of(ptx, kernel, threads, 64)
    assert caught.value.status == 1
    assert "kernel.cu:" in caught.value.detail
    for part in wanted:
        assert part in caught.value.detail


def test_a_hang_is_reported_with_where_warps_stand(ptx: str) -> None:
    with pytest.raises(UserError, match="did not end") as caught:
        run(ptx, "hangs", (2, 1, 1), (96, 1, 1), [np.zeros(1, np.int32)], timeout=0.5)
    assert "warps 1-2: waiting at barrier 0" in caught.value.detail
    assert "warp 0: running at" in caught.value.detail
