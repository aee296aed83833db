"""Typed values in probe code, and conversions between their types.

An integer put in a narrower one is truncated; a 32-bit integer is widened by its own sign. An
f32 put in an integer keeps its bits; an integer put in an f32 is rounded to nearest.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from gpuwatch.instrument.code import Code

BITS = {"u32": 32, "s32": 32, "u64": 64, "s64": 64, "f32": 32, "pred": 1}


@dataclass(frozen=True, slots=True)
class Value:
    """A register, or a constant that takes the type of what it meets."""

    text: str
    type: str
    constant: int | float | None = None


def constant(value: int | float) -> Value:
    """A constant; its type, s64 or u64, is only what it has when it meets no other. One with a
    fraction is an f32."""
    if isinstance(value, float):
        return Value(literal(value, "f32"), "f32", value)
    return Value(str(value), "s64" if value < 1 << 63 else "u64", value)


def literal(value: int | float, type_: str) -> str:
    """`value` as an operand of a type, wrapped to its width; as f32 the nearest to it."""
    if type_ == "f32":
        return f"0f{_float_bits(value):08X}"
    if type_ == "pred":
        return "-1" if value else "0"
    value = int(value)
    bits = BITS[type_]
    wrapped = value & ((1 << bits) - 1)
    signed = type_.startswith("s") and wrapped >> (bits - 1)
    return str(wrapped - (1 << bits) if signed else wrapped)


def _float_bits(value: int | float) -> int:
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", math.copysign(math.inf, value))
    return int(struct.unpack("<I", packed)[0])


def fits(value: int, type_: str) -> bool:
    """Whether an integer type of the register's width can hold the value's bit pattern."""
    bits = BITS[type_]
    return -(1 << (bits - 1)) <= value < 1 << bits


def common_type(left: Value, right: Value) -> str:
    """The type in which two operands meet: the wider; of one width unsigned, as in C.

    A constant takes the other's type if it fits.
    """
    if left.constant is not None and right.constant is None:
        return common_type(right, left)
    if right.constant is not None and left.constant is None and left.type != "pred":
        if isinstance(right.constant, float):
            return "f32"
        if left.type == "f32" or fits(right.constant, left.type):
            return left.type
        return "u64" if right.constant >= 1 << 63 else "s64"
    types = ["u32" if value.type == "pred" else value.type for value in (left, right)]
    if "f32" in types:
        return "f32"
    width = max(BITS[type_] for type_ in types)
    unsigned = any(t.startswith("u") for t in types if BITS[t] == width)
    return f"{'u' if unsigned else 's'}{width}"


def copy(code: Code, value: Value, type_: str, into: str) -> str:
    """`into` = `value`, converted to `type_`."""
    if value.constant is not None:
        return _move(code, type_, literal(value.constant, type_), into)
    if value.type == type_ or _only_sign_differs(value.type, type_):
        return _move(code, type_, value.text, into)
    return _convert(code, value, type_, into)


def convert(code: Code, value: Value, type_: str) -> str:
    """An operand of `type_` with the value; a register of its own only where one is needed."""
    if value.constant is not None:
        if type_ == "pred":
            return copy(code, value, type_, code.temporaries.new(type_))
        return literal(value.constant, type_)
    if value.type == type_ or _only_sign_differs(value.type, type_):
        return value.text
    return _convert(code, value, type_, None)


def cast(code: Code, value: Value, type_: str) -> Value:
    """The number nearest to `value` in `type_`: an f32 is cut off towards zero, and an integer
    that is too wide wraps."""
    if value.constant is not None:
        return Value(code.compute(type_, f"mov.{type_}", literal(value.constant, type_)), type_)
    if value.type == "f32" and type_ != "f32":
        return Value(code.compute(type_, f"cvt.rzi.{type_}.f32", value.text), type_)
    return Value(convert(code, value, type_), type_)


def _move(code: Code, type_: str, operand: str, into: str) -> str:
    return code.compute(type_, f"mov.{type_}", operand, into=into)


def _only_sign_differs(one: str, other: str) -> bool:
    return BITS[one] == BITS[other] and "f32" not in (one, other)


def _convert(code: Code, value: Value, type_: str, into: str | None) -> str:
    if value.type == "pred":
        one = literal(1, type_)
        return code.compute(
            type_,
            f"selp.{_selected(type_)}",
            one,
            "0" if type_ != "f32" else literal(0, type_),
            value.text,
            into=into,
        )
    if type_ == "pred":
        return _truth(code, value, into)
    if value.type == "f32":
        return _bits_of_float(code, value, type_, into)
    if type_ == "f32":
        return code.compute(type_, f"cvt.rn.f32.{value.type}", value.text, into=into)
    target = f"u{BITS[type_]}" if BITS[type_] == 32 else f"{value.type[0]}64"
    source = value.type if BITS[type_] == 64 else "u64"
    return code.compute(type_, f"cvt.{target}.{source}", value.text, into=into)


def _selected(type_: str) -> str:
    return "f32" if type_ == "f32" else f"b{BITS[type_]}"


def _truth(code: Code, value: Value, into: str | None) -> str:
    zero = literal(0, value.type)
    test = "setp.neu" if value.type == "f32" else "setp.ne"
    return code.compute("pred", f"{test}.{value.type}", value.text, zero, into=into)


def _bits_of_float(code: Code, value: Value, type_: str, into: str | None) -> str:
    if BITS[type_] == 32:
        return code.compute(type_, "mov.b32", value.text, into=into)
    bits = code.compute("u32", "mov.b32", value.text)
    return code.compute(type_, "cvt.u64.u32", bits, into=into)
