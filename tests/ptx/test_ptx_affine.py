"""What registers are proven to change by from lane to lane."""

from __future__ import annotations

import pytest

from gpuwatch.ptx import parse
from gpuwatch.ptx.affine import lane_strides

HEAD = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n)
{
	.reg .b64 %d<9>; .reg .b32 %r<19>; .reg .pred %p<9>;
	mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.x;
	ld.param.u64 %d1, [a]; ld.param.u32 %r4, [n];
"""
INDEX = "mad.lo.s32 %r5, %r3, %r4, %r1; mul.wide.s32 %d2, %r5, 4; add.s64 %d3, %d1, %d2;"


def strides(body: str, block: tuple[int, int, int] = (64, 1, 1)) -> dict[str, int | None]:
    return lane_strides(parse(f"{HEAD}{body}\nret;\n}}\n").entries()[0], block)


@pytest.mark.parametrize(
    ("block", "expected"),
    [((64, 1, 1), 4), ((32, 8, 2), 4), ((48, 1, 1), 4), ((16, 16, 1), None), ((48, 2, 1), None)],
)
def test_lanes_go_along_x_where_rows_fill_warps(
    block: tuple[int, int, int], expected: int | None
) -> None:
    assert strides(INDEX, block).get("%d3") == expected


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("sub.s32 %r9, %r4, %r1;", -1),
        ("shl.b32 %r9, %r1, 3;", 8),
        ("mad.lo.s32 %r9, %r1, 12, %r1;", 13),
        ("mul.lo.s32 %r9, %r3, %r4;", 0),
        ("mul.lo.s32 %r9, %r1, %r4;", None),
        ("xor.b32 %r9, %r1, 1;", None),
        ("ld.global.u32 %r9, [%d1];", None),
        ("setp.lt.u32 %p1, %r3, 5; selp.b32 %r9, 1, 2, %p1;", 0),
        ("setp.lt.u32 %p1, %r1, 5; selp.b32 %r9, 1, 2, %p1;", None),
    ],
)
def test_operations(instruction: str, expected: int | None) -> None:
    assert strides(instruction)["%r9"] == expected


LOOP = """\
	mov.u32 %r9, 0;
again:
	setp.ge.u32 %p1, %r9, {bound};
	@%p1 bra done;
	{inside}
	add.u32 %r9, %r9, 1;
	bra again;
done:
	{behind}
"""


def test_a_loop_that_all_lanes_leave_together() -> None:
    assert strides(LOOP.format(bound="%r4", inside="", behind="mov.u32 %r8, %r9;"))["%r8"] == 0


def test_behind_a_loop_that_lanes_leave_apart_its_counter_varies() -> None:
    apart = LOOP.format(bound="%r1", inside="mov.u32 %r7, %r9;", behind="mov.u32 %r8, %r9;")
    assert strides(apart)["%r8"] is None
    inside_only = LOOP.format(bound="%r1", inside="mov.u32 %r7, %r9;", behind="")
    assert strides(inside_only)["%r7"] == 0
    written_once = LOOP.format(bound="%r1", inside="mov.u32 %r7, %r9;", behind="mov.u32 %r8, %r7;")
    assert strides(written_once)["%r8"] is None


def test_what_a_call_gives_back_is_not_known() -> None:
    declared = ".visible .func (.param .b32 back) f(.param .b32 given);\n"
    text = HEAD.replace(".visible .entry", f"{declared}.visible .entry")
    body = """
	.param .b32 given0; .param .b32 back0;
	st.param.b32 [given0], %r1;
	call (back0), f, (given0);
	ld.param.b32 %r9, [back0];
	ret;
}
"""
    assert lane_strides(parse(text + body).entries()[0], (64, 1, 1))["%r9"] is None


@pytest.mark.parametrize(("tested", "expected"), [("%r3", 0), ("%r1", None)])
def test_what_a_branch_decides_is_as_uniform_as_the_branch(
    tested: str, expected: int | None
) -> None:
    body = f"""\
	setp.lt.u32 %p1, {tested}, 5;
	mov.u32 %r9, 1;
	@%p1 bra over;
	mov.u32 %r9, 2;
over:
	mov.u32 %r8, %r9;
"""
    assert strides(body)["%r8"] == expected


def test_rounds_skipped_by_some_lanes_make_a_loop_s_values_vary() -> None:
    inside = "setp.lt.u32 %p2, %r1, 5; @%p2 bra again;"
    assert strides(LOOP.format(bound="%r4", inside=inside, behind=""))["%r9"] is None
