"""Which blocks lanes are shown to run together, and equally often."""

from __future__ import annotations

import pytest

from gpuwatch.ptx import parse
from gpuwatch.ptx.affine import lane_strides
from gpuwatch.ptx.convergence import ONCE, Convergence, Way, converge
from gpuwatch.ptx.model import Function, Instruction

HEAD = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n)
{
	.reg .b64 %d<9>; .reg .b32 %r<19>; .reg .pred %p, %q, %u, %v;
	mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n];
	setp.lt.u32 %p, %r1, 5; setp.lt.u32 %q, %r1, 9;
	setp.lt.u32 %u, %r2, 5; setp.lt.u32 %v, %r2, 9;
"""
"""%p and %q differ from lane to lane, %u and %v do not."""


def found(body: str, parted: str = "") -> tuple[Function, Convergence]:
    """`parted` is a number that is moved where lanes may part."""
    function = parse(f"{HEAD}{body}\n}}\n").entries()[0]
    places = [at(function, parted)] if parted else []
    known = converge(function, lane_strides(function, (64, 1, 1)), places)
    assert known
    return function, known


ENTRY = next(
    index
    for index, one in enumerate(parse(f"{HEAD}ret;\n}}\n").entries()[0].body or ())
    if isinstance(one, Instruction)
)
"""The head of what all lanes of a warp run together from the beginning on."""


def at(function: Function, number: str) -> int:
    """The statement that moves a number to %r9."""
    for index, one in enumerate(function.body or ()):
        if isinstance(one, Instruction) and one.opcode == "mov" and number in str(one.operands[1]):
            return index
    raise AssertionError(number)


def heads(body: str, *numbers: int, parted: str = "") -> list[int | None]:
    function, known = found(body, parted)
    return [known.head(at(function, f"'{number}'")) for number in numbers]


def move(number: int) -> str:
    return f"mov.u32 %r9, {number};"


UNIFORM = f"{move(101)} @%u bra B; {move(102)} B: {move(103)} ret;"
DIVERGENT = UNIFORM.replace("%u", "%p")
LOOP = f"L: {move(101)} @%u bra M; {move(102)} M: {move(103)} @%v bra L; {move(104)} ret;"


def test_lanes_stay_together_where_all_go_the_same_way() -> None:
    assert heads(UNIFORM, 101, 102, 103) == [ENTRY] * 3


def test_a_branch_that_parts_lanes_heads_its_one_way_but_not_where_ways_meet() -> None:
    first, side, joined = heads(DIVERGENT, 101, 102, 103)
    assert first == ENTRY
    assert side not in (None, ENTRY)
    assert joined is None


def test_a_loop_keeps_its_head_if_all_its_branches_do() -> None:
    assert heads(LOOP, 101, 102, 103, 104) == [ENTRY] * 4
    function, known = found(LOOP.replace("@%u", "@%q"))
    numbers = [known.head(at(function, f"'{number}'")) for number in (101, 102, 103, 104)]
    assert numbers == [None, None, None, None]


def test_nested_loops() -> None:
    inner = f"L: {move(101)} I: {move(102)} @%u bra I; {move(103)} @%v bra L; {move(104)} ret;"
    assert heads(inner, 101, 102, 103, 104) == [ENTRY] * 4
    assert heads(inner.replace("@%u", "@%p"), 101, 102, 103) == [None, None, None]


def test_lanes_that_leave_a_loop_at_different_rounds() -> None:
    broken = f"L: {move(101)} @%p bra OUT; {move(102)} bra L; OUT: {move(103)} ret;"
    assert heads(broken, 101, 102, 103) == [None, None, None]


def test_a_guarded_exit() -> None:
    uniform, parting = (f"{move(101)} @%{one} ret; {move(102)} ret;" for one in "up")
    assert heads(uniform, 101, 102) == [ENTRY, ENTRY]
    first, behind = heads(parting, 101, 102)
    assert first == ENTRY
    assert behind not in (None, ENTRY)


@pytest.mark.parametrize("meeting", ["bar.sync 0;", "shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;"])
def test_waiting_for_others_ends_what_is_known_of_some_lanes(meeting: str) -> None:
    assert heads(f"{move(101)} {meeting} {move(102)} ret;", 101, 102) == [ENTRY, ENTRY]
    assert heads(f"@%p ret; {move(101)} {meeting} {move(102)} ret;", 102) == [None]


@pytest.mark.parametrize("meeting", ["bar.sync 0;", "shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;"])
def test_waiting_of_some_lanes_only_parts_them(meeting: str) -> None:
    text = f"{move(101)} @%p {meeting} {move(102)} ret;"
    assert heads(text, 101, 102) == [ENTRY, None]
    assert heads(text.replace("%p", "%u"), 101, 102) == [ENTRY, ENTRY]


def test_a_call_and_what_lies_behind_an_indirect_branch() -> None:
    text = f"{move(101)} T: .branchtargets A, B; brx.idx %r2, T; A: {move(102)} B: {move(103)} ret;"
    assert heads(text, 101, 102, 103) == [ENTRY, None, None]


def test_where_woven_code_may_part_lanes() -> None:
    text = f"{move(101)} {move(102)} {move(103)} @%u bra E; {move(104)} E: ret;"
    assert heads(text, 101, 102, 103, 104, parted="'102'") == [ENTRY, None, None, None]


@pytest.mark.parametrize("guard", ["%u", "%p"])
def test_a_branch_to_where_woven_code_may_part_lanes(guard: str) -> None:
    text = f"{move(101)} @{guard} bra X; {move(102)} bra.uni Y; X: {move(103)} {move(104)} Y: ret;"
    function, known = found(text, "'103'")
    assert known.head(at(function, "'101'")) == ENTRY
    assert known.head(at(function, "'102'")) is not None
    assert known.head(at(function, "'103'")) is None
    assert known.head(at(function, "'104'")) is None
    places = [one.statement for departures in known.departures.values() for one in departures]
    assert places
    assert max(places) < at(function, "'103'")


def test_lanes_may_part_at_a_label_that_another_follows() -> None:
    function = parse(f"{HEAD}{move(101)} A: B: {move(102)} @%u bra A; ret;\n}}\n").entries()[0]
    known = converge(function, {"%u": 0}, [at(function, "'102'") - 1])
    assert known
    assert known.head(at(function, "'101'")) == ENTRY
    assert known.head(at(function, "'102'")) is None


def test_heads_have_the_same_names_wherever_woven_code_parts_lanes() -> None:
    text = f"@%p bra B; {move(101)} {move(102)} ret; B: {move(103)} {move(104)} ret;"
    assert heads(text, 103, 104) == heads(text, 103, 104, parted="'102'") != [None, None]


def test_an_entry_that_is_gone_back_to_heads_nothing() -> None:
    function = parse(HEAD.replace("\tmov", "S: mov", 1) + f"{move(101)} @%v bra S; ret;\n}}\n")
    entry = function.entries()[0]
    known = converge(entry, lane_strides(entry, (64, 1, 1)))
    assert known
    assert known.head(at(entry, "'101'")) is None


def test_blocks_that_are_run_equally_often() -> None:
    function, known = found(LOOP.replace("@%u", "@%p"))
    first, side, latch, behind = (
        known.executions(at(function, f"'{number}'")) for number in (101, 102, 103, 104)
    )
    assert first == latch
    assert len({first, side, behind}) == 3
    assert behind == ONCE


def test_ways_of_which_one_is_taken_are_run_less_often_than_both() -> None:
    text = f"@%p bra A; {move(101)} bra B; A: {move(102)} B: {move(103)} ret;"
    function, known = found(text)
    one, other, both = (known.executions(at(function, f"'{number}'")) for number in (101, 102, 103))
    assert both == ONCE
    assert one is not None
    assert other is not None
    assert one + other == both


def test_how_often_a_thread_stays_behind_a_branch_back() -> None:
    function, known = found(f"@%p bra E; L: {move(101)} @%q bra L; {move(102)} E: ret;")
    ((branch, stays),) = known.stays.items()
    assert isinstance((function.body or [])[branch], Instruction)
    assert stays == known.executions(at(function, "'102'"))


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        (UNIFORM, [Way.BEFORE]),
        (DIVERGENT, [Way.BEFORE]),
        (LOOP, [Way.BEFORE]),
        (f"@%u ret; {move(101)} ret;", [Way.TAKEN, Way.BEFORE]),
        (f"@%u bra J; @%p bra J; {move(101)} J: {move(102)} ret;", [Way.TAKEN, Way.BEFORE]),
        (f"@%p bra J; @%u bra K; J: {move(102)} K: {move(103)} ret;", [Way.BEFORE]),
        (f"J: {move(101)} @%u bra J; {move(102)} K: @%p bra K; ret;", [Way.BEHIND]),
    ],
)
def test_where_lanes_leave_the_blocks_of_the_entry(body: str, ways: list[Way]) -> None:
    _, known = found(body)
    assert [one.way for one in known.departures[ENTRY]] == ways


def test_departures_of_a_side_way() -> None:
    function, known = found(DIVERGENT)
    head = known.head(at(function, "'102'"))
    assert head is not None
    assert known.departures[head] == [(at(function, "'102'"), Way.BEHIND)]
