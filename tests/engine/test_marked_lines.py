"""Which source lines are marked, for PTX and machine code of the simplest forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gpuwatch.engine.marked_lines import MarkedLine, marked_lines
from gpuwatch.ptx import parse
from gpuwatch.toolchain import MachineInstruction

HEAD = """\
.version 8.0
.target sm_90
.address_size 64
.file 1 "/src/kernel.cu"
.file 2 "/cuda/inner.hpp"
"""
DECLARED = """
\t.reg .pred %p<4>;
\t.reg .b32 %r<9>;
\t.reg .f32 %f<9>;
\t.reg .b64 %rd<4>;
\tmov.u32 %r1, %tid.x;
"""
QUAD = "\tld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];"
WORD = "\tld.global.f32 %f1, [%rd1];"
SHARED = "\tld.shared.f32 %f1, [%rd1];"
GUARDED = f"\t@%p1 {SHARED.strip()}"
STORE = "\tst.shared.f32 [%rd1], %f1;"
ADD = "\tadd.f32 %f1, %f1, %f2;"
ATOMIC = "\tatom.shared.add.f32 %f1, [%rd1], %f2;"
GENERIC = "\tld.f32 %f1, [%rd1];"
CLUSTER = "\tld.shared::cluster.f32 %f1, [%r2];"


def loop(body: str, bound: str) -> str:
    """Rounds until %r2 is `bound`."""
    return (
        f"\tmov.u32 %r2, 0;\n$again:\n{body}\n\tadd.s32 %r2, %r2, 1;\n"
        f"\tsetp.ne.s32 %p1, %r2, {bound};\n\t@%p1 bra $again;"
    )


def ptx(*lines: str, functions: str = "") -> str:
    """A kernel whose code of `lines[k]` is at source line 10 + k."""
    body = "\n".join(f"\t.loc 1 {10 + place} 3\n{text}" for place, text in enumerate(lines))
    return f"{HEAD}{functions}\n.visible .entry kernel()\n{{{DECLARED}{body}\n\tret;\n}}\n"


def code(*lines: str, function: str = "kernel") -> Iterator[MachineInstruction]:
    """Opcodes of source line 10 + k in `lines[k]`, behind a colon if there is a guard; a bar
    between basic blocks."""
    block = 0
    for place, opcodes in enumerate(lines):
        for one in opcodes.split():
            block += one == "|"
            if one != "|":
                where = (("/other/kernel.cu", 10 + place),)
                guard, _, opcode = one.rpartition(":")
                tokens = tuple(opcode.split("."))
                yield MachineInstruction("kernel", function, 0, guard, tokens, where, block)


def marks(text: str, machine: Iterator[MachineInstruction]) -> tuple[MarkedLine, ...]:
    return marked_lines(parse(text, "kernel.ptx"), "kernel", (64, 1, 1), machine)


@pytest.mark.parametrize(
    ("line", "opcodes", "reason"),
    [
        (QUAD, "LDG.E.128", ""),
        (QUAD, "LDG.E.128.CONSTANT", ""),
        (QUAD, "LDG.E LDG.E", "split: 1 global load of 16 bytes in PTX, 2 of 4 in machine code"),
        (QUAD, "LDG.E.64", "narrowed: 1 global load of 16 bytes in PTX, 1 of 8 in machine code"),
        (QUAD, "IMAD", "dropped: 1 global load of 16 bytes in PTX, none in machine code"),
        (f"{SHARED}\n" * 4, "LDS.128",
         "merged: 4 shared loads of 4 bytes in PTX, 1 of 16 in machine code"),
        (f"{SHARED}\n" * 5, "LDS LDS LDS LDS.64",
         "merged: 5 shared loads of 4 bytes in PTX, 3 of 4 and 1 of 8 in machine code"),
        (f"{WORD}\n" * 3, "LDG.E LDG.E",
         "some dropped: 3 global loads of 4 bytes in PTX, 2 of 4 in machine code"),
        (ATOMIC, "LDS ATOMS.CAST.SPIN",
         "added for an atomic: no shared load in PTX, 1 of 4 bytes in machine code"),
        (GENERIC, "LDG.E",
         "generic in PTX: no global load in PTX, 1 of 4 bytes in machine code"),
        ("\twmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f1}, [%rd1];", "LDG.E LDG.E",
         "added for a matrix: no global load in PTX, 2 of 4 bytes in machine code"),
        ("\tldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%rd1];", "LDSM.16.M88", ""),
        ("", "LDG.E.U8",
         "added by ptxas: no global load in PTX, 1 of 1 bytes in machine code"),
        (GENERIC, "LD.E", ""),
        (CLUSTER, "LD.E", ""),
        ("\tst.global.v2.f32 [%rd1], {%f1, %f2};", "STG.E STG.E",
         "split: 1 global store of 8 bytes in PTX, 2 of 4 in machine code"),
        ("\tst.shared.u8 [%rd1], %r1;", "STS.U8", ""),
    ],
)  # fmt: skip
def test_what_ptxas_did_is_told(line: str, opcodes: str, reason: str) -> None:
    found = marks(ptx(line), code(opcodes))
    assert [(one.line, one.reason) for one in found] == ([(10, reason)] if reason else [])


def test_a_line_may_have_several_marks_each_for_its_map() -> None:
    found = marks(ptx(f"{QUAD}\n{SHARED}\n{SHARED}"), code("LDG.E LDG.E LDS.64"))
    assert [(one.map, one.reason.partition(":")[0]) for one in found] == [
        ("global_loads", "split"),
        ("shared_loads", "merged"),
    ]


@pytest.mark.parametrize(("bound", "told"), [("7", False), ("%r1", True)])
@pytest.mark.parametrize("copies", ["LDG.E | LDG.E LDG.E LDG.E LDG.E", "LDG.E LDG.E LDG.E"])
def test_unrolling_is_told_where_lanes_leave_in_different_rounds(
    copies: str, bound: str, told: bool
) -> None:
    found = marks(ptx(loop(WORD, bound)), code(copies))
    reasons = [one.reason.partition(":")[0] for one in found]
    assert reasons == (["repeated where lanes may run different copies"] if told else [])


def test_copies_outside_loops_are_told() -> None:
    (found,) = marks(ptx(WORD), code("LDG.E | LDG.E"))
    assert found.reason.startswith("repeated where lanes may run different copies")


def test_blocks_may_be_repeated_unlike_each_other() -> None:
    """As when nvcc has unrolled a loop already: four in the loop, one in what is left of it."""
    rest = loop(WORD, "5").replace("again", "rest")
    text = ptx("\n".join([loop("\n".join([WORD] * 4), "7"), rest]))
    assert marks(text, code("LDG.E " * 12 + "| " + "LDG.E " * 4 + "| LDG.E")) == ()
    assert marks(text, code("LDG.E " * 4)) != ()


def test_other_line_numbers_are_no_difference() -> None:
    assert marks(ptx(QUAD, WORD, ""), code("", "LDG.E", "LDG.E.128")) == ()
    moved = marks(ptx(QUAD, f"{WORD}\n{WORD}", ""), code("", "LDG.E.64", "LDG.E.128"))
    assert [one.line for one in moved] == [11]


@pytest.mark.parametrize("inlined", [True, False])
def test_functions_are_looked_at_with_or_without_code_of_their_own(inlined: bool) -> None:
    function = f".func other()\n{{{DECLARED}\t.loc 1 30 1\n{QUAD}\n\tret;\n}}\n"
    text = ptx("\tcall other;", functions=function)
    place = "kernel" if inlined else "other"
    assert marks(text, code(*[""] * 20, "LDG.E.128", function=place)) == ()
    (found,) = marks(text, code(*[""] * 20, "LDG.E.64", function=place))
    assert (found.function, found.line) == ("" if inlined else "other", 30)


def test_code_from_a_header_counts_at_the_line_that_calls_it() -> None:
    inner = f"\t.loc 2 99 1, function_name $L__info, inlined_at 1 10 3\n{QUAD}"
    machine = MachineInstruction(
        "kernel",
        "kernel",
        0,
        "",
        ("LDG", "E", "128"),
        (("/cuda/inner.hpp", 99), ("kernel.cu", 10)),
        0,
    )
    assert marks(ptx(inner), iter([machine])) == ()
    narrow = replace(machine, tokens=("LDG", "E"))
    assert [one.line for one in marks(ptx(inner), iter([narrow]))] == [10]


@pytest.mark.parametrize(
    ("line", "opcodes", "told"),
    [
        ("\tfma.rn.f32 %f1, %f2, %f3, %f4;", "FFMA", ""),
        ("\tmul.f32 %f1, %f2, %f3;\n\tadd.f32 %f1, %f1, %f4;", "FFMA.FTZ", ""),
        ("\tadd.f32x2 %rd1, %rd2, %rd3;", "FADD2", ""),
        ("\tdiv.rn.f32 %f1, %f2, %f3;", "MUFU.RCP FFMA FMUL", "0 > 3"),
        ("\tmul.f32 %f1, %f2, %f3;\n\tadd.f32 %f1, %f1, %f4;", "FMUL", "2 > 1"),
        ("\tmov.b32 %r1, 0;", "HFMA2.MMA", ""),
    ],
)
def test_operations_that_differ_are_told(line: str, opcodes: str, told: str) -> None:
    found = marks(ptx(line), code(opcodes))
    before, _, after = told.partition(" > ")
    reason = f"{before} floating-point operations in PTX, {after} in machine code"
    assert [one.reason for one in found] == ([reason] if told else [])
    assert all(one.unseen for one in found)


@pytest.mark.parametrize(
    ("line", "opcodes", "told"),
    [
        (SHARED, "@P0:LDS", "0 of 1 shared loads in PTX, 1 of 1"),
        (STORE, "@!P0:STS STS", "0 of 1 shared stores in PTX, 1 of 2"),
        (GUARDED, "@P0:LDS @P0:LDS", ""),
        (f"{GUARDED}\n{SHARED}", "@P0:LDS @P1:LDS", "1 of 2 shared loads in PTX, 2 of 2"),
        (SHARED, "LDS", ""),
        (WORD, "@P0:LDG.E", ""),
    ],
)  # fmt: skip
def test_guards_that_stand_for_branches_are_told(line: str, opcodes: str, told: str) -> None:
    """Where they change what is counted: requests of shared memory, not of global."""
    found = marks(ptx(f"\t@%p2 bra $over;\n{line}\n$over:"), code(opcodes))
    reasons = [one.reason for one in found if one.reason.startswith("guarded")]
    ending = "in machine code, where warps without a lane count too"
    assert reasons == ([f"guarded: {told} {ending}"] if told else [])
    assert all(one.unseen for one in found if one.reason in reasons)


def test_guarded_accesses_of_another_line_are_told_there() -> None:
    found = marks(ptx(SHARED, ""), code("", "@P0:LDS"))
    assert [one.line for one in found] == [11]
    assert found[0].reason.startswith("guarded: 0 of 0 shared loads in PTX")


@pytest.mark.parametrize(
    ("lines", "opcodes", "told"),
    [
        ([f"{ADD}\n" * 3], "FADD FADD | FADD", True),
        ([f"{ADD}\n" * 3], "FADD FADD FADD", False),
        ([f"{ADD}\n\tbra $over;\n$over:\n{ADD}"], "FADD FADD", False),
        ([f"{ADD}\n\tbra $over;\n$over:\n{ADD}"], "FADD | FADD", False),
        ([WORD * 2], "LDG.E | LDG.E", False),
    ],
)
def test_operations_in_other_blocks_are_told(lines: list[str], opcodes: str, told: bool) -> None:
    found = marks(ptx(*lines), code(opcodes))
    reason = (
        "moved: 3 floating-point operations in PTX and machine code, there in other basic "
        "blocks, which other lanes may run"
    )
    assert [one.reason for one in found] == ([reason] if told else [])


def test_other_kernels_of_the_module_do_not_matter() -> None:
    other = MachineInstruction("second", "second", 0, "", ("LDG", "E"), (("kernel.cu", 10),), 1)
    assert marks(ptx(WORD), iter([*code("LDG.E"), other, other])) == ()
