"""Weaving for a launch of known shape, and where the pointers to the maps lie."""

from __future__ import annotations

import numpy as np
import pytest
from weaving import HEADER, kernel

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.known import fold, known_registers
from gpuwatch.launch.model import Dim3, Launch, Relocation
from gpuwatch.probe import load, parse_python
from gpuwatch.ptx import parse

BODY = "\tst.global.u32 [%a1], %i10;\n\tret;\n"
SHAPES: list[tuple[Dim3, Dim3]] = [
    ((5, 1, 1), (48, 1, 1)),
    ((2, 3, 1), (8, 4, 2)),
    ((1, 2, 2), (1, 1, 5)),
    ((1, 1, 1), (1024, 1, 1)),
]
THREADS = '''"""Where each thread stands."""

import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="thread", size=16, cap=1)
class stand:
    thread: gl.u32
    block: gl.u32
    warp: gl.u64


@probe(pos="kernel", level="thread")
def leave():
    stand.save(gl.thread, gl.block, gl.warpid())
'''


def _records(text: str, variable: str, buffers: tuple[int, ...], launch: Launch) -> list[bytes]:
    device = open_sim("a10", threads=1)
    image = KernelImage("k", text, b"", 32, 0, variable)
    loaded = device.load(image, launch, buffers)
    try:
        loaded.run()
        return [loaded.read_map(index).tobytes() for index in range(len(buffers))]
    finally:
        loaded.close()


def _launch(grid: Dim3, block: Dim3) -> Launch:
    threads = int(np.prod(grid)) * int(np.prod(block))
    out = np.zeros(threads * 4, np.uint8)
    parameters = bytes(8) + threads.to_bytes(4, "little")
    return Launch("k", grid, block, 0, (), parameters, (Relocation(0, 0, 0),), [out])


@pytest.mark.parametrize(("grid", "block"), SHAPES)
def test_a_known_shape_gives_the_same_places(grid: Dim3, block: Dim3) -> None:
    module, program = parse(kernel(BODY)), parse_python(THREADS, "stand.py")
    plain, known = weave(module, "k", program), weave(module, "k", program, (grid, block))
    assert plain.text != known.text
    assert plain.sites == known.sites
    layout = lay_out(plain, grid, block)
    launch = _launch(grid, block)
    one, other = (
        _records(each.text, each.pointer_variable, layout.buffers, launch)
        for each in (plain, known)
    )
    assert one == other
    assert any(one[0])


def test_the_kernel_s_own_lines_keep_their_registers() -> None:
    module = parse(kernel(BODY))
    woven = weave(module, "k", load("warp_duration"), ((4, 1, 1), (64, 1, 1)))
    added = set(woven.inserted_lines)
    lines = woven.text.split("\n")
    kept = [line for number, line in enumerate(lines, 1) if number not in added]
    assert "\n".join(kept) == module.text
    assert not any("%ntid" in lines[number - 1] for number in added)


def test_only_moves_are_folded() -> None:
    known = known_registers((4, 1, 1), (64, 2, 1))
    assert fold("\tmov.u32 \t%r1, %ntid.x;", known) == "\tmov.u32 \t%r1, 64;"
    assert fold("\tmov.u32 \t%r1, %tid.z;", known) == "\tmov.u32 \t%r1, 0;"
    for kept in ("\tmov.u32 \t%r1, %tid.x;", "\tadd.u32 \t%r1, %ntid.x, 1;"):
        assert fold(kept, known) == kept


@pytest.mark.parametrize(("taken", "space"), [(65536 - 32, "const"), (65536 - 16, "global")])
def test_the_pointers_go_where_there_is_room(taken: int, space: str) -> None:
    table = f".const .align 8 .b8 table[{taken}];\n"
    text = HEADER + table + kernel(BODY).removeprefix(HEADER)
    full = text.replace("(.param .u64 out", "(.param .b8 much[4080], .param .u64 out")
    woven = weave(parse(full), "k", load("block_sched"))
    assert f".visible .{space} .align 8 .u64 {woven.pointer_variable}[3];" in woven.text
    assert f"ld.{space}.u64" in woven.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (".entry k(.param .u64 out, .param .u32 n\n)", ".param .align 8 .b8 gpuwatch_maps[24]"),
        (".entry k ( // out (\n.param .u64 out, /* ) */ .param .u32 n\n)", ".param .u32 n\n"),
    ],
)
def test_the_pointers_are_the_last_parameter(before: str, after: str) -> None:
    usual = ".entry k(.param .u64 out, .param .u32 n\n)"
    woven = weave(parse(kernel(BODY).replace(usual, before)), "k", load("block_sched"))
    (entry,) = parse(woven.text).entries()
    assert [one.name for one in entry.parameters] == ["out", "n", "gpuwatch_maps"]
    assert after in woven.text
    assert "ld.param.u64" in woven.text


@pytest.mark.parametrize("head", [".entry k", ".entry k()", ".entry k(\n)"])
def test_a_kernel_without_parameters_gets_one(head: str) -> None:
    text = f"{HEADER}.visible {head}\n{{\n\tret;\n}}\n"
    woven = weave(parse(text), "k", load("block_sched"))
    (entry,) = parse(woven.text).entries()
    assert [one.name for one in entry.parameters] == ["gpuwatch_maps"]


def test_a_kernel_that_is_declared_twice_keeps_its_parameters() -> None:
    text = kernel(BODY)
    forward = text.replace(HEADER, HEADER + ".visible .entry k(.param .u64 out, .param .u32 n);\n")
    woven = weave(parse(forward), "k", load("block_sched"))
    assert ".const .align 8 .u64 gpuwatch_maps[3];" in woven.text
