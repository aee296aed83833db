"""Constant expressions, evaluated as PTX does (PTX ISA 9.0, "Constant Expressions").

Integers have 64 bits and are signed, but for literals with `U` or beyond 2^63 - 1; an operation
of a signed and an unsigned one is unsigned. Floating-point constants are doubles. Where the
document is silent, this does as ptxas 13.0 does: `%` is unsigned, shift counts are taken modulo
64, and kinds do not mix.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeAlias

from gpuwatch.ptx.lexer import TRIVIA_PATTERN, Cursor, Token, is_float_literal
from gpuwatch.ptx.model import Immediate

WARP_SZ = Immediate("WARP_SZ", 32)
"""The predefined constant."""

_Number: TypeAlias = int | float

_OPERATOR = re.compile(TRIVIA_PATTERN + r"*+(\|\||&&|<<|>>|[<>=!]=|[|^&<>+\-*/%?])", re.ASCII)
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="),
    ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_PRECEDENCE = {mark: level for level, marks in enumerate(_LEVELS) for mark in marks}
_SHIFTS = frozenset({"<<", ">>"})
_UNSIGNED = {"%": True}
"""Operators whose operands are unsigned whatever they are written as."""
_PRODUCT = _PRECEDENCE["*"]
_BITS = 64
_MASK = (1 << _BITS) - 1
_TOP = 1 << (_BITS - 1)
_DEEPEST = 32
"""Levels of parentheses and signs in an expression."""


class _Constant(NamedTuple):
    value: _Number
    unsigned: bool = False


class ConstantReader:
    """Reads constant expressions at the cursor."""

    __slots__ = ("_cursor", "_depth")

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._depth = 0

    def immediate(self) -> Immediate:
        """immediate = expression; a mere literal is taken as it is written."""
        cursor = self._cursor
        start = cursor.peek().start
        plain = self._literal()
        if plain is not None and self._operator() is None:
            return plain
        cursor.seek(start)
        value = self._expression().value
        text = cursor.text[start : cursor.position]
        return Immediate(text, value, isinstance(value, float))

    def offset(self) -> int:
        """offset = { ("+" | "-") product }"""
        cursor = self._cursor
        total = 0
        while cursor.at("+") or cursor.at("-"):
            sign = -1 if cursor.next().text == "-" else 1
            token = cursor.peek()
            value = self._binary(_PRODUCT).value
            if isinstance(value, float):
                cursor.fail("an offset is a whole number", token.start, "write [%rd1+8]")
            total += sign * value
        return total

    def _literal(self) -> Immediate | None:
        """literal = [ "-" ] number; None for what is none."""
        cursor = self._cursor
        negative = cursor.take("-")
        token = cursor.peek()
        if token.kind != "number":
            return None
        cursor.next()
        value = cursor.value(token)
        is_float = is_float_literal(token.text)
        if not negative:
            return Immediate(token.text, value, is_float)
        if is_float and isinstance(value, int):
            cursor.fail(
                "a bit pattern has no sign",
                token.start - 1,
                "set the pattern's top bit instead of writing '-'",
            )
        return Immediate("-" + token.text, -value, is_float)

    def _operator(self) -> re.Match[str] | None:
        return _OPERATOR.match(self._cursor.text, self._cursor.position)

    def _expression(self) -> _Constant:
        """expression = binary [ "?" expression ":" expression ]"""
        cursor = self._cursor
        begin = cursor.peek()
        test = self._binary(0)
        if not cursor.take("?"):
            return test
        first = self._expression()
        cursor.expect(":", "the first choice")
        second = self._expression()
        for each in (test, first, second):
            self._whole(each, begin)
        return first if test.value else second

    def _binary(self, least: int) -> _Constant:
        """binary = unary { operator unary }, by precedence."""
        left = self._unary()
        while True:
            match = self._operator()
            level = _PRECEDENCE.get(match[1], -1) if match else -1
            if match is None or level < least:
                return left
            self._cursor.seek(match.end())
            right = self._binary(level + 1)
            left = self._combine(match, left, right)

    def _combine(self, match: re.Match[str], left: _Constant, right: _Constant) -> _Constant:
        mark = match[1]
        a, b = left.value, right.value
        if isinstance(a, float) and isinstance(b, float):
            return self._combine_floats(match, a, b)
        if isinstance(a, float) or isinstance(b, float):
            self._fail(match, f"'{mark}' of a whole and a floating-point constant")
        if mark in ("/", "%") and b == 0:
            self._fail(match, "division by zero")
        unsigned = _UNSIGNED.get(mark, left.unsigned or right.unsigned)
        if mark in _SHIFTS:
            unsigned = left.unsigned
        a, b = _wrap(a, unsigned), _wrap(b, unsigned)
        if mark in _COMPARISONS:
            return _Constant(int(_COMPARISONS[mark](a, b)))
        return _Constant(_wrap(_INTEGER[mark](a, b), unsigned), unsigned)

    def _combine_floats(self, match: re.Match[str], left: float, right: float) -> _Constant:
        mark = match[1]
        if mark in _COMPARISONS and mark not in ("&&", "||"):
            return _Constant(int(_COMPARISONS[mark](left, right)))
        if mark not in _FLOAT:
            self._fail(match, f"'{mark}' of floating-point constants")
        if mark == "/" and right == 0:
            self._fail(match, "division by zero")
        return _Constant(_FLOAT[mark](left, right))

    def _fail(self, match: re.Match[str], message: str) -> NoReturn:
        self._cursor.fail(message, match.start(1), "PTX has no value for it; write the number")

    def _unary(self) -> _Constant:
        """unary = ( "-" | "+" | "~" | "!" | cast ) unary | "(" expression ")" | number | WARP_SZ"""
        cursor = self._cursor
        token = cursor.peek()
        self._depth += 1
        if self._depth > _DEEPEST:
            cursor.fail("the expression is nested too deeply", token.start, "simplify it")
        if token.kind == "number":
            found = self._number(cursor.next())
        elif token.text == "(":
            found = self._enclosed()
        elif token.text in _UNARY:
            cursor.next()
            found = self._signed(token)
        elif cursor.take(WARP_SZ.text):
            found = _Constant(WARP_SZ.value)
        else:
            cursor.unexpected("a constant")
        self._depth -= 1
        return found

    def _signed(self, mark: Token) -> _Constant:
        operand = self._unary()
        if mark.text in ("~", "!"):
            self._whole(operand, mark)
        return _UNARY[mark.text](operand)

    def _whole(self, operand: _Constant, at: Token) -> int:
        if isinstance(operand.value, float):
            self._cursor.fail("expected a whole number", at.start, "write an integer here")
        return operand.value

    def _number(self, token: Token) -> _Constant:
        value = self._cursor.value(token)
        if isinstance(value, float):
            return _Constant(value)
        if is_float_literal(token.text):
            self._cursor.fail(
                "a bit pattern stands alone", token.start, "write it as a decimal number: 1.0"
            )
        return _Constant(value, value >= _TOP or token.text[-1] == "U")

    def _enclosed(self) -> _Constant:
        """enclosed = "(" ( ".s64" | ".u64" ) ")" unary | "(" expression ")" """
        cursor = self._cursor
        opening = cursor.next()
        unsigned = cursor.take(".u64")
        if unsigned or cursor.take(".s64"):
            cursor.expect(")", "the type")
            value = self._whole(self._unary(), opening)
            return _Constant(_wrap(value, unsigned), unsigned)
        found = self._expression()
        cursor.expect(")", "the expression")
        return found


def _wrap(value: int, unsigned: bool) -> int:
    value &= _MASK
    return value - (1 << _BITS) if not unsigned and value >= _TOP else value


def _divide(a: int, b: int) -> int:
    """The quotient, rounded towards zero."""
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


_COMPARISONS: dict[str, Callable[[_Number, _Number], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&&": lambda a, b: bool(a) and bool(b),
    "||": lambda a, b: bool(a) or bool(b),
}
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda a, b: a << b % _BITS,
    ">>": lambda a, b: a >> b % _BITS,
}
_FLOAT: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def _negate(operand: _Constant) -> _Constant:
    if isinstance(operand.value, float):
        return _Constant(-operand.value)
    return _Constant(_wrap(-operand.value, operand.unsigned), operand.unsigned)


def _invert(operand: _Constant) -> _Constant:
    return _Constant(_wrap(~int(operand.value), operand.unsigned), operand.unsigned)


_UNARY: dict[str, Callable[[_Constant], _Constant]] = {
    "-": _negate,
    "+": lambda operand: operand,
    "~": _invert,
    "!": lambda operand: _Constant(int(not operand.value)),
}
