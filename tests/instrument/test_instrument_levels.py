"""Thread-level probes, several saves to a slot, conditional saves, two probes at once."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from test_instrument_runs import KERNELS, SHAPES
from weaving import kernel, run

from gpuwatch.launch.model import Dim3
from gpuwatch.probe import parse_python, parse_toml

THREADS = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="thread", type="array", size={size}, cap=1)
class ends:
    start: gl.u64
    number: gl.u32


begun: gl.u64 = 0


@probe(pos="kernel", level="thread", before=True)
def enter():
    begun = gl.clock()


@probe(pos="kernel", level="thread")
def leave():
    ends.save(begun, gl.thread_x + gl.block_x * gl.block_dim_x)
"""
THREADS_TOML = '''\
regs = 2
[probe.ends]
level = "thread"
pos = "kernel"
before = "mov.u64 %NR0, %clock64;"
after = """
.reg .b32 %x<4>;
mov.u32 %x0, %tid.x; mov.u32 %x1, %ctaid.x; mov.u32 %x2, %ntid.x;
mad.lo.u32 %x3, %x1, %x2, %x0; cvt.u64.u32 %NR1, %x3;
SAVE [ ends ] { %NR0, %NR1 }
"""
[map.ends]
level = "thread"
regs = { start = "u64", number = "u64" }
'''
BRANCHING = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="thread", type="array", size=8, cap=2)
class marks:
    number: gl.u32


number: gl.u32 = 7


@probe(pos="kernel", level="thread")
def leave():
    if gl.thread_x < 10:
        marks.save(number)
        number = number + 1
        marks.save(number)
        marks.save(number + 1)
    else:
        marks.save(gl.thread_x)
"""
TWICE = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="warp", type="array", size=8, cap=4)
class ends:
    number: gl.u32


@probe(pos="kernel", level="warp")
def leave():
    ends.save(1)
    ends.save(2)
"""
SOME_AGAIN = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="{level}", type="reduce")
class sums:
    ones: gl.u64
    twos: gl.u64


@probe(pos="{position}", level="thread", before=True)
def access():
    sums.save(1, 2)
    if gl.laneid() > 3:
        sums.save(1, 2)
"""
PROGRAMS = {
    "python": parse_python(THREADS.format(size=16), "ends.py"),
    "split words": parse_python(THREADS.format(size=20), "ends.py"),
    "toml": parse_toml(THREADS_TOML, "ends.toml"),
}


@pytest.mark.parametrize("form", PROGRAMS)
@pytest.mark.parametrize(
    "name", ["early return, then a loop", "lanes return one by one", "two ways out"]
)
def test_each_thread_leaves_one_record(name: str, form: str) -> None:
    probed = run(KERNELS[name], PROGRAMS[form], (3, 1, 1), (48, 1, 1), n=20)
    assert np.array_equal(probed.plain, probed.output)
    assert probed.counts["ends"].tolist() == [1] * 144
    assert probed.maps["ends"].column("number").tolist() == list(range(144))
    assert (probed.maps["ends"].column("start") < 1 << 40).all()


@pytest.mark.parametrize(("grid", "block"), SHAPES)
def test_threads_have_slots_of_their_own_in_any_shape(grid: Dim3, block: Dim3) -> None:
    probed = run(KERNELS["exit"], PROGRAMS["python"], grid, block)
    threads = prod(grid) * prod(block)
    assert probed.counts["ends"].tolist() == [1] * threads
    x = (np.arange(threads) % prod(block)) % block[0]
    blocks = (np.arange(threads) // prod(block)) % grid[0]
    assert np.array_equal(probed.maps["ends"].column("number"), x + blocks * block[0])


def test_saves_beyond_the_capacity_are_counted_and_dropped() -> None:
    program = parse_python(BRANCHING, "marks.py")
    probed = run(KERNELS["branch over the work"], program, (2, 1, 1), (33, 1, 1), n=5)
    assert np.array_equal(probed.plain, probed.output)
    marks = probed.maps["marks"]
    assert probed.counts["marks"].tolist() == ([3] * 10 + [1] * 23) * 2
    assert marks.dropped == 20
    assert marks.column("number").tolist() == ([7, 8] * 10 + list(range(10, 33))) * 2


@pytest.mark.parametrize(
    "name",
    [
        "early return, then a loop",
        "negated exit",
        "lanes return one by one",
        "two ways out",
        "barrier after a partial exit",
    ],
)
def test_a_warp_ends_once_however_its_lanes_leave(name: str) -> None:
    """Counted by the slot: each group of lanes that saved would add its saves."""
    probed = run(KERNELS[name], parse_python(TWICE, "ends.py"), (2, 1, 1), (48, 1, 1), n=20)
    assert probed.counts["ends"].tolist() == [2] * probed.warps
    assert probed.maps["ends"].column("number").tolist() == [1, 2] * probed.warps


@pytest.mark.parametrize("level", ["site", "kernel", "warp"])
@pytest.mark.parametrize("position", ["st.global", "kernel"])
def test_lanes_that_branch_off_save_with_a_leader_of_their_own(position: str, level: str) -> None:
    program = parse_python(SOME_AGAIN.format(level=level, position=position), "sums.py")
    probed = run(kernel("\tst.global.u32 [%a1], 1;\n\tret;\n"), program, (1, 1, 1), (32, 1, 1))
    assert np.array_equal(probed.plain, probed.output)
    assert probed.maps["sums"].records.tolist() == [(60, 120)]
