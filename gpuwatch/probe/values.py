"""Constants folded and types followed through expressions, without a kernel."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from gpuwatch.probe.language import CONVERSIONS, INTEGER_RANGE
from gpuwatch.probe.model import Binary, Constant, Expression, Helper, Read, ScalarType, Unary

Number = int | float

LEAST, GREATEST = -(1 << 63), (1 << 64) - 1
"""What a whole-number constant may be."""

FOLDED: dict[str, Callable[[Number, Number], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
}
WHOLE: dict[str, Callable[[int, int], int]] = {
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda a, b: a << b if b < 64 else 0,
    ">>": lambda a, b: a >> min(b, 64),
}
"""Operators of whole numbers only."""

TESTS = frozenset({"==", "!=", "<", "<=", ">", ">=", "and", "or"})
_WHOLE_ONLY = frozenset(WHOLE) | {"%"}


class BadValueError(ValueError):
    """What is wrong with an expression, and what to write instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def fold(expression: Expression) -> Number | None:
    """The value of an expression of constants, in unbounded arithmetic; None for any other.

    Raises BadValueError for a division by zero, a negative shift, a fraction where only whole
    numbers go, and for what 64 bits cannot hold.
    """
    match expression:
        case Constant(value):
            return value
        case Unary(op, value):
            return _unary(op, fold(value))
        case Binary(op, left, right):
            return _binary(op, fold(left), fold(right))
        case Helper(("min" | "max") as op, (first, *others)):
            result = fold(first)
            for other in others:
                result = _binary(op, result, fold(other))
            return result
    return None


def _unary(op: str, value: Number | None) -> Number | None:
    if value is None:
        return None
    if op == "not":
        return int(not value)
    if op == "-":
        return _bounded(-value)
    if isinstance(value, float):
        raise BadValueError("~ takes whole numbers only", "drop the decimal point")
    return _bounded(~value)


def _binary(op: str, left: Number | None, right: Number | None) -> Number | None:
    if right is not None:
        _check_right(op, right)
    if left is None or right is None:
        return None
    if op in WHOLE:
        if isinstance(left, float) or isinstance(right, float):
            raise BadValueError(f"{op} takes whole numbers only", "drop the decimal point")
        return _bounded(WHOLE[op](left, right))
    try:
        result = FOLDED[op](left, right)
    except OverflowError as error:
        raise BadValueError("the constant is out of range", "use smaller numbers") from error
    return int(result) if op in TESTS else _bounded(result)


def _check_right(op: str, right: Number) -> None:
    if op in ("/", "//", "%") and right == 0:
        raise BadValueError("division by zero", "divide by something else")
    if op in ("<<", ">>") and right < 0:
        raise BadValueError("a shift by a negative number", "shift the other way")


def _bounded(value: Number) -> Number:
    if isinstance(value, int) and not LEAST <= value <= GREATEST:
        raise BadValueError("the constant needs more than 64 bits", "use smaller numbers")
    return value


def kind_of(expression: Expression, registers: Mapping[str, ScalarType]) -> ScalarType | None:
    """f32 or pred where the value surely is one; an integer type, or None, where it is another.

    Raises BadValueError for operators that its operands do not have, and as `fold` does.
    """
    constant = fold(expression)
    if constant is not None:
        return "f32" if isinstance(constant, float) else None
    match expression:
        case Read(register):
            return registers.get(register)
        case Unary(op, value):
            return _kind_of_unary(op, kind_of(value, registers))
        case Binary(op, left, right):
            return _kind_of_binary(op, kind_of(left, registers), kind_of(right, registers))
        case Helper(name, arguments):
            return _kind_of_helper(name, [kind_of(one, registers) for one in arguments])
    return None


def _kind_of_unary(op: str, kind: ScalarType | None) -> ScalarType | None:
    if op == "not":
        return "pred"
    if op == "~" and kind == "f32":
        raise BadValueError("~ takes whole numbers only", "convert it: u32(...) or bits(...)")
    return kind if kind != "pred" else "u32"


def _kind_of_binary(
    op: str, left: ScalarType | None, right: ScalarType | None
) -> ScalarType | None:
    floating = "f32" in (left, right)
    if op in _WHOLE_ONLY and floating:
        raise BadValueError(f"{op} takes whole numbers only", "convert it: u32(...) or bits(...)")
    if op in TESTS:
        return "pred"
    return "f32" if floating or op == "/" else None


def _kind_of_helper(name: str, arguments: list[ScalarType | None]) -> ScalarType | None:
    if name in CONVERSIONS:
        return CONVERSIONS[name]
    if name == "popc" and arguments == ["f32"]:
        raise BadValueError("popc takes whole numbers only", "convert it: popc(bits(...))")
    return "f32" if name in ("min", "max") and "f32" in arguments else None


def check_fits(expression: Expression, type_: ScalarType, registers: Mapping[str, ScalarType],
               what: str) -> None:  # fmt: skip
    """Raises BadValueError if the value cannot go into `what`, of `type_`: a constant out of its
    range, or an f32 that would silently lose its fraction."""
    kind = kind_of(expression, registers)
    if kind == "f32" and type_ != "f32":
        raise BadValueError(
            f"{what} is {type_}, the value is f32",
            f"write {'u32' if type_ == 'pred' else type_}(...) for its number, bits(...) for its "
            "bit pattern",
        )
    constant = fold(expression)
    if isinstance(constant, int) and type_ not in ("f32", "pred"):
        least, most = INTEGER_RANGE[type_]
        if not least <= constant <= most and not -(most + 1) // 2 <= constant <= most:
            raise BadValueError(f"{constant} does not fit {what}, which is {type_}",
                               f"use {least} to {most}")  # fmt: skip
