"""Text that is not PTX is refused with its place, and never in any other way."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuwatch.errors import UserError
from gpuwatch.ptx import check, parse, parse_fragment, unparse
from gpuwatch.ptx.model import Address, Immediate, Instruction, Register, Symbol

HEADER = ".version 8.5\n.target sm_86\n.address_size 64\n"
CORPUS = Path(__file__).parent / "corpus"
DAMAGED = ("gemm", "atomics", "clang", "spelled", "hopper", "triton")

# What is broken, marked where the error must point, and a word of the message.
MODULE_ERRORS = {
    "word": ("^hello", "expected a directive"),
    "directive": ("^.bogus x;", "'.bogus'"),
    "after a comment": ("/* a */ // b\n^# /* c */ .global .b32 x;", "unexpected character '#'"),
    "type": (".global ^.f33 x;", "unknown type"),
    "end of variable": (".global .b32 x^", "';'"),
    "parameters": (".entry k(^", "'.param'"),
    "parameter name": (".entry k(.param .u64^)", "a parameter name"),
    "function end": (".entry k {\nret;^\n\n", "'}'"),
    "section": (".section .debug ^{ .b8 1", "without '}'"),
    "file": (".file 1 ^foo", "a path in quotes"),
    "version": (".version ^x", "a version"),
    "array length": (f".global .b32 x[^{'9' * 5000}];", "too large"),
    "initial": (".global .b32 x = ^{1, 2));", "';' is missing"),
}
BODY_ERRORS = {
    "semicolon": ("add.s32 %r1, %r2\n^ret;", "','"),
    "comma": ("add.s32 %r1 ^%r2, %r3;", "','"),
    "operand": ("add.s32 %r1,^, %r2;", "an operand"),
    "string operand": ('mov.b32 %r1, ^"x";', "an operand"),
    "register as opcode": ("^%r1 add;", "an opcode"),
    "guard": ("@%p1^;", "an opcode"),
    "address": ("ld.u32 %r1, [%r2^;", "']'"),
    "index": ("ld.u32 %r1, table^[2];", "an index behind a name"),
    "vector": ("mov.b64 {%r1, %r2^;", "'}'"),
    "vector address": ("ld.u32 %r1, [{%r2}+4^];", "an address needs"),
    "number": ("mov.b32 %r1, ^12abc;", "malformed number"),
    "octal digit": ("mov.b32 %r1, ^09;", "malformed number"),
    "octal offset": ("ld.u32 %r1, [%rd1+^08];", "malformed number"),
    "large number": ("mov.b32 %r1, ^18446744073709551616;", "too large"),
    "huge offset": (f"ld.u32 %r1, [%rd1+^{'9' * 5000}];", "too large"),
    "signed pattern": ("mov.f32 %f1, ^-0f3F800000;", "no sign"),
    "depth": ("mov.b32 %r1, {{{{{{{{^{{{", "brackets"),
    "comment": ("^/* never closed", "comment without end"),
    "string": ('.pragma ^"x', "string without end"),
    "not ASCII": ("add.s32 %r1, ^é;", "unexpected character"),
    "foreign digit": ("mov.b32 %r1, ^\u0663;", "unexpected character"),
    "loc": (".loc 1 ^1.5 2", "a line number"),
    "register count": (".reg .b32 %r<^x>;", "a register count"),
}


def refused(text: str, word: str) -> UserError:
    """The error of `text`, which must point to the `^` in it."""
    offset = text.index("^")
    broken = text.replace("^", "", 1)
    with pytest.raises(UserError) as caught:
        check(parse(broken, "kernel.ptx"))
    error = caught.value
    assert error.at is not None
    begin = broken.rfind("\n", 0, offset) + 1
    line = broken[begin:].partition("\n")[0].rstrip("\r")
    assert (error.at.line, error.at.column) == (
        broken.count("\n", 0, offset) + 1,
        offset - begin + 1,
    )
    assert error.at.text == line
    assert word in error.message
    assert error.hint
    assert error.status == 2
    return error


@pytest.mark.parametrize(("text", "word"), MODULE_ERRORS.values(), ids=MODULE_ERRORS)
def test_module_errors(text: str, word: str) -> None:
    refused(HEADER + text, word)


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("text", "word"), BODY_ERRORS.values(), ids=BODY_ERRORS)
def test_body_errors(text: str, word: str, ending: str) -> None:
    module = f"{HEADER}.visible .entry k(\n\t.param .u64 p\n)\n{{\n\t{text}\n\tret;\n}}\n"
    refused(module.replace("\n", ending), word)


def test_caret_stands_under_the_fault() -> None:
    rendered = refused(HEADER + "\t.global\t^.f33 x;", "unknown type").render().splitlines()
    assert rendered[0].startswith("kernel.ptx:4:10: error: ")
    assert rendered[1][rendered[2].index("^") :].startswith(".f33")


def test_version_is_required() -> None:
    with pytest.raises(UserError, match=r"no \.version"):
        parse("")


def test_fragment_lines_count_from_the_file() -> None:
    with pytest.raises(UserError) as caught:
        parse_fragment("mov.b32 a, 1;\nmov.b32 a,;", "probe.toml", first_line=40)
    assert caught.value.at is not None
    assert (caught.value.at.line, caught.value.at.column) == (41, 11)


@pytest.mark.parametrize(
    ("declared", "name", "is_register"),
    [
        ("x<4>", "x0", True),
        ("x<4>", "x3", True),
        ("x<4>", "x4", False),
        ("x<4>", "x03", False),
        ("x<4>", "x", False),
        ("x1<12>", "x111", False),
        ("x<99999999999>", "x7", True),
        ("x7", "x7", True),
    ],
)
def test_registers_without_percent_sign(declared: str, name: str, is_register: bool) -> None:
    text = f".reg .b64 {declared};\nld.u32 %r1, [{name}+8];"
    load = parse_fragment(text, "probe.toml")[-1]
    assert isinstance(load, Instruction)
    base = Register(name) if is_register else Symbol(name)
    assert load.operands[1] == Address(base, 8)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("010", 8),
        ("0", 0),
        ("0x1F", 31),
        ("0b101", 5),
        ("7U", 7),
        ("-12", -12),
        ("-0x10", -16),
        ("0f3F800000", 1065353216),
        (".5", 0.5),
        ("1.5e3", 1500.0),
        ("-2.", -2.0),
    ],
)
def test_literals(written: str, value: float) -> None:
    (instruction,) = parse_fragment(f"mov.b32 %r1, {written};", "probe.toml")
    assert isinstance(instruction, Instruction)
    literal = instruction.operands[1]
    assert literal == Immediate(written, value, "." in written or written[:2] == "0f")


def survives(text: str) -> None:
    """`text` is refused with a place, or comes out again with all its operands readable."""
    try:
        module = parse(text)
        check(module)
    except UserError as error:
        assert error.at is not None
        assert 1 <= error.at.line <= text.count("\n") + 1
        assert 1 <= error.at.column <= len(error.at.text) + 2
        return
    assert unparse(module) == text
    for function in module.functions:
        for statement in function.body or ():
            if isinstance(statement, Instruction):
                assert isinstance(statement.operands, tuple)


MARKS = '.,;:{}()[]<>=+-|!@"\\#/\n\r\t $%_'
SYMBOLS = ["//", "/*", "*/", "0x", "0f3F800000", "7", "1.5e3", "é", "\u0663", "\x00"]
DIRECTIVES = [".reg", ".b32", ".global", ".loc", ".entry", ".func", ".param", ".section", ".file"]
WORDS = [".pragma", ".shared", "add.s32", "%r1", "%p1", "ld::cta.v2", "ret;"]
PIECES = st.sampled_from([*MARKS, *SYMBOLS, *DIRECTIVES, *WORDS])


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
@example("/* a */ # /* b */")
@example("// a\n#")
def test_garbage_at_the_top(text: str) -> None:
    survives(text)
    survives(HEADER + text)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=30).map("".join)))
def test_garbage_in_a_body(text: str) -> None:
    survives(f"{HEADER}.entry k()\n{{\n{text}\n}}\n")


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(DAMAGED), st.data())
def test_damaged_modules(name: str, data: st.DataObject) -> None:
    """A stretch of a real module is cut out and garbage put in its place."""
    text = (CORPUS / f"{name}.ptx").read_text()
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 12))
    survives(text[:start] + data.draw(PIECES) + text[start + length :])
