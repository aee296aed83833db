"""Probes in functions that a kernel calls: where they can run, and what is said where not."""

from __future__ import annotations

import pytest
from weave_programs import counting, recording
from weaving import HEADER, INDEX, OUT

from gpuwatch.instrument import weave
from gpuwatch.instrument.model import LeftOut, Woven
from gpuwatch.probe import parse_python, parse_toml
from gpuwatch.probe.model import Program
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find

DOUBLE = """\
.func (.param .b32 result) {name}(.param .b64 place)
{{
	.reg .b32 %r<4>; .reg .b64 %d<3>;
	ld.param.u64 %d1, [place];
	ld.global.u32 %r1, [%d1+{offset}];
	shl.b32 %r2, %r1, 1;
	{more}
	st.param.b32 [result], %r2;
	ret;
}}
"""
CALL = """\
	{{
	.param .b64 p0; .param .b32 r0;
	st.param.b64 [p0], %a1;
	call (r0), {callee}, (p0){prototype};
	ld.param.b32 %v1, [r0];
	}}
"""
GUARDED_EXIT = ".reg .pred %p<2>; setp.lt.u32 %p1, %r1, 40; @%p1 exit;"


def module(functions: str, body: str, variables: str = "") -> str:
    return (
        HEADER + variables + functions
        + ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n" + INDEX + OUT
        + "\t.reg .b32 %v<3>; .reg .b64 %f<3>;\n\tst.global.u32 [%a1], %i10;\n" + body
        + "\tst.global.u32 [%a1], %v1;\n\tret;\n}\n"
    )  # fmt: skip


def double(name: str = "double", more: str = "", offset: int = 0) -> str:
    return DOUBLE.format(name=name, more=more, offset=offset)


def call(callee: str = "double", prototype: str = "") -> str:
    return CALL.format(callee=callee, prototype=prototype)


DIRECT = module(double(), call())
NESTED = module(
    double() + double("outer", "{ .param .b64 p0; .param .b32 r0; st.param.b64 [p0], %d1;\n"
                      "\tcall (r0), double, (p0); ld.param.b32 %r2, [r0]; }"),
    call("outer"),
)  # fmt: skip
POINTER = module(
    double() + double("other", offset=0),
    "\tmov.u64 %f1, table; ld.global.u64 %f2, [%f1+8];\n"
    "\tproto: .callprototype (.param .b32 _) _ (.param .b64 _);\n" + call("%f2", ", proto"),
    ".func (.param .b32 r) double(.param .b64 p);\n.func (.param .b32 r) other(.param .b64 p);\n"
    ".global .align 8 .u64 table[2] = {double, other};\n",
)
ALIASED = module(
    ".func (.param .b32 result) twice(.param .b64 place);\n" + double() + double("other")
    + ".alias twice, double /* not other */;\n",
    call("twice"),
)  # fmt: skip
LISTED = module(
    double() + double("other"),
    "\tmov.u64 %f2, double;\n"
    "\tlist: .calltargets double /* not other */;\n" + call("%f2", ", list"),
)
UNUSED = module(double() + double("unused"), call())
EXITING = module(double(more=GUARDED_EXIT), call())
TIMED = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="kernel", type="array", size=8, cap=64)
class spans:
    elapsed: gl.u64


start: gl.u64 = 0


@probe(pos="ld.global", level="thread", before=True)
def enter():
    start = gl.clock()


@probe(pos="ld.global", level="thread")
def leave():
    spans.save(gl.clock() - start)
"""
ENDS = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="{level}", type="array", size=8, cap=2)
class ends:
    number: gl.u32


@probe(pos="kernel", level="{level}")
def leave():
    ends.save(gl.thread)
"""


def woven(text: str, program: Program) -> Woven:
    found = weave(parse(text), "k", program)
    assemble(find(), found.text, "sm_86", "k")
    return found


def functions(found: Woven) -> list[str]:
    return [site.function for site in found.sites]


LOADS = recording("ld.global", {"addr": ("u64", "gl.addr"), "size": ("u32", "gl.bytes")})


@pytest.mark.parametrize("text", [ALIASED, LISTED], ids=["alias", "calltargets"])
def test_comments_name_no_functions(text: str) -> None:
    assert functions(woven(text, LOADS)) == ["double"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DIRECT, ["double"]),
        (NESTED, ["double", "outer"]),
        (POINTER, ["", "double", "other"]),
        (UNUSED, ["double"]),
    ],
    ids=["direct", "nested", "pointer", "unused"],
)
def test_functions_within_reach_are_woven(text: str, expected: list[str]) -> None:
    found = woven(text, LOADS)
    assert functions(found) == expected
    assert (found.notes, found.left_out) == ((), ())


def test_probes_that_share_registers_leave_functions_out() -> None:
    found = woven(NESTED, counting("ld.global"))
    assert functions(found) == [""]  # the kernel's end
    assert found.left_out == (LeftOut("at", "double", 1), LeftOut("at", "outer", 1))
    assert "1 place in the function double is left out" in found.notes[0]


def test_both_halves_at_one_place_share_what_they_like() -> None:
    found = woven(DIRECT, parse_python(TIMED, "timed.py"))
    assert [(site.function, site.before) for site in found.sites] == [
        ("double", True), ("double", False)
    ]  # fmt: skip
    assert found.left_out == ()
    toml = (
        '[probe.t]\nlevel = "thread"\npos = "ld.global"\n'
        'before = ".reg .b64 %t<3>; mov.u64 %t0, %clock64;"\n'
        'after = "mov.u64 %t1, %clock64; sub.u64 %t2, %t1, %t0; SAVE [t] { %t2 };"\n'
        '[map.t]\nlevel = "kernel"\ncap = 64\nregs = { elapsed = "u64" }\n'
    )
    assert functions(woven(DIRECT, parse_toml(toml, "t.toml"))) == ["double", "double"]


@pytest.mark.parametrize("level", ["thread", "warp"])
def test_exits_in_functions_end_threads(level: str) -> None:
    found = woven(EXITING, parse_python(ENDS.format(level=level), "ends.py"))
    assert functions(found) == ["", "double"]
    assert found.notes == ()


def test_exits_in_functions_lack_the_kernels_registers() -> None:
    found = woven(EXITING, counting("st.global"))
    assert "threads that exit inside the function double are not recorded" in found.notes
