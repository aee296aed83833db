"""Arithmetic in launch descriptions: integers and reals, names, operators; never executed."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping

from gpuwatch.errors import Location, UserError
from gpuwatch.syntax import expression_tree

Number = int | float

_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_INTEGER_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "min": min,
    "max": max,
    "cdiv": lambda a, b: -(-a // b),
}
LONGEST = 200
_LARGEST_SHIFT = 63
_WORDS = "numbers, names of sizes, + - * / // % << >> & | ^, min, max, cdiv"


def outer_parts(text: str, opening: str = "([", closing: str = ")]") -> Iterator[tuple[int, str]]:
    """Offset and text of each part between commas outside brackets."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character in opening) - (character in closing)
        if character == "," and depth == 0:
            yield start, text[start:at]
            start = at + 1
    yield start, text[start:]


def evaluate(
    text: str, names: Mapping[str, Number], at: Location | None = None, shift: int = 0
) -> Number:
    """The value of an expression such as "(M+31)//32" or "cdiv(M, 32)*4".

    `at` is the place of the text, for messages; `shift` the column in it where the expression
    begins, from 0. Raises UserError for anything that is no arithmetic and for unknown names.
    """
    if len(text) > LONGEST:
        raise UserError(f"an expression of more than {LONGEST} characters", at=at)
    try:
        tree = expression_tree(text.strip() or "?")
    except (SyntaxError, ValueError) as problem:
        column = (getattr(problem, "offset", None) or 1) - 1
        raise UserError(
            f"{text!r} is no arithmetic expression",
            at=_moved(at, shift + column),
            hint=f"write {_WORDS}",
        ) from problem
    evaluator = _Evaluator(text, names, at, shift + len(text) - len(text.lstrip()))
    try:
        value = evaluator.value(tree)
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise UserError(f"{text!r} is too large", at=_moved(at, shift), hint="name smaller sizes")
    return value


def whole(
    text: str, names: Mapping[str, Number], at: Location | None = None, shift: int = 0
) -> int:
    """The same, for what must be an integer."""
    value = evaluate(text, names, at, shift)
    if isinstance(value, float) and not value.is_integer():
        raise UserError(
            f"{text!r} is {value:g}, not a whole number",
            at=_moved(at, shift),
            hint="divide with // to round down, or with cdiv(a, b) to round up",
        )
    return int(value)


class _Evaluator:
    def __init__(
        self, text: str, names: Mapping[str, Number], at: Location | None, shift: int
    ) -> None:
        self._text = text
        self._names = names
        self._at = at
        self._shift = shift

    def value(self, node: ast.expr) -> Number:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return number
            case ast.Name(id=name):
                return self._named(node, name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.BinOp():
                return self._binary(node)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._called(node, name, arguments)
        raise self._error(node, f"{self._text!r} is more than arithmetic", f"write {_WORDS}")

    def _named(self, node: ast.expr, name: str) -> Number:
        if name not in self._names:
            known = ", ".join(sorted(self._names)) or "none"
            raise self._error(node, f"no size is called {name}", f"known here: {known}")
        return self._names[name]

    def _binary(self, node: ast.BinOp) -> Number:
        left, right = self.value(node.left), self.value(node.right)
        kind = type(node.op)
        if right == 0 and kind in (ast.Div, ast.FloorDiv, ast.Mod):
            raise self._error(node, f"{self._text!r} divides by zero", "name another size")
        if kind in _OPERATORS:
            return _OPERATORS[kind](left, right)
        if kind in _INTEGER_OPERATORS and isinstance(left, int) and isinstance(right, int):
            if kind in (ast.LShift, ast.RShift) and not 0 <= right <= _LARGEST_SHIFT:
                raise self._error(node, f"{self._text!r} shifts by {right}", "shift by 0 to 63")
            return _INTEGER_OPERATORS[kind](left, right)
        raise self._error(node, f"{self._text!r} uses an unknown operator", f"write {_WORDS}")

    def _called(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> Number:
        if name not in _FUNCTIONS or (name == "cdiv" and len(arguments) != 2) or not arguments:
            raise self._error(node, f"{self._text!r} calls {name} in vain", f"write {_WORDS}")
        values = [self.value(argument) for argument in arguments]
        if name == "cdiv" and values[1] == 0:
            raise self._error(node, f"{self._text!r} divides by zero", "name another size")
        return _FUNCTIONS[name](*values) if len(values) > 1 else values[0]

    def _error(self, node: ast.expr, message: str, hint: str) -> UserError:
        return UserError(message, at=_moved(self._at, self._shift + node.col_offset), hint=hint)


def _moved(at: Location | None, columns: int) -> Location | None:
    return at and Location(at.file, at.line, at.column + columns, at.text)
