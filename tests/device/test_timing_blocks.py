"""Cycles of basic blocks, and the modelled GEMMs against measured ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sim_support import launch_of

from gpuwatch import ptx
from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim, profiles
from gpuwatch.device.sim.costs import Load, model_costs
from gpuwatch.device.sim.linking import build_program
from gpuwatch.device.sim.opcosts import work_of
from gpuwatch.device.sim.program import Program
from gpuwatch.device.sim.timing import block_timings, loop_depths, request_cycles
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


def chain(body: str) -> int:
    """C of the only block."""
    (timing,) = block_timings(program_of(body), H200, 4)
    return timing.chain


def test_dependent_instructions_wait_for_each_other() -> None:
    step = H200.latency["fp32"]
    body = "fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 10 + "st.global.f32 [%rd1], %f1;\nret;"
    assert chain(body) == pytest.approx(10 * step + 2, abs=2)


def test_independent_loads_overlap() -> None:
    one = chain("ld.global.f32 %f1, [%rd1]; add.f32 %f9, %f1, %f1; ret;")
    assert one >= H200.latency["l1"]
    four = chain(
        "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2]; ld.global.f32 %f3, [%rd3];"
        "ld.global.f32 %f4, [%rd4]; add.f32 %f9, %f1, %f1; ret;"
    )
    assert one <= four <= one + 3


def test_warps_that_share_a_scheduler_issue_in_turn() -> None:
    body = "".join(f"add.f32 %f{k}, %f0, %f0;\n" for k in range(1, 17)) + "ret;"
    few, many = (block_timings(program_of(body), H200, w)[0].cycles for w in (4, 64))
    assert many == 16 * 17
    assert few < many / 8


@pytest.mark.parametrize(
    ("instruction", "cycles"),
    [("add.f64 %d1, %d2, %d2;", 64), ("ex2.approx.f32 %f1, %f2;", 8), ("add.s32 %r1,%r2,%r3;", 2)],
)
def test_narrow_pipes_bound_the_throughput(instruction: str, cycles: int) -> None:
    (timing,) = block_timings(program_of(instruction * 8 + "ret;"), A10, 48)
    assert timing.cycles == pytest.approx(12 * 8 * cycles, rel=0.05)


def test_the_load_store_path_is_shared_by_all_warps_of_the_sm() -> None:
    loads = "".join(f"ld.global.f32 %f{k}, [%rd{k}];\n" for k in range(1, 9)) + "ret;"
    (timing,) = block_timings(program_of(loads), H200, 64)
    assert timing.cycles == round(64 * 8 * 128 / (128 * H200.l1_achieved))
    assert timing.global_accesses == 8
    assert timing.slack == timing.cycles - timing.chain > 0


def test_half_the_load_store_lanes_take_twice_as_long() -> None:
    assert request_cycles(H200, "shared") == 1
    assert request_cycles(A10, "shared") == 2
    assert request_cycles(H200, "shared", 16) == 4


def test_neighbouring_shared_loads_are_one_access() -> None:
    near = "".join(f"ld.shared.f32 %f{k}, [%r1+{4 * k}];\n" for k in range(8))
    apart = "".join(f"ld.shared.f32 %f{k}, [%r1+{128 * k}];\n" for k in range(8))
    moved = near.replace("\n", "\nadd.s32 %r1, %r1, 64;\n")
    joined, single, other = (
        block_timings(program_of(body + "ret;"), H200, 64)[0].cycles
        for body in (near, apart, moved)
    )
    assert joined < single == 64 * 8 <= other


@pytest.mark.parametrize(
    ("text", "kind", "issued"),
    [
        ("mov.u32 %r1, %r2;", "alu", 0),
        ("mov.u32 %r1, %tid.x;", "special", 1),
        ("mov.u32 %r1, 5;", "alu", 1),
        ("cvta.to.global.u64 %rd1, %rd2;", "alu", 0),
        ("add.s64 %rd1, %rd2, %rd3;", "alu", 2),
        ("mul.wide.s32 %rd1, %r1, %r2;", "multiply", 1),
        ("mul.lo.s64 %rd1, %rd2, %rd3;", "multiply", 4),
        ("div.u32 %r1, %r2, %r3;", "alu", 18),
        ("div.rn.f32 %f1, %f2, %f3;", "fp32", 10),
        ("rcp.approx.ftz.f32 %f1, %f2;", "transcendental", 1),
        ("cvt.rn.f64.s32 %d1, %r1;", "convert64", 1),
        ("cvt.s64.s32 %rd1, %r1;", "alu", 2),
        ("setp.lt.f32 %p1, %f1, %f2;", "alu", 1),
        ("popc.b32 %r1, %r2;", "bits", 1),
        ("shfl.sync.up.b32 %r1, %r2, 1, 0, -1;", "shuffle", 1),
    ],
)
def test_work_of(text: str, kind: str, issued: int) -> None:
    work = work_of(program_of(text).instructions[0])
    assert (work.kind, work.issued) == (kind, issued)


def test_loop_depths() -> None:
    program = program_of(
        "mov.u32 %r1, 0;\nA:\nadd.s32 %r1, %r1, 1;\nB:\nadd.s32 %r2, %r2, 1;\n"
        "setp.lt.s32 %p1, %r2, 9;\n@%p1 bra B;\nsetp.lt.s32 %p2, %r1, 9;\n@%p2 bra A;\nret;"
    )
    assert loop_depths(program.blocks) == [0, 1, 2, 1, 0]


def test_a_miss_costs_what_other_warps_do_not_hide() -> None:
    program = program_of("ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd2], %f1; ret;")
    alone = model_costs(program, H200, Load(1, 1, 1, 1 << 20))
    full = model_costs(program, H200, Load(10000, 2, 64, 1 << 20))
    assert alone.miss == round(H200.latency["l2"] - H200.latency["l1"])
    assert 0 <= full.miss < alone.miss
    in_dram = model_costs(program, H200, Load(1, 1, 1, 1 << 30))
    assert alone.miss < in_dram.miss < H200.latency["dram"]


def test_a_launch_is_not_faster_than_dram() -> None:
    program = program_of("ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd2], %f1; ret;")
    footprint, blocks = 1 << 30, 100_000
    costs = model_costs(program, H200, Load(blocks, 2, 64, footprint))
    waves = blocks / (2 * H200.sm_count)
    assert costs.blocks[0] * waves >= footprint / H200.dram_bandwidth


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
