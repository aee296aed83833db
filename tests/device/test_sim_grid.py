"""Blocks that wait for each other, output of the kernel, assertions, and very many blocks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sim_support import launch_of, ptx_of

from gpuwatch.device.base import GaveWay, Interrupt, KernelImage, RunResult
from gpuwatch.device.sim import open_sim
from gpuwatch.device.sim.kernel import SimKernel
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Launch

SOURCE = r"""
#include <cooperative_groups.h>
#include <cassert>
#include <cstdio>
namespace cg = cooperative_groups;
extern "C" {
__global__ void phases(int *out, int n) {
  cg::grid_group grid = cg::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 1; step <= 3; step++) {
    int v = out[(i + blockDim.x) % n];
    grid.sync();
    out[i] = v + step;
    grid.sync();
  }
}
__global__ void look_back(int *flags, int *out) {
  __shared__ int before;
  if (threadIdx.x == 0) {
    int sum = 0;
    if (blockIdx.x) while ((sum = *(volatile int *)&flags[blockIdx.x - 1]) == 0) {}
    before = sum;
    __threadfence();
    *(volatile int *)&flags[blockIdx.x] = sum + blockIdx.x + 1;
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = before;
}
__global__ void waits_for_later_block(volatile int *out) {
  if (blockIdx.x == 0) { while (out[1] == 0) {} out[0] = out[1] + 1; }
  if (blockIdx.x == gridDim.x - 1) out[1] = 41;
}
__global__ void says(int n) {
  if (threadIdx.x < n)
    printf("%d/%u %5.2f|%-4d|%04x|%lld|%s|%c%%|%p\n", (int)blockIdx.x, threadIdx.x, n + 0.256,
           n, 171, -(1LL << 40), threadIdx.x & 1 ? "odd" : "even", 'a' + threadIdx.x,
           (void *)0x1234);
}
__global__ void shouts(int n) {
  for (int k = 0; k < n; k++) printf("0123456789012345678901234567890123456789012345678%d\n", k);
}
__global__ void asserts(int *out) {
  int t = threadIdx.x;
  assert(t < 40);
  out[0] = 1;
}
__global__ void null(int *nowhere) { nowhere[threadIdx.x + 2] = 1; }
__global__ void tiny(unsigned *out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i % 8192 == 0) out[i / 8192] = i;
}
__global__ void counts(unsigned *out) {
  unsigned v = threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < 10000; k++) v = v * 3 + (v >> 7);
  out[threadIdx.x] = v;
}
__global__ void one_is_long(volatile unsigned *out) {
  unsigned v = 7;
  int rounds = blockIdx.x == 12 ? 60000000 : 10;
  out[blockIdx.x] = 1;
#pragma unroll 1
  for (int k = 0; k < rounds; k++) v = v * 3 + (v >> 7);
  out[blockIdx.x] = v | 2;
}
}
"""
LONG_BLOCK = 12
"""Of `one_is_long`; the first that is run to find what bounds its launch."""
LEFT_IN_LOCAL = """.version 8.0
.target sm_86
.address_size 64
.visible .entry leaves(.param .u64 out)
{
\t.local .align 4 .b8 left[4];
\t.reg .b32 %r<4>;
\t.reg .b64 %rd<4>;
\t.reg .pred %p<2>;
\tld.param.u64 %rd1, [out];
\tld.local.u32 %r1, [left];
\tst.global.u32 [%rd1], %r1;
\tmov.u32 %r2, 1;
\tst.local.u32 [left], %r2;
again:
\tadd.u32 %r2, %r2, 1;
\tsetp.lt.u32 %p1, %r2, 200000000;
\t@%p1 bra again;
\tret;
}
"""


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("grid")
    return ptx_of(folder, SOURCE)


def execute(
    ptx: str, launch: Launch, *, threads: int = 2, timeout: float = 10.0
) -> tuple[list[np.ndarray], RunResult]:
    kernel = open_sim("a10", threads=threads, timeout=timeout).load(
        KernelImage(launch.kernel, ptx, b"", 32, 0), launch, []
    )
    try:
        result = kernel.run()
        return [b.view(np.int32) for b in kernel.read_buffers()], result
    finally:
        kernel.close()


@pytest.mark.parametrize(("blocks", "threads"), [(5, 64), (80, 48), (432, 32)])
def test_a_grid_wide_barrier(ptx: str, blocks: int, threads: int) -> None:
    n = blocks * threads
    launch = launch_of("phases", (blocks, 1, 1), (threads, 1, 1),
                       [np.arange(n, dtype=np.int32), np.int32(n)])  # fmt: skip
    launch.cooperative = True
    (out,), result = execute(ptx, launch)
    assert out.tolist() == [(i + 3 * threads) % n + 6 for i in range(n)]
    assert result.kernel_seconds > 0


def test_a_cooperative_launch_must_fit(ptx: str) -> None:
    n = 2000 * 1024
    launch = launch_of("phases", (2000, 1, 1), (1024, 1, 1), [np.zeros(n, np.int32), np.int32(n)])
    launch.cooperative = True
    with pytest.raises(UserError, match="all 2000 blocks") as caught:
        execute(ptx, launch)
    assert caught.value.status == 1
    assert "72 SMs, 72 in all" in caught.value.message


def test_a_grid_wide_barrier_wants_a_cooperative_launch(ptx: str) -> None:
    launch = launch_of("phases", (2, 1, 1), (32, 1, 1), [np.zeros(64, np.int32), np.int32(64)])
    with pytest.raises(UserError, match="trap"):
        execute(ptx, launch)


def test_blocks_that_look_back(ptx: str) -> None:
    launch = launch_of("look_back", (600, 1, 1), (64, 1, 1),
                       [np.zeros(600, np.int32), np.zeros(600, np.int32)])  # fmt: skip
    (_, out), _ = execute(ptx, launch)
    assert out.tolist() == [k * (k + 1) // 2 for k in range(600)]


def test_a_block_may_wait_for_a_later_one(ptx: str) -> None:
    launch = launch_of("waits_for_later_block", (70, 1, 1), (32, 1, 1), [np.zeros(2, np.int32)])
    (out,), _ = execute(ptx, launch)
    assert out.tolist() == [42, 41]


def test_printf_in_the_order_of_blocks(ptx: str) -> None:
    _, result = execute(ptx, launch_of("says", (3, 1, 1), (40, 1, 1), [np.int32(2)]))
    expected = "".join(
        f"{b}/{t}  2.26|2   |00ab|-1099511627776|{'odd' if t else 'even'}|{'ab'[t]}%|0x1234\n"
        for b in range(3)
        for t in range(2)
    )
    assert result.output == expected


def test_the_print_buffer_is_bounded(ptx: str) -> None:
    _, result = execute(ptx, launch_of("shouts", (1, 1, 1), (32, 1, 1), [np.int32(800)]))
    assert len(result.output) < (1 << 20) + 4000
    lines = result.output.splitlines()
    lost = 32 * 800 - (len(lines) - 1)
    assert lines[-1] == f"[{lost} more printf calls found the buffer full]"
    assert lost > 0


def test_a_failed_assertion(ptx: str) -> None:
    launch = launch_of("asserts", (1, 1, 1), (64, 1, 1), [np.zeros(1, np.int32)])
    with pytest.raises(UserError, match="assertion `t") as caught:
        execute(ptx, launch)
    assert "kernel.cu:" in caught.value.message
    assert "asserts" in caught.value.message
    assert "block (0, 0, 0), thread (40, 0, 0)" in caught.value.detail


def test_a_null_pointer_is_named(ptx: str) -> None:
    launch = launch_of("null", (1, 1, 1), (32, 1, 1), [np.int64(0)])
    with pytest.raises(UserError, match="null pointer: global address 0x8") as caught:
        execute(ptx, launch)
    assert "thread (0, 0, 0)" in caught.value.detail


_CLUSTERED = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
\t.reg .b32 %r<6>;
\t.reg .b64 %rd<3>;
\tld.param.u64 %rd1, [out];
\tmov.u32 %r1, %cluster_nctarank;
\tmov.u32 %r2, %cluster_ctarank;
\tmov.u32 %r3, %nclusterid.x;
\tst.global.u32 [%rd1], %r1;
\tst.global.u32 [%rd1+4], %r2;
\tst.global.u32 [%rd1+8], %r3;
\tWAIT
\tret;
}
"""


def clustered(wait: str, cluster: tuple[int, int, int] | None) -> list[int]:
    launch = launch_of("k", (6, 1, 1), (32, 1, 1), [np.zeros(3, np.int32)])
    launch.cluster = cluster
    (out,), _ = execute(_CLUSTERED.replace("WAIT", wait), launch)
    return [int(v) for v in out]


@pytest.mark.parametrize("cluster", [None, (1, 1, 1)])
def test_a_block_is_a_cluster_of_its_own(cluster: tuple[int, int, int] | None) -> None:
    assert clustered("", cluster) == [1, 0, 6]


def test_clusters_of_several_blocks_are_refused_by_name() -> None:
    with pytest.raises(UserError, match="clusters of several blocks: k asks for 2 x 1 x 1"):
        clustered("", (2, 1, 1))
    with pytest.raises(UserError) as caught:
        clustered("barrier.cluster.arrive;", None)
    assert "barrier of a cluster" in caught.value.detail


@pytest.mark.parametrize("refused", ["clusters of several blocks", "all 200 blocks"])
def test_a_launch_that_is_refused_is_not_compiled(
    refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("gpuwatch.device.sim.kernel.generate")
    launch = launch_of("k", (200, 1, 1), (1024, 1, 1), [np.zeros(3, np.int32)])
    launch.cooperative = True
    launch.cluster = (2, 1, 1) if "clusters" in refused else None
    with pytest.raises(UserError, match=refused):
        execute(_CLUSTERED.replace("WAIT", ""), launch)


@pytest.mark.parametrize(
    ("kernel", "blocks", "threads"), [("tiny", 800_000, 32), ("counts", 1152, 768)]
)
def test_many_blocks_that_end_soon_are_stopped_in_time(
    ptx: str, kernel: str, blocks: int, threads: int
) -> None:
    launch = launch_of(kernel, (blocks, 1, 1), (threads, 1, 1), [np.zeros(3125, np.uint32)])
    with pytest.raises(UserError, match=r"did not end within 0\.3 s") as caught:
        execute(ptx, launch, timeout=0.3)
    assert caught.value.status == 1
    assert f"kernel {kernel}, block (" in caught.value.detail


def at_the_third_question() -> Interrupt:
    questions = iter((False, False, True))
    return lambda: next(questions)


def loaded(ptx: str, kernel: str, blocks: int) -> SimKernel:
    launch = launch_of(kernel, (blocks, 1, 1), (32, 1, 1), [np.zeros(blocks, np.uint32)])
    return open_sim("a10", threads=1).load(KernelImage(kernel, ptx, b"", 32, 0), launch, [])


def written(kernel: SimKernel) -> list[int]:
    return kernel.read_buffers()[0].view(np.uint32).tolist()


def test_a_launch_ended_early_leaves_nothing_behind(ptx: str) -> None:
    """Neither the first one, before which single blocks run, nor a later one."""
    undisturbed = loaded(ptx, "one_is_long", 100)
    whole, result = undisturbed.run(), written(undisturbed)
    undisturbed.close()
    kernel = loaded(ptx, "one_is_long", 100)
    with pytest.raises(GaveWay):
        kernel.run(at_the_third_question())
    assert [k for k, value in enumerate(written(kernel)) if value] == [LONG_BLOCK]
    for _ in range(2):
        assert kernel.run() == whole
        assert written(kernel) == result
        with pytest.raises(GaveWay):
            kernel.run(at_the_third_question())
        assert written(kernel)[LONG_BLOCK - 1] == result[LONG_BLOCK - 1]
        assert written(kernel)[LONG_BLOCK] == 1
    kernel.close()


def test_local_memory_is_as_at_first_behind_a_launch_ended_early() -> None:
    kernel = loaded(LEFT_IN_LOCAL, "leaves", 1)
    kernel.run()
    assert written(kernel) == [0]
    with pytest.raises(GaveWay):
        kernel.run(at_the_third_question())
    kernel.run()
    assert written(kernel) == [0]
    kernel.close()


_MEASURE = """
import resource, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from sim_support import launch_of
from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
def peak():
    status = open("/proc/self/status").read()
    return int(status.partition("VmHWM:")[2].split()[0])
blocks, out = int(sys.argv[3]), np.zeros(31250, np.uint32)
launch = launch_of("tiny", (blocks, 1, 1), (256, 1, 1), [out])
image = KernelImage("tiny", open(sys.argv[2]).read(), b"", 16, 0)
kernel = open_sim("a10", timeout=60.0).load(image, launch, [])
before = peak()
kernel.run()
after = peak()
got = kernel.read_buffers()[0].view(np.uint32)
written = blocks * 256 // 8192
assert (got[:written] == np.arange(written) * 8192).all()
print(before, after)
"""


def test_a_million_blocks_need_little_memory(ptx: str, tmp_path: Path) -> None:
    """Kilobytes at the peak: no memory for each block."""
    text = tmp_path / "tiny.ptx"
    text.write_text(ptx)
    arguments = [sys.executable, "-c", _MEASURE, str(Path(__file__).parent), str(text), "1000000"]
    told = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120)
    before, after = map(int, told.stdout.split())
    assert after - before < 50_000
    assert after < 400_000
