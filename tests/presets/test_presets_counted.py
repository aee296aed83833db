"""Presets on whole programs, against what Nsight Compute counted of the same launches on an H200.

counted.json holds the counters that tests/benchmarks/exactness_table.py sets beside requests and
sectors of the presets and, for comparison only, smsp__inst_executed.sum: the machine code has other
instructions than the PTX that the probes count. Three programs have only the sectors of loads.
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
"""Programs that the simulated device runs within seconds."""
PATTERNS = (
    *("coalesced", "strided", "misaligned", "reversed", "permuted", "narrow", "vectors"),
    *("vectors_in_part", "broadcast", "divergent", "predicated", "uneven_rounds", "atomics"),
    *("shared_columns", "shared_pairs", "shared_runs"),
)
"""Kernels of benchmarks/kernels/access/patterns.cu."""
DIFFERENT = {
    ("vectors_in_part", "global_load_requests"): 2_047,
    ("vectors_in_part", "global_load_sectors"): 32_746,
    ("atomics", "shared_load_requests"): 256,
    ("atomics", "shared_store_requests"): 256,
    ("reduce_shared", "shared_load_requests"): 335_872,
    ("reduce_shared", "shared_store_requests"): 294_912,
    ("scan", "shared_load_requests"): 2_625_536,
    ("softmax", "shared_load_requests"): 524_288,
    ("spmv", "global_load_requests"): 356_806,
    ("spmv", "global_load_sectors"): 3_474_741,
}
"""What the presets count on the H200 where the counters count something else, as marked."""
PROBES = "gmem_traffic,smem_conflicts"
SPACES = ("global", "shared")
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


@pytest.mark.parametrize("name", [*QUICK, "spmv"])
def test_accesses_are_those_of_the_counters(name: str) -> None:
    session = Session(Options(str(PROGRAMS / f"{name}.cu"), "sim:h200", probe=PROBES))
    try:
        session.prepare()
        compare(name, with_marks(session, session.frame()))
    finally:
        session.close()


@pytest.fixture(scope="module")
def patterns() -> Iterator[Session]:
    session = Session(Options(str(PROGRAMS / "access" / "patterns.cu"), "sim:h200"))
    yield session
    session.close()


@pytest.mark.parametrize("name", PATTERNS)
def test_accesses_of_patterns_are_those_of_the_counters(name: str, patterns: Session) -> None:
    patterns.select(kernel=name, probe=PROBES)
    compare(name, with_marks(patterns, patterns.frame()))


def compare(name: str, frame: Frame) -> None:
    """Every figure that was counted, and that each map whose figures differ has a marked line."""
    counted = {key: value for key, value in COUNTED[name].items() if key.startswith(SPACES)}
    expected = {key: DIFFERENT.get((name, key), value) for key, value in counted.items()}
    metrics = metrics_of(frame.maps)
    assert {key: metrics.get(key, 0) for key in expected} == expected
    different = {"_".join(key.split("_")[:2]) + "s" for at, key in DIFFERENT if at == name}
    assert different <= {one.map for one in frame.marked}
    assert frame.outputs_identical


def test_differences_are_differences() -> None:
    assert all(COUNTED[name][key] != value for (name, key), value in DIFFERENT.items())


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


def test_instructions_count_for_the_lines_that_they_come_from(small: Session) -> None:
    small.select(probe="instr_mix")
    maps = small.frame().maps
    text = (KERNELS / "gemm_tiled.cu").read_text().splitlines()
    found = {text[one["line"] - 1].strip(): one for one in lines_of(maps) if one["line"]}  # type: ignore[operator]
    flop = {line: one["flop"] for line, one in found.items() if one["flop"]}
    assert flop == {"sum += tile_A[y][i] * tile_B[i][x];": 2 * SIZE**3}
    assert found["__syncthreads();"]["warp_instructions_by_class"] == {"barrier": TILES * WARPS}
    total = metrics_of(maps)["warp_instructions"]
    assert sum(one["warp_instructions"] for one in lines_of(maps)) == total  # type: ignore[misc]


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
