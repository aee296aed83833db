"""Presets on whole programs, against what Nsight Compute counted of the same launches on an H200.

counted.json holds l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum and, for comparison only,
smsp__inst_executed.sum: the machine code has other instructions than the PTX that the probes
count. ptxas merges address arithmetic, unrolls loops and drops what it finds unused; only what
it must keep, such as floating-point operations, agrees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.analysis.metrics import lines_of, metrics_of
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.machine_code import with_marks
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session

HERE = Path(__file__).parent
KERNELS = HERE.parents[1] / "kernels"
PROGRAMS = HERE.parent / "benchmarks" / "kernels"
COUNTED = json.loads((HERE / "counted.json").read_text())
QUICK = (
    *("collatz", "convolution", "exponentials", "gather", "histogram_shared", "mandelbrot"),
    *("nbody", "polynomial_fp64", "reduce_shared", "reduce_shuffle", "saxpy_strided", "scan"),
    *("softmax", "stencil", "transpose_naive", "transpose_padded", "transpose_shared"),
    "vector_add",
)
"""Programs that the simulated device runs within seconds: of the others of counted.json, but for
spmv, the figures agree too."""
SPMV_FEWER = 56_854
"""Sectors of loads in PTX of spmv below those of the machine code, 1.6 %: ptxas unrolls its loop,
whose rounds differ from lane to lane, so lanes that run a load of the PTX together run different
ones of the machine code."""
SIZE = 64
TILES = SIZE // 32
WARPS = TILES * SIZE
GEMM = {
    "gemm": (67_108_864, 167_772_160, 8_589_934_592),
    "gemm_tiled": (2_097_152, 8_388_608, 268_435_456),
}
"""Global load requests and sectors of the products at 1024^3 (Nsight Compute), bytes asked for."""


def traffic(source: Path) -> Frame:
    session = Session(Options(str(source), device="sim:h200", probe="gmem_traffic"))
    try:
        session.prepare()
        return session.frame()
    finally:
        session.close()


@pytest.mark.parametrize("name", QUICK)
def test_sectors_are_those_of_the_counter(name: str) -> None:
    frame = traffic(PROGRAMS / f"{name}.cu")
    metrics = metrics_of(frame.maps)
    assert metrics.get("global_load_sectors", 0) == COUNTED[name]["global_load_sectors"]
    assert frame.outputs_identical


def test_a_difference_from_the_counter_is_marked() -> None:
    session = Session(Options(str(PROGRAMS / "spmv.cu"), "sim:h200", probe="gmem_traffic"))
    try:
        session.prepare()
        frame = with_marks(session, session.frame())
    finally:
        session.close()
    counted = COUNTED["spmv"]["global_load_sectors"]
    assert metrics_of(frame.maps)["global_load_sectors"] == counted - SPMV_FEWER
    (found,) = frame.marked
    assert found.map == "global_loads"
    assert found.reason.startswith("repeated where lanes may run different copies: 3 global loads")


@pytest.mark.parametrize("name", GEMM)
def test_matrix_products_move_what_the_counter_says(name: str) -> None:
    metrics = metrics_of(traffic(KERNELS / f"{name}.cu").maps)
    requests, sectors, asked = GEMM[name]
    assert metrics["global_load_requests"] == requests
    assert metrics["global_load_sectors"] == sectors == COUNTED[name]["global_load_sectors"]
    assert metrics["global_load_bytes"] == 32 * sectors
    assert metrics["global_load_bytes_asked"] == asked
    assert metrics["global_store_sectors"] == 131_072
    assert metrics["global_store_bytes_asked"] == 4_194_304


@pytest.fixture(scope="module")
def small() -> Iterator[Session]:
    """The tiled product of matrices of 64 x 64, which fill their tiles."""
    options = Options(str(KERNELS / "gemm_tiled.cu"), "sim:h200", arguments=(str(SIZE),) * 3)
    session = Session(options)
    yield session
    session.close()


def test_instruction_mix_of_a_product(small: Session) -> None:
    small.select(probe="instr_mix")
    metrics = metrics_of(small.frame().maps)
    assert metrics["flop"] == 2 * SIZE**3
    by_class = metrics["warp_instructions_by_class"]
    assert isinstance(by_class, dict)
    assert by_class["fp32"] >= SIZE**3 // 32
    assert by_class["barrier"] == 2 * TILES * WARPS
    by_thread = metrics["thread_instructions_by_class"]
    assert isinstance(by_thread, dict)
    assert by_thread == {name: 32 * count for name, count in by_class.items()}


def test_conflicts_of_a_product(small: Session) -> None:
    small.select(probe="smem_conflicts")
    metrics = metrics_of(small.frame().maps)
    assert metrics["shared_load_requests"] == 2 * SIZE * WARPS
    assert metrics["shared_store_requests"] == 2 * TILES * WARPS
    assert metrics["shared_load_conflicts"] == metrics["shared_store_conflicts"] == 0


def test_barriers_of_a_product(small: Session) -> None:
    small.select(probe="barrier_wait")
    waits = small.frame().maps
    assert metrics_of(waits)["barrier_passes"] == 2 * TILES * WARPS
    assert [line["barrier_passes"] for line in lines_of(waits)] == [TILES * WARPS] * 2


def test_branches_of_a_product(small: Session) -> None:
    small.select(probe="divergence")
    metrics = metrics_of(small.frame().maps)
    assert metrics["branch_efficiency"] == 1.0 and metrics["active_lanes_mean"] == 32


def test_latency_and_pages_of_a_product(small: Session) -> None:
    small.select(probe="mem_latency")
    metrics = metrics_of(small.frame().maps)
    latency = metrics["load_latency"]
    assert isinstance(latency, dict) and latency["p50"] > 16
    assert metrics["loads_measured"] == 2 * TILES * WARPS
    small.select(probe="dmat")
    pages = small.frame().maps[0].buckets
    assert pages is not None and pages.counts.sum() == 2 * TILES * WARPS + WARPS
