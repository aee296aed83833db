"""The operators of the probe language as PTX.

`//` and `%` of signed operands round towards minus infinity, as Python's do; PTX rounds towards
zero. A shift by the width or more gives 0 (or the sign), in both.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from gpuwatch.instrument.code import Code
from gpuwatch.instrument.values import BITS, Value, common_type, constant, convert

TYPED = {"+": "add", "-": "sub", "*": "mul.lo", "min": "min", "max": "max"}
FLOATING = {"+": "add.rn", "-": "sub.rn", "*": "mul.rn", "//": "div.rn", "min": "min", "max": "max"}
BITWISE = {"&": "and", "|": "or", "^": "xor"}
DIVISION = {"//": "div", "%": "rem"}
SHIFT = {"<<": "shl", ">>": "shr"}
COMPARISON = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
LOGICAL = {"and": "and", "or": "or"}

FOLDED: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "min": min,
    "max": max,
}


def binary(code: Code, op: str, left: Value, right: Value, into: str | None, wanted: str) -> Value:
    """`left op right`. The result goes to `into` if its type turns out to be `wanted`."""
    if left.constant is not None and right.constant is not None and op in FOLDED:
        return constant(FOLDED[op](left.constant, right.constant))
    if op in LOGICAL or op in COMPARISON:
        return _test(code, op, left, right, into if wanted == "pred" else None)
    if op in SHIFT:
        return _shift(code, op, left, right, into, wanted)
    type_ = common_type(left, right)
    target = into if type_ == wanted else None
    a, b = _register(code, left, type_), convert(code, right, type_)
    if type_ == "f32":
        return Value(code.compute(type_, f"{FLOATING[op]}.f32", a, b, into=target), type_)
    if op in DIVISION:
        return Value(_divide(code, op, type_, a, b, target), type_)
    instruction = f"{TYPED[op]}.{type_}" if op in TYPED else f"{BITWISE[op]}.b{BITS[type_]}"
    return Value(code.compute(type_, instruction, a, b, into=target), type_)


def unary(code: Code, op: str, value: Value) -> Value:
    """`- value`, `~ value` or `not value`."""
    if op == "not":
        truth = convert(code, value, "pred")
        return Value(code.compute("pred", "not.pred", truth), "pred")
    if value.constant is not None:
        return constant(-value.constant if op == "-" else ~value.constant)
    type_ = "u32" if value.type == "pred" else value.type
    operand = convert(code, value, type_)
    if op == "~":
        return Value(code.compute(type_, f"not.b{BITS[type_]}", operand), type_)
    signed = type_ if type_ == "f32" else f"s{BITS[type_]}"
    return Value(code.compute(type_, f"neg.{signed}", operand), type_)


def _register(code: Code, value: Value, type_: str) -> str:
    """The value in a register: some instructions take no constant as their first operand."""
    operand = convert(code, value, type_)
    if value.constant is None:
        return operand
    return code.compute(type_, f"mov.{type_}", operand)


def _test(code: Code, op: str, left: Value, right: Value, into: str | None) -> Value:
    if op in LOGICAL:
        instruction, type_ = f"{LOGICAL[op]}.pred", "pred"
        a, b = convert(code, left, "pred"), convert(code, right, "pred")
    else:
        type_ = common_type(left, right)
        name = "neu" if (op, type_) == ("!=", "f32") else COMPARISON[op]
        instruction = f"setp.{name}.{type_}"
        a, b = _register(code, left, type_), convert(code, right, type_)
    return Value(code.compute("pred", instruction, a, b, into=into), "pred")


def _shift(code: Code, op: str, left: Value, right: Value, into: str | None, wanted: str) -> Value:
    type_ = "u32" if left.type == "pred" else left.type
    suffix = f"b{BITS[type_]}" if op == "<<" else type_
    a = _register(code, left, type_)
    amount = convert(code, right, "u32")
    target = into if type_ == wanted else None
    return Value(code.compute(type_, f"{SHIFT[op]}.{suffix}", a, amount, into=target), type_)


def _divide(code: Code, op: str, type_: str, a: str, b: str, into: str | None) -> str:
    if type_.startswith("u"):
        return code.compute(type_, f"{DIVISION[op]}.{type_}", a, b, into=into)
    bits = f"b{BITS[type_]}"
    quotient = code.compute(type_, f"div.{type_}", a, b)
    product = code.compute(type_, f"mul.lo.{type_}", quotient, b)
    rest = code.compute(type_, f"sub.{type_}", a, product)
    signs = code.compute(type_, f"xor.{bits}", a, b)
    opposite = code.compute("pred", f"setp.lt.{type_}", signs, "0")
    inexact = code.compute("pred", f"setp.ne.{type_}", rest, "0")
    lowered = code.compute("pred", "and.pred", opposite, inexact)
    start, change = (quotient, "-1") if op == "//" else (rest, b)
    step = code.compute(type_, f"selp.{bits}", change, "0", lowered)
    return code.compute(type_, f"add.{type_}", start, step, into=into)
