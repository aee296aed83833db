"""Constant expressions have the value that ptxas gives them."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch import toolchain
from gpuwatch.errors import UserError
from gpuwatch.ptx import parse_fragment
from gpuwatch.ptx.model import Address, Immediate, Instruction, Operand, Register, Symbol

INTEGERS = {
    "2+3": 5,
    "(2*4)": 8,
    "2+3*4": 14,
    "(2+3)*4": 20,
    "10-4-3": 3,
    "WARP_SZ": 32,
    "WARP_SZ/2-1": 15,
    "-(5)": -5,
    "- -5": 5,
    "+7": 7,
    "~5": -6,
    "~0U": 0xFFFFFFFFFFFFFFFF,
    "!5": 0,
    "!0": 1,
    "1<<4|3": 19,
    "1<<2+1": 8,
    "0xF0 & 0x3C ^ 1": 0x31,
    "7/2": 3,
    "-7/2": -3,
    "-7 % 3": 0,
    "7 % 3": 1,
    "((-7 % 3) - 1) >> 1": 0x7FFFFFFFFFFFFFFF,
    "1<<65": 2,
    "1<<-1 == -9223372036854775808": 1,
    "-1>>64": -1,
    "5U > -1": 0,
    "(1U<<1) - 3 >> 1": 0x7FFFFFFFFFFFFFFF,
    "(1<<1U) - 3 >> 1": -1,
    "(!5U - 1)>>1": -1,
    "-9223372036854775808 / -1": 0,
    "-8 >> 1": -4,
    "3 > 2": 1,
    "3 <= 2": 0,
    "3 != 3 || 1": 1,
    "2 && 0": 0,
    "0 ? 2 : 3": 3,
    "1 ? 2 : 0 ? 3 : 4": 2,
    "(.u64)5": 5,
    "(.u64)-1 / 2": 0x7FFFFFFFFFFFFFFF,
    "(.s64)-1 / 2": 0,
    "0xFFFFFFFFFFFFFFFF >> 60": 15,
    "9223372036854775807 + 1": -9223372036854775808,
    "1U - 2": 0xFFFFFFFFFFFFFFFF,
}
FLOATS = {
    "1.5+2.0": 3.5,
    "-(1.5)": -1.5,
    "1.0/3.0": 1 / 3,
    "(1.0 + 0.5) * 2.5": 3.75,
    "1.5 - 0.25": 1.25,
}
MODULE = """\
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .reg .b64 %rd<3>;
    .reg .f64 %fd<2>;
    ld.param.u64 %rd1, [p];
{body}
    ret;
}}
"""
INTEGER_STORE = "    mov.b64 %rd2, {value};\n    st.global.b64 [%rd1+{offset}], %rd2;"
FLOAT_STORE = "    mov.f64 %fd1, {value};\n    st.global.f64 [%rd1+{offset}], %fd1;"


def operand(text: str, opcode: str = "mov.b64 %rd1,") -> Operand:
    (instruction,) = parse_fragment(f"{opcode} {text};", "<test>")
    assert isinstance(instruction, Instruction)
    return instruction.operands[-1]


@pytest.mark.parametrize(("text", "value"), INTEGERS.items(), ids=INTEGERS)
def test_whole_numbers(text: str, value: int) -> None:
    assert operand(text) == Immediate(text, value)


@pytest.mark.parametrize(("text", "value"), FLOATS.items(), ids=FLOATS)
def test_floating_point(text: str, value: float) -> None:
    assert operand(text) == Immediate(text, value, is_float=True)


def assembled(folder: Path, values: dict[str, list[str]]) -> bytes:
    lines = [
        store.format(value=value, offset=8 * place)
        for store, texts in values.items()
        for place, value in enumerate(texts)
    ]
    source = folder / "k.ptx"
    source.write_text(MODULE.format(body="\n".join(lines)))
    output = folder / "k.cubin"
    command = [toolchain.find().ptxas, "-arch=sm_90", "-o", output, source]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return output.read_bytes()


def test_ptxas_gives_the_same_values(tmp_path: Path) -> None:
    """The code of the expressions is that of the values, written as literals."""
    written = {INTEGER_STORE: list(INTEGERS), FLOAT_STORE: list(FLOATS)}
    valued = {
        INTEGER_STORE: [str(value) for value in INTEGERS.values()],
        FLOAT_STORE: [repr(value) for value in FLOATS.values()],
    }
    code = assembled(tmp_path, written)
    assert code == assembled(tmp_path, valued)
    valued[INTEGER_STORE][0] = "6"
    assert code != assembled(tmp_path, valued)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("[tab+4*2]", Address(Symbol("tab"), 8)),
        ("[tab+(4*2)]", Address(Symbol("tab"), 8)),
        ("[%rd1+4*2+ 1]", Address(Register("%rd1"), 9)),
        ("[%rd1 + -4]", Address(Register("%rd1"), -4)),
        ("[%rd1+WARP_SZ]", Address(Register("%rd1"), 32)),
        ("[2+3]", Address(Immediate("2+3", 5))),
        ("[%rd1].unified", Address(Register("%rd1"), 0, unified=True)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert operand(text, "ld.global.u32 %r1,") == address


def test_offset_of_a_symbol() -> None:
    assert operand("tab+4*2") == Symbol("tab", 8)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("1/^0", "division"),
        ("1^/(2-2)", "division"),
        ("1.0^<<2", "a whole and"),
        ("1.0^%2.0", "of floating-point"),
        ("1.0^&&2.0", "of floating-point"),
        ("1.0^/0.0", "division"),
        ("^1 ? 1.5 : 2.5", "whole number"),
        ("^!1.5", "whole number"),
        ("1.0 * ^0f3F800000", "stands alone"),
        ("^~1.5", "whole number"),
        ("^(.u64)1.5", "whole number"),
        ("(1 ^", "')'"),
        ("2+^%r1", "a constant"),
        ("1 ? 2^", "':'"),
        ("(" * 32 + "^(1", "too deeply"),
    ],
)
def test_faults(text: str, word: str) -> None:
    broken = text.replace("^", "", 1)
    with pytest.raises(UserError) as caught:
        parse_fragment(f"mov.b64 %rd1, {broken};", "<test>")
    assert word in caught.value.message
    assert caught.value.at is not None
    assert caught.value.hint


LEAVES = st.integers(-50, 50).map(str) | st.integers(0, 60).map(hex)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    marks = st.sampled_from(["+", "-", "*", "&", "|", "^", "<", ">", "==", "!=", "<=", ">="])
    return st.builds("({} {} {})".format, inner, marks, inner) | inner.map("(~{})".format)


@settings(max_examples=200, deadline=None)
@given(st.recursive(LEAVES, _larger, max_leaves=8))
def test_small_expressions_are_those_of_python(text: str) -> None:
    """Operands this small stay far from 64 bits, and the parentheses leave no precedence open."""
    found = operand(text)
    assert isinstance(found, Immediate)
    expected = int(eval(text))
    assert found.value == expected
    assert not math.isnan(found.value)
