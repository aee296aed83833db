"""Counting executions gives what saving at each of them gives, however lanes part."""

from __future__ import annotations

import importlib
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from weaving import HEADER, kernel, launch_of, read_maps

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.instrument import gather, lay_out, weave
from gpuwatch.instrument.model import Woven
from gpuwatch.launch.model import Dim3
from gpuwatch.probe import load, parse_python
from gpuwatch.probe.model import Program
from gpuwatch.ptx import flow, parse
from gpuwatch.ptx.convergence import Convergence, converge
from gpuwatch.ptx.model import Function, Instruction

GRID: Dim3 = (2, 1, 1)
SUMS = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="{level}", type="reduce")
class sums:
    led: gl.u64
    lanes: gl.u32
    sevens: gl.u64
    squares: gl.u64
    bytes: gl.u64
    sectors: gl.u64


@probe(pos="st.global:ld.global", level="thread", before=True)
def access():
    sums.save(gl.leads, 1, 7, gl.active, gl.bytes, gl.sectors())
"""
LABELLED = """

@Map(level="kernel", type="reduce")
class odd:
    lanes: gl.u64


@probe(pos="xor", level="thread", before=True)
def parting():
    if gl.laneid() % 2 == 1:
        odd.save(1)
"""
"""A probe in which lanes part."""

WEAVING = importlib.import_module("gpuwatch.instrument.weave")
Records = dict[str, tuple[list[int], list[tuple[int, ...]]]]


def behind(function: Function, parted: Iterable[int]) -> set[int]:
    """The instructions at these statements, and all that control comes to from there."""
    indices = [k for k, one in enumerate(function.body or ()) if isinstance(one, Instruction)]
    steps = flow.basic_blocks(flow.Code.of(function), cut_at=range(len(indices)))
    found: set[int] = set()
    waiting = [bisect_left(indices, one) for one in parted]
    while waiting:
        number = waiting.pop()
        if number < len(steps) and number not in found:
            found.add(number)
            waiting += steps[number].successors
    return {indices[number] for number in found}


def converged(
    function: Function, strides: Mapping[str, int | None], parted: Collection[int]
) -> Convergence | None:
    """What is known of the lanes: nothing at places that come behind one where they part."""
    known = converge(function, strides, parted)
    if known:
        later = behind(function, parted)
        assert not any(known.head(index) is not None for index in later)
        places = {one.statement for each in known.departures.values() for one in each}
        assert later.isdisjoint(places)
    return known


def counted(
    text: str, program: Program, block: Dim3, words: int, counting: bool
) -> tuple[Woven, Records, bytes]:
    """What the maps hold, with executions counted or every value added up, and the output."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gather, "MOST_WORDS", words)
        if not counting:
            patched.setattr(WEAVING, "converge", lambda *_: None)
        else:
            patched.setattr(WEAVING, "converge", converged)
        woven = weave(parse(text), "k", program, (GRID, block))
    layout = lay_out(woven, GRID, block)
    device = open_sim("h200", threads=1)
    image = KernelImage("k", woven.text, b"", 40, 4096, woven.pointer_variable)
    loaded = device.load(image, launch_of(GRID, block, 3), layout.buffers)
    try:
        loaded.run()
        maps, _ = read_maps(loaded, layout)
        output = loaded.read_buffers()[0].tobytes()
        found = {name: (one.slots.tolist(), one.records.tolist()) for name, one in maps.items()}
        return woven, found, output
    finally:
        loaded.close()
        device.close()


@dataclass(frozen=True)
class Step:
    """`first` and `second` are the ways of a branch, or a loop and what breaks out of it skip."""

    name: str
    first: tuple[Step, ...] = ()
    second: tuple[Step, ...] = ()


LEAF = st.sampled_from(
    ["work", "store", "load", "stride", "leave", "break", "vote", "call", "wait", "swap"]
).map(Step)
NESTING = st.sampled_from(["alike", "apart", "rounds", "ragged", "stay"])


def _nested(inner: st.SearchStrategy[tuple[Step, ...]]) -> st.SearchStrategy[tuple[Step, ...]]:
    other = st.one_of(st.just(()), inner)
    return st.lists(
        st.one_of(LEAF, st.builds(Step, NESTING, inner, other)), min_size=1, max_size=4
    ).map(tuple)


STEPS = st.recursive(
    st.lists(LEAF, min_size=1, max_size=3).map(tuple), _nested, max_leaves=8
)  # fmt: skip
"""Programs: work, accesses, early exits, breaks, branches and loops that part lanes or do not."""
SOME = """\
setp.gt.u32 %t{number}, %i3, {lane}; activemask.b32 %w2; \
vote.sync.ballot.b32 %w2, %t{number}, %w2; @%t{number}"""
"""A guard, and in %w2 the mask of the lanes that are here and for which it holds."""
LINES = {
    "work": "xor.b32 %w1, %w1, {number};",
    "store": "st.global.u32 [%a1], %w1;",
    "load": "ld.global.u32 %w2, [%a1];",
    "stride": "ld.global.u32 %w2, [%a2];",
    "vote": "activemask.b32 %w2; vote.sync.ballot.b32 %w2, %t0, %w2;",
    "call": "call f;",
    "wait": f"{SOME} bar.warp.sync %w2;",
    "swap": f"{SOME} shfl.sync.bfly.b32 %w5, %w1, 0, 31, %w2;",
    "leave": "setp.eq.u32 %t{number}, %i3, {lane}; @%t{number} ret;",
    "break": "setp.eq.u32 %t{number}, %w3, {lane}; @%t{number} bra {out};",
    "alike": "setp.lt.u32 %t{number}, %i11, {same}; @%t{number} bra E{number};",
    "apart": "setp.lt.u32 %t{number}, %i3, {lane}; @%t{number} bra E{number};",
}
BOUNDS = {"rounds": "%i11", "ragged": "%w4", "stay": "2"}


def lines_of(steps: Iterable[Step], names: Iterator[int], out: str = "END") -> Iterator[str]:
    """`out` is the label behind the innermost loop, or that of the kernel's end."""
    for step in steps:
        number = next(names)
        if step.name in BOUNDS:
            yield from _loop(step, number, names, out)
            continue
        yield LINES[step.name].format(
            number=number, lane=number % 29 + 2, same=number % 4, out=out
        )  # fmt: skip
        if step.first:
            yield from lines_of(step.first, names, out)
            yield f"bra.uni J{number};" if step.second else ""
            yield f"E{number}:"
            yield from lines_of(step.second, names, out)
            yield f"J{number}:"


def _loop(step: Step, number: int, names: Iterator[int], out: str) -> Iterator[str]:
    yield f"mov.u32 %k{number}, 0;"
    yield f"L{number}: add.u32 %k{number}, %k{number}, 1; and.b32 %w3, %i3, 15;"
    yield from lines_of(step.first, names, f"O{number}")
    yield f"setp.lt.u32 %t{number}, %k{number}, {BOUNDS[step.name]}; @%t{number} bra L{number};"
    yield from lines_of(step.second, names, out)
    yield f"O{number}:"


FUNCTION = ".func f() { .reg .b32 %x; mov.u32 %x, 1; ret; }\n"
REGISTERS = """\
	.reg .b32 %w<6>; .reg .b32 %k<99>; .reg .pred %t<99>;
	mov.u32 %w1, 7; mov.u32 %w2, 0; mov.u32 %w3, 0; and.b32 %w4, %i3, 3; setp.eq.u32 %t0, %w1, 0;
	and.b64 %a2, %a1, -256;
"""


def text_of(steps: Iterable[Step]) -> str:
    body = "\n".join(f"\t{line}" for line in lines_of(steps, count(1)))
    return kernel(f"{REGISTERS}{body}\nEND:\tst.global.u32 [%a1], %w1;\n\tret;\n").replace(
        HEADER, HEADER.replace("sm_86", "sm_90") + FUNCTION, 1
    )


LEVELS = ("kernel", "warp", "thread")
PROGRAMS = [
    load("instr_mix,divergence"),
    load("gmem_traffic"),
    *(parse_python(SUMS.format(level=level), "sums.py") for level in LEVELS),
    parse_python(SUMS.format(level="site") + LABELLED, "sums.py"),
]


@given(
    STEPS,
    st.sampled_from(range(len(PROGRAMS))),
    st.sampled_from([(48, 1, 1), (64, 1, 1), (8, 6, 1)]),
    st.sampled_from([4, 12, 60]),
)
@settings(
    max_examples=8, deadline=None, phases=(Phase.explicit, Phase.generate),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)  # fmt: skip
def test_counts_are_those_of_every_save(
    steps: tuple[Step, ...], number: int, block: Dim3, words: int
) -> None:
    text = text_of(steps)
    _, some, output = counted(text, PROGRAMS[number], block, words, True)
    _, all_, same = counted(text, PROGRAMS[number], block, words, False)
    assert some == all_, text
    assert output == same


WAITING = (
    Step("wait"), Step("load"),
    Step("rounds", (Step("store"), Step("swap"), Step("load"))), Step("store"),
)  # fmt: skip
TO_PARTED = (
    Step("rounds", (Step("load"),)),
    Step("alike", (Step("store"),), (Step("work"), Step("load"))), Step("store"),
)  # fmt: skip


@pytest.mark.parametrize("steps", [WAITING, TO_PARTED], ids=["some wait", "to where lanes part"])
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_counts_where_lanes_may_part(steps: tuple[Step, ...], number: int) -> None:
    _, some, output = counted(text_of(steps), PROGRAMS[number], (64, 1, 1), 60, True)
    _, all_, same = counted(text_of(steps), PROGRAMS[number], (64, 1, 1), 60, False)
    assert some == all_
    assert output == same


LOOP = (Step("leave"), Step("rounds", (Step("load"), Step("work")), (Step("store"),)))


def test_a_loop_whose_lanes_stay_together_costs_one_addition() -> None:
    woven, found, _ = counted(text_of(LOOP), load("instr_mix"), (64, 1, 1), 12, True)
    loop = woven.text.partition("L2:")[2].partition("bra L2")[0]
    assert loop.count("%gpw") == 2, loop
    assert "activemask" not in loop
    assert np.array(found["blocks_run"][1]).sum() > 0


def test_what_parts_lanes_takes_the_head_from_what_follows() -> None:
    program = parse_python(SUMS.format(level="site") + LABELLED, "sums.py")
    woven, some, _ = counted(text_of(LOOP), program, (64, 1, 1), 60, True)
    _, all_, _ = counted(text_of(LOOP), program, (64, 1, 1), 60, False)
    assert some == all_
    loop = woven.text.partition("L2:")[2].partition("bra L2")[0]
    assert "activemask" in loop
