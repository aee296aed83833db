"""Cycles of basic blocks, and the modelled GEMMs against measured ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sim_support import launch_of

from gpuwatch import ptx
from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim, profiles
from gpuwatch.device.sim.costs import Costs, Load, resource_costs
from gpuwatch.device.sim.linking import build_program
from gpuwatch.device.sim.opcosts import work_of
from gpuwatch.device.sim.profiles import Profile
from gpuwatch.device.sim.program import Program
from gpuwatch.device.sim.timing import WINDOW, BlockTiming, block_timings, request_cycles
from gpuwatch.toolchain import compile_to_ptx, find

KERNELS = Path(__file__).parents[2] / "kernels"
H200 = profiles.load("h200")
A10 = profiles.load("a10")


def program_of(body: str) -> Program:
    module = ptx.parse(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n"
        ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .f64 %d<20>;\n"
        ".reg .pred %p<5>; .shared .align 16 .b8 sm[1024];\n" + body + "\n}\n"
    )
    return build_program(module, module.entries()[0])


def timing(body: str, profile: Profile = H200) -> BlockTiming:
    """That of the only block."""
    (found,) = block_timings(program_of(body), profile)
    return found


def chain(body: str) -> float:
    return timing(body).chain


def test_dependent_instructions_wait_for_each_other() -> None:
    step = H200.latency["fp32"]
    body = "fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 10 + "st.global.f32 [%rd1], %f1;\nret;"
    assert chain(body) == pytest.approx(10 * step, abs=1)


def test_independent_loads_overlap() -> None:
    one = chain("ld.global.f32 %f1, [%rd1]; add.f32 %f9, %f1, %f1; ret;")
    assert one >= H200.latency["l1"]
    four = chain(
        "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2]; ld.global.f32 %f3, [%rd3];"
        "ld.global.f32 %f4, [%rd4]; add.f32 %f9, %f1, %f1; ret;"
    )
    assert one <= four <= one + 3


def test_loads_wait_behind_stores_of_their_space() -> None:
    slow = "fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 10
    load = "ld.global.f32 %f2, [%rd2]; add.f32 %f9, %f2, %f2; ret;"
    beside = chain(slow + "st.shared.f32 [%r1], %f1;" + load)
    assert chain(slow + "st.global.f32 [%rd1], %f1;" + load) > beside + 30


def test_loads_are_brought_forward_only_so_far() -> None:
    def two_chains(count: int) -> float:
        first, second = (f"ex2.approx.ftz.f32 %f{k}, %f{k};\n" * count for k in (1, 2))
        return chain(first + "ld.global.f32 %f2, [%rd1];" + second + "ret;")

    step = H200.latency["transcendental"]
    side_by_side = H200.latency["l1"] + (WINDOW - 1) * step
    assert two_chains(WINDOW) == pytest.approx(side_by_side, abs=2)
    behind = two_chains(WINDOW + 10) - 10 * step
    assert behind == pytest.approx(side_by_side + 10 * step, abs=2)


def test_how_many_loads_are_under_way_at_once() -> None:
    apart = timing("ld.global.u64 %rd1, [%rd5]; ld.global.u64 %rd2, [%rd6]; ret;")
    linked = timing("ld.global.u64 %rd1, [%rd5]; ld.global.u64 %rd2, [%rd1]; ret;")
    assert (apart.overlap, linked.overlap) == (2, 1)


@pytest.mark.parametrize(("step", "overlap"), [("1", 4), ("%r5", 1)])
def test_ptxas_unrolls_small_loops_that_count(step: str, overlap: int) -> None:
    program = program_of(
        f"A: ld.global.f32 %f1, [%rd1]; add.f32 %f2, %f2, %f1; add.s32 %r1, %r1, {step};"
        "add.s64 %rd1, %rd1, 4; setp.lt.s32 %p1, %r1, %r9; @%p1 bra A; st.global.f32 [%rd2], %f2;"
        "ret;"
    )
    assert block_timings(program, H200)[0].overlap == overlap


@pytest.mark.parametrize(
    ("instruction", "unit", "cycles"),
    [
        ("add.f64 %d1, %d2, %d2;", "fp64", 64),
        ("ex2.approx.f32 %f1, %f2;", "transcendental", 8),
        ("and.b32 %r1, %r2, %r3;", "alu", 2),
        ("add.s32 %r1, %r2, %r3;", "issue", 1),
    ],
)
def test_narrow_units_bound_the_throughput(instruction: str, unit: str, cycles: int) -> None:
    assert timing(instruction * 8 + "ret;", A10).busy[unit] == pytest.approx(8 * cycles, abs=1)


def test_half_the_load_store_lanes_take_twice_as_long() -> None:
    assert request_cycles(H200, "shared") == 1
    assert request_cycles(A10, "shared") == 2
    assert request_cycles(H200, "shared", 16) == 2


def test_neighbouring_shared_loads_are_one_access() -> None:
    near = "".join(f"ld.shared.f32 %f{k}, [%r1+{4 * k}];\n" for k in range(8))
    apart = "".join(f"ld.shared.f32 %f{k}, [%r1+{128 * k}];\n" for k in range(8))
    moved = near.replace("\n", "\nadd.s32 %r1, %r1, 64;\n")
    joined, single, other = (timing(body + "ret;").busy["path"] for body in (near, apart, moved))
    assert joined == 2 * 2
    assert single == other == 8


def test_a_product_joins_the_sum_that_takes_it() -> None:
    product = "mul.wide.s32 %rd1, %r1, 4;"
    assert timing(product + "add.s64 %rd2, %rd5, %rd1; ret;").busy["issue"] == 2
    assert timing(product + "add.s64 %rd2, %rd5, %rd6; ret;").busy["issue"] == 4


@pytest.mark.parametrize(
    ("text", "kind", "issued"),
    [
        ("mov.u32 %r1, %r2;", "alu", 0),
        ("mov.u32 %r1, %tid.x;", "special", 1),
        ("mov.u32 %r1, 5;", "alu", 1),
        ("cvta.to.global.u64 %rd1, %rd2;", "alu", 0),
        ("add.s64 %rd1, %rd2, %rd3;", "alu", 2),
        ("add.s32 %r1, %r2, %r3;", "fp32", 1),
        ("mov.u64 %rd1, %clock64;", "alu", 2),
        ("mul.wide.s32 %rd1, %r1, %r2;", "multiply", 1),
        ("mul.lo.s64 %rd1, %rd2, %rd3;", "multiply", 4),
        ("div.u32 %r1, %r2, %r3;", "alu", 14),
        ("div.rn.f32 %f1, %f2, %f3;", "fp32", 10),
        ("rcp.approx.ftz.f32 %f1, %f2;", "transcendental", 1),
        ("cvt.rn.f64.s32 %d1, %r1;", "convert64", 1),
        ("cvt.s64.s32 %rd1, %r1;", "alu", 2),
        ("setp.lt.f32 %p1, %f1, %f2;", "alu", 1),
        ("rsqrt.approx.f32 %f1, %f2;", "transcendental", 1),
        ("popc.b32 %r1, %r2;", "bits", 1),
        ("shfl.sync.up.b32 %r1, %r2, 1, 0, -1;", "shuffle", 1),
    ],
)
def test_work_of(text: str, kind: str, issued: int) -> None:
    work = work_of(program_of(text).instructions[0])
    assert (work.kind, work.issued) == (kind, issued)


LOAD_AND_STORE = "ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd2], %f1; ret;"


def of_resource(load: Load, name: str, body: str = LOAD_AND_STORE) -> Costs:
    """What the launch adds up when only that resource counts."""
    costs = resource_costs(program_of(body), H200, load)
    return costs.combined(np.array([float(n == name) for n in costs.names]))


def test_warps_that_share_a_scheduler_issue_in_turn() -> None:
    body = "".join(f"add.f32 %f{k}, %f0, %f0;\n" for k in range(1, 17)) + "ret;"
    few, many = (of_resource(Load(1, 1, w, 0), "issue", body).blocks[0] for w in (4, 64))
    assert (few, many) == (17, 16 * 17)


def test_all_warps_of_the_sm_share_the_load_store_path() -> None:
    loads = "".join(f"ld.global.f32 %f{k}, [%rd{k}];\n" for k in range(1, 9)) + "ret;"
    costs = of_resource(Load(1, 1, 64, 0), "path", loads)
    assert costs.blocks[0] == round(64 * 8 * 128 / (128 * H200.l1_achieved))


def test_a_miss_waits_for_where_the_line_is() -> None:
    in_l2, in_dram = (
        of_resource(Load(1, 1, 1, size), "chain").misses[0] for size in (1 << 20, 1 << 34)
    )
    assert in_l2 == round(H200.latency["l2"] - H200.latency["l1"])
    assert in_dram == pytest.approx(H200.latency["dram"] - H200.latency["l1"], rel=0.01)


def test_sms_share_the_l2_but_one_alone_cannot_take_it_all() -> None:
    alone, all_of_them = (of_resource(Load(n, 1, 64, 0), "far").sector for n in (1, 1000))
    assert alone == round(64 * 32 / H200.l2_sm_bandwidth)
    assert all_of_them == round(64 * 32 * H200.sm_count / H200.l2_bandwidth)


def test_only_buffers_beyond_the_l2_use_dram() -> None:
    inside, beyond = (
        of_resource(Load(1000, 1, 64, size), "dram").sector
        for size in (H200.l2_bytes, H200.l2_bytes + 1)
    )
    assert inside == 0
    assert beyond == round(64 * 32 * H200.sm_count / H200.dram_bandwidth)


def test_the_cost_where_nothing_is_known_is_that_of_the_slowest_resource() -> None:
    costs = resource_costs(program_of(LOAD_AND_STORE), H200, Load(1000, 1, 64, 0))
    highest = costs.highest()
    for k in range(len(costs.names)):
        one = costs.combined(np.eye(len(costs.names))[k])
        assert one.blocks[0] <= highest.blocks[0]
        assert one.sector <= highest.sector


def gemm(source: str, profile: str, rows: int, size: int) -> float:
    """Modelled seconds of a square GEMM in blocks of 32 x `rows` threads."""
    device = open_sim(profile)
    text = compile_to_ptx(find(), KERNELS / source, device.info.arch)
    entry = ptx.parse(text).entries()[0].name
    matrices = [np.ones((size, size), np.float32) for _ in range(3)]
    grid = (size // 32, -(-size // rows), 1)
    sizes = [np.int32(size)] * 3
    loaded = device.load(
        KernelImage(entry, text, b"", 32, 0),
        launch_of(entry, grid, (32, rows, 1), [*matrices, *sizes]),
        [],
    )
    try:
        return loaded.run().kernel_seconds
    finally:
        loaded.close()


@pytest.mark.parametrize(
    ("source", "rows", "microseconds"),
    [("gemm.cu", 32, 365), ("gemm.cu", 24, 375), ("gemm_tiled.cu", 32, 252)],
)
def test_gemm_on_h200_is_near_the_measured_time(
    source: str, rows: int, microseconds: float
) -> None:
    """Medians measured on an H200 at 1024 x 1024 x 1024."""
    assert gemm(source, "h200", rows, 1024) * 1e6 == pytest.approx(microseconds, rel=0.15)


@pytest.mark.parametrize("profile", ["a10", "h200", "t4", "a100"])
def test_tiling_pays_everywhere(profile: str) -> None:
    rows = 24 if profile in ("a10", "t4") else 32
    assert gemm("gemm_tiled.cu", profile, 32, 512) < gemm("gemm.cu", profile, rows, 512)
