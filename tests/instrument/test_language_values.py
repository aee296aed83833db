"""Expressions of the probe language give on the device what their types say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from weaving import kernel, run

from gpuwatch.errors import UserError
from gpuwatch.probe import parse_python, verify
from gpuwatch.probe.model import (
    Assign,
    Binary,
    Constant,
    Expression,
    Field,
    Helper,
    If,
    Map,
    Probe,
    ProbeRegister,
    Program,
    Read,
    Save,
    Unary,
)
from gpuwatch.probe.values import BadValueError, fold

NOTHING = kernel("\tst.global.u32 [%a1], %i10;\n\tret;\n")
BITS = {"u32": 32, "s32": 32, "u64": 64, "s64": 64}
REGISTERS = {"a": "u32", "b": "s32", "c": "u64", "d": "s64", "p": "pred"}
WHOLE = sorted(BITS)


@dataclass(frozen=True)
class Typed:
    """A value and its type; "" for a constant, which takes the type of what it meets."""

    type: str
    value: int


def wrap(value: int, type_: str) -> int:
    if type_ == "pred":
        return int(value != 0)
    bits = BITS[type_]
    value &= (1 << bits) - 1
    return value - (1 << bits) if type_.startswith("s") and value >> (bits - 1) else value


def own_type(value: Typed) -> str:
    if value.type == "pred":
        return "u32"
    return value.type or ("s64" if value.value < 1 << 63 else "u64")


def meet(left: Typed, right: Typed) -> str:
    """The wider type; of one width unsigned. A constant that fits takes the other's."""
    for constant, other in ((left, right), (right, left)):
        if not constant.type and other.type not in ("", "pred"):
            bits = BITS[other.type]
            if -(1 << (bits - 1)) <= constant.value < 1 << bits:
                return other.type
    types = {own_type(left), own_type(right)}
    width = max(BITS[type_] for type_ in types)
    unsigned = any(type_ == f"u{width}" for type_ in types)
    return f"{'u' if unsigned else 's'}{width}"


ARITHMETIC = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "min": min,
    "max": max,
}
TESTS = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def value_of(tree: Expression, registers: dict[str, int]) -> Typed:
    folded = fold(tree)
    if folded is not None:
        return Typed("", int(folded))
    match tree:
        case Read(name):
            return Typed(REGISTERS[name], registers[name])
        case Unary(op, inner):
            return unary(op, value_of(inner, registers))
        case Helper("popc", (inner,)):
            value = value_of(inner, registers)
            type_ = own_type(value)
            bits = wrap(value.value, type_) & ((1 << BITS[type_]) - 1)
            return Typed("u32", bits.bit_count())
        case Helper(("min" | "max") as op, (left, right)):
            return binary(op, value_of(left, registers), value_of(right, registers))
        case Helper(type_, (inner,)):
            return Typed(type_, wrap(value_of(inner, registers).value, type_))
        case Binary(op, left, right):
            return binary(op, value_of(left, registers), value_of(right, registers))
    raise AssertionError(tree)


def unary(op: str, value: Typed) -> Typed:
    if op == "not":
        return Typed("pred", int(value.value == 0))
    type_ = own_type(value)
    return Typed(type_, wrap(-value.value if op == "-" else ~value.value, type_))


def binary(op: str, left: Typed, right: Typed) -> Typed:
    if op in ("and", "or"):
        both = [left.value != 0, right.value != 0]
        return Typed("pred", int(all(both) if op == "and" else any(both)))
    if op in ("<<", ">>"):
        type_ = own_type(left)
        amount = right.value & ((1 << BITS[own_type(right)]) - 1)
        moved = left.value >> min(amount, 64) if op == ">>" else left.value << min(amount, 64)
        return Typed(type_, wrap(moved, type_))
    type_ = meet(left, right)
    a, b = wrap(left.value, type_), wrap(right.value, type_)
    if op in TESTS:
        return Typed("pred", int(TESTS[op](a, b)))
    return Typed(type_, wrap(ARITHMETIC[op](a, b), type_))


EDGES = [0, 1, 2, 31, 32, 63, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]
LEAVES = st.one_of(
    st.sampled_from(sorted(REGISTERS)).map(Read),
    st.one_of(st.integers(0, 100), st.sampled_from(EDGES)).map(Constant),
)


def nonzero(tree: Expression) -> Expression:
    return Binary("|", tree, Constant(1))


def extended(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    operators = st.sampled_from([*"+-*&|^", "<<", ">>", *TESTS, "and", "or"])
    return st.one_of(
        st.builds(Binary, operators, inner, inner),
        st.builds(Binary, st.sampled_from(["//", "%"]), inner, inner.map(nonzero)),
        st.builds(Unary, st.sampled_from(["-", "~", "not"]), inner),
        st.builds(Helper, st.sampled_from(["min", "max"]), st.tuples(inner, inner)),
        st.builds(Helper, st.sampled_from(["popc", *WHOLE]), st.tuples(inner)),
    )


TREES = st.recursive(LEAVES, extended, max_leaves=8)
VALUES = st.fixed_dictionaries(
    {
        name: st.sampled_from(sorted({wrap(one, type_) for one in (*EDGES, -5, 77)}))
        for name, type_ in REGISTERS.items()
    }
)


def program_of(values: dict[str, int], saved: list[tuple[str, Expression]]) -> Program:
    fields = tuple(Field(f"f{n}", type_) for n, (type_, _) in enumerate(saved))  # type: ignore[arg-type]
    save = Save("m", tuple(tree for _, tree in saved))
    return Program(
        name="values",
        title="",
        maps=(Map("m", "thread", "array", 8 * len(saved), 1, fields),),
        registers=tuple(
            ProbeRegister(name, type_, values[name])  # type: ignore[arg-type]
            for name, type_ in REGISTERS.items()
        ),
        probes=(Probe("end", "kernel", "thread", False, (save,)),),
        source="values.py",
        form="python",
    )


def sound(program: Program) -> bool:
    try:
        verify(program)
    except UserError:
        return False
    return True


@settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
@given(VALUES, st.lists(st.tuples(st.sampled_from(WHOLE), TREES), min_size=30, max_size=30))
def test_whole_numbers(values: dict[str, int], saved: list[tuple[str, Expression]]) -> None:
    kept = [one for one in saved if sound(program_of(values, [one]))]
    if not kept:
        return
    got = run(NOTHING, program_of(values, kept), (1, 1, 1), (1, 1, 1)).maps["m"].records[0]
    for number, (type_, tree) in enumerate(kept):
        expected = wrap(value_of(tree, values).value, type_)
        assert int(got[f"f{number}"]) == expected, (type_, tree, values)


FLOATS = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe
@Map(level="thread")
class m:
    sum: gl.f32
    quotient: gl.f32
    whole: gl.f32
    ratio: gl.f32
    cut: gl.s32
    bits: gl.u32
    least: gl.f32
    less: gl.u32
    negative: gl.f32
    half: gl.f32
    huge: gl.f32
    truth: gl.u32
x: gl.f32 = 7.5
y: gl.f32 = -2
n: gl.s32 = -7
@probe(pos="kernel", level="thread")
def f():
    m.save(x + y * 2, x / y, x // y, n / 2, gl.s32(x * y), gl.bits(x), gl.min(x, y, 0.5), y < n,
           -x, 1 / 2, 1e39, x and not y - y)
"""


def test_floats() -> None:
    parsed = parse_python(FLOATS, "f.py")
    verify(parsed)
    got = run(NOTHING, parsed, (1, 1, 1), (1, 1, 1)).maps["m"].records[0]
    bits = int(np.float32(7.5).view(np.uint32))
    assert got.item() == (3.5, -3.75, -4.0, -3.5, -15, bits, -2.0, 0, -7.5, 0.5, float("inf"), 1)


STATEMENTS = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe
@Map(level="thread", cap=1)
class m:
    a: gl.u32
    b: gl.s64
    c: gl.u32
    d: gl.pred
a: gl.u32 = 5
b: gl.s64 = -3
c: gl.u32 = 0
d: gl.pred = True
@probe(pos="st.global", level="thread", before=True)
def first():
    a = a
    c = a
    if gl.thread < 2 and not gl.thread == 1:
        c = c + 10
    elif gl.thread == 1:
        c -= 1
    elif gl.thread >= 3:
        pass
    else:
        c <<= 2
        if d:
            b *= 2
        d = not d
@probe(pos="st.global", level="thread")
def second():
    a = c * 2
@probe(pos="st.global", level="thread")
def third():
    m.save(a, b, c, d)
"""


def test_statements_run_in_order_at_one_place() -> None:
    parsed = parse_python(STATEMENTS, "s.py")
    verify(parsed)
    got = run(NOTHING, parsed, (1, 1, 1), (4, 1, 1)).maps["m"].records
    assert got.tolist() == [(30, -3, 15, 1), (8, -3, 4, 1), (40, -6, 20, 0), (10, -3, 5, 1)]


def test_a_condition_at_the_end_of_a_warp_saves_once() -> None:
    body = kernel(
        "\t.reg .pred %p<2>;\n\tsetp.lt.u32 %p1, %i1, 16;\n\t@%p1 ret;\n"
        "\tst.global.u32 [%a1], %i10;\n\tret;\n"
    )
    save = If(Read("c"), (Save("m", (Helper("warpid"),)),), ())
    parsed = parse_python(STATEMENTS, "s.py")
    warps = replace(parsed.maps[0], level="warp", cap=4, size=8, fields=(Field("n", "u64"),))
    begin = Probe("begin", "kernel", "warp", True, (Assign("c", Constant(1)),))
    end = Probe("end", "kernel", "warp", False, (save,))
    got = run(body, replace(parsed, maps=(warps,), probes=(begin, end)), (2, 1, 1), (64, 1, 1))
    assert got.counts["m"].tolist() == [1] * 4
    assert got.maps["m"].column("n").tolist() == [0, 1, 2, 3]


ENDS = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe

@Map(level="{level}", type="array", cap=1)
class ends:
    count: gl.u64
    odd: gl.pred

count: gl.u64 = 7

@probe(pos="kernel", level="{level}")
def first():
    ends.save(count, gl.thread_x + 2)

@probe(pos="kernel", level="{level}")
def second():
    count = 99
"""


@pytest.mark.parametrize("level", ["thread", "warp"])
def test_a_save_is_of_what_was_there_before_later_probes(level: str) -> None:
    program = parse_python(ENDS.format(level=level), "ends.py")
    got = run(NOTHING, program, (2, 1, 1), (32, 1, 1)).maps["ends"].records
    assert set(got.tolist()) == {(7, 1)}


MISTAKES = [
    ("a = 1.5", "a is u32, the value is f32"),
    ("a = x", "a is u32, the value is f32"),
    ("a = a / 2", "a is u32, the value is f32"),
    ("a = gl.bits(x) + x", "a is u32, the value is f32"),
    ("a = 4294967296", "does not fit a"),
    ("b = 1 << 64 - 1 << 1", "more than 64 bits|shift"),
    ("a = a // 0", "division by zero"),
    ("a = a % (3 - 3)", "division by zero"),
    ("a = a << -1", "negative"),
    ("x = x % 2.0", "whole numbers only"),
    ("x = ~x", "whole numbers only"),
    ("a = gl.popc(x)", "whole numbers only"),
    ("a = 1 << 1.0", "whole numbers only"),
    ("a = gl.addr", "addr needs an instruction"),
    ("a = gl.out", "out needs an instruction"),
]


@pytest.mark.parametrize(("statement", "message"), MISTAKES)
def test_what_does_not_fit_is_refused_with_its_line(statement: str, message: str) -> None:
    text = (
        "import gpuwatch.language as gl\nfrom gpuwatch import probe\n"
        "a: gl.u32 = 0\nb: gl.u64 = 0\nx: gl.f32 = 0\n"
        f'@probe(pos="kernel", level="thread")\ndef f():\n    {statement}\n'
    )
    with pytest.raises(UserError, match=message) as caught:
        verify(parse_python(text, "t.py"))
    assert caught.value.at is not None and caught.value.at.line == 8
    assert caught.value.hint


@given(TREES)
def test_folding_never_fails_otherwise(tree: Expression) -> None:
    try:
        value = fold(tree)
    except BadValueError as error:
        assert error.hint
        return
    assert value is None or -(1 << 63) <= value < 1 << 64
