"""The operators of the probe language as PTX.

`//` and `%` of signed operands round towards minus infinity, as Python's do; PTX rounds towards
zero. A shift by the width or more gives 0 (or the sign), in both. Of f32 there are
+ - * / // min max and comparisons; / of whole numbers is of them as f32.
"""

from __future__ import annotations

from gpuwatch.instrument.code import Code
from gpuwatch.instrument.values import BITS, Value, common_type, constant, convert
from gpuwatch.probe.model import Binary, Constant
from gpuwatch.probe.values import BadValueError, fold

TYPED = {"+": "add", "-": "sub", "*": "mul.lo", "min": "min", "max": "max"}
FLOATING = {
    "+": "add.rn", "-": "sub.rn", "*": "mul.rn", "/": "div.rn", "//": "div.rn", "min": "min",
    "max": "max",
}  # fmt: skip
BITWISE = {"&": "and", "|": "or", "^": "xor"}
DIVISION = {"//": "div", "%": "rem"}
SHIFT = {"<<": "shl", ">>": "shr"}
COMPARISON = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
LOGICAL = {"and": "and", "or": "or"}


def binary(code: Code, op: str, left: Value, right: Value, into: str | None, wanted: str) -> Value:
    """`left op right`. The result goes to `into` if its type turns out to be `wanted`."""
    if left.constant is not None and right.constant is not None:
        folded = fold(Binary(op, Constant(left.constant), Constant(right.constant)))
        if folded is not None:
            return constant(folded)
    if op in LOGICAL or op in COMPARISON:
        return _test(code, op, left, right, into if wanted == "pred" else None)
    if op in SHIFT:
        return _shift(code, op, left, right, into, wanted)
    type_ = "f32" if op == "/" else common_type(left, right)
    target = into if type_ == wanted else None
    if type_ == "f32":
        return _floating(code, op, left, right, target)
    a, b = _register(code, left, type_), convert(code, right, type_)
    if op in DIVISION:
        return Value(_divide(code, op, type_, a, b, target), type_)
    instruction = f"{TYPED[op]}.{type_}" if op in TYPED else f"{BITWISE[op]}.b{BITS[type_]}"
    return Value(code.compute(type_, instruction, a, b, into=target), type_)


def _floating(code: Code, op: str, left: Value, right: Value, into: str | None) -> Value:
    if op not in FLOATING:
        raise _whole_only(op)
    a, b = _register(code, left, "f32"), convert(code, right, "f32")
    if op == "//":
        quotient = code.compute("f32", "div.rn.f32", a, b)
        return Value(code.compute("f32", "cvt.rmi.f32.f32", quotient, into=into), "f32")
    return Value(code.compute("f32", f"{FLOATING[op]}.f32", a, b, into=into), "f32")


def _whole_only(op: str) -> BadValueError:
    return BadValueError(f"{op} takes whole numbers only", "convert it: u32(...) or bits(...)")


def unary(code: Code, op: str, value: Value) -> Value:
    """`- value`, `~ value`, `not value`, `popc(value)` or `bits(value)`."""
    if op == "not":
        truth = convert(code, value, "pred")
        return Value(code.compute("pred", "not.pred", truth), "pred")
    type_ = "u32" if value.type == "pred" else value.type
    operand = _register(code, value, type_)
    if op == "-":
        signed = type_ if type_ == "f32" else f"s{BITS[type_]}"
        return Value(code.compute(type_, f"neg.{signed}", operand), type_)
    if op == "bits":
        return Value(convert(code, Value(operand, type_), f"u{BITS[type_]}"), f"u{BITS[type_]}")
    if type_ == "f32":
        raise _whole_only(op)
    if op == "popc":
        return Value(code.compute("u32", f"popc.b{BITS[type_]}", operand), "u32")
    return Value(code.compute(type_, f"not.b{BITS[type_]}", operand), type_)


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
    if "f32" in (type_, right.type):
        raise _whole_only(op)
    suffix = f"b{BITS[type_]}" if op == "<<" else type_
    a = _register(code, left, type_)
    if right.constant is not None:
        right = constant(min(right.constant, 64))
    elif BITS[right.type] == 64:
        right = Value(code.compute("u64", "min.u64", right.text, "64"), "u64")
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
