"""The language of table filters: tokens, syntax tree and parser.

    either      := both (("or" | "||") both)*
    both        := negation (("and" | "&&") negation)*
    negation    := ("not" | "!") negation | comparison
    comparison  := sum (("==" | "=" | "!=" | "<" | "<=" | ">" | ">=") sum)*
    sum         := product (("+" | "-") product)*
    product     := factor (("*" | "/" | "%") factor)*
    factor      := "-" factor | number | name | "(" either ")" | "(" number ("," number)+ ")"

Words are read without regard to case. A number may end in k, M or G (1.5k is 1500).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal


class FilterError(ValueError):
    """A filter that makes no sense. `column` counts from 0 within the text."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.message, self.column = message, column


@dataclass(frozen=True, slots=True)
class Node:
    """`column` is where it stands in the text, or where its operator does."""

    column: int


@dataclass(frozen=True, slots=True)
class Number(Node):
    """Whole numbers are int, so that 64-bit columns compare exactly."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column of the table, in lower case."""

    name: str


@dataclass(frozen=True, slots=True)
class Statistic(Node):
    """min, max, mean, or a percentile as p50, of what it is compared with."""

    name: str


@dataclass(frozen=True, slots=True)
class Place(Node):
    """(x, y) or (x, y, z): a position in the grid."""

    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """+, -, *, / or %."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """One pair; a < b < c is two of them joined by "and"."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """and, or; not with one part."""

    operator: Literal["and", "or", "not"]
    parts: tuple[Node, ...]


def is_truth(node: Node) -> bool:
    """Whether `node` says yes or no for each row, and is not a number."""
    return isinstance(node, Comparison | Logic)


def parse(text: str, names: Collection[str]) -> Node:
    """The tree of `text`, a condition over columns called `names` (lower case).

    Raises FilterError. Of a column and a statistic with the same name the column is meant.
    """
    return _Parser(text, names).whole()


_STATISTIC = re.compile(r"min|max|mean|p(\d\d?|100)")
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>0x[0-9a-f]+ | \d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?[kmg]?)(?![\w.])
      | (?P<word>[a-z_]\w*)
      | (?P<sign>&& | \|\| | [=!<>]= | [=<>!()+\-*/%,])
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_SPELLING = {"&&": "and", "||": "or", "!": "not", "=": "=="}
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9}
_WORDS = frozenset(("and", "or", "not"))


@dataclass(frozen=True, slots=True)
class _Token:
    """`kind` is number, word, sign or end."""

    kind: str
    text: str
    column: int


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    end = 0
    while text[end:].strip():
        match = _TOKEN.match(text, end)
        if match is None:
            column = len(text) - len(text[end:].lstrip())
            raise FilterError(f"cannot read {text[column:].split()[0]!r}", column)
        kind = match.lastgroup or ""
        word = match[kind].lower()
        word = _SPELLING.get(word, word)
        found.append(_Token("sign" if word in _WORDS else kind, word, match.start(kind)))
        end = match.end()
    found.append(_Token("end", "", len(text.rstrip())))
    return found


def _number(text: str) -> int | float:
    if text[:2].lower() == "0x":
        return int(text, 16)
    digits = text.replace("_", "")
    unit = _UNITS.get(digits[-1].lower(), 1)
    value = Decimal(digits if unit == 1 else digits[:-1]) * unit
    return int(value) if value == value.to_integral_value() else float(value)


class _Parser:
    """One method per rule of the grammar."""

    def __init__(self, text: str, names: Collection[str]) -> None:
        self._names = names
        self._tokens = _tokens(text)
        self._at = 0

    # ---- tokens

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *signs: str) -> _Token | None:
        """The next token if it is one of `signs`."""
        token = self._next
        if token.kind != "sign" or token.text not in signs:
            return None
        self._at += 1
        return token

    def _expect(self, sign: str, why: str) -> None:
        if self._take(sign) is None:
            raise FilterError(f"{sign!r} is missing {why}", self._next.column)

    # ---- rules

    def whole(self) -> Node:
        if self._next.kind == "end":
            raise FilterError("a condition is missing", 0)
        node = self._truth(self._either)
        if self._next.kind != "end":
            raise FilterError(f"did not expect {self._next.text!r} here", self._next.column)
        return node

    def _either(self) -> Node:
        return self._joined("or", self._both)

    def _both(self) -> Node:
        return self._joined("and", self._negation)

    def _joined(self, word: Literal["and", "or"], part: Callable[[], Node]) -> Node:
        first = part()
        if self._next.text != word or self._next.kind != "sign":
            return first
        column = self._next.column
        parts = [_as_truth(first)]
        while self._take(word):
            parts.append(self._truth(part))
        return Logic(column, word, tuple(parts))

    def _negation(self) -> Node:
        token = self._take("not")
        if token is None:
            return self._comparison()
        return Logic(token.column, "not", (self._truth(self._negation),))

    def _comparison(self) -> Node:
        left = self._sum()
        pairs: list[Node] = []
        while (token := self._take(*_COMPARISONS)) is not None:
            right = _as_number(self._sum())
            pairs.append(_checked(Comparison(token.column, token.text, _as_number(left), right)))
            left = right
        if not pairs:
            return left
        return pairs[0] if len(pairs) == 1 else Logic(pairs[0].column, "and", tuple(pairs))

    def _sum(self) -> Node:
        return self._arithmetic(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._arithmetic(("*", "/", "%"), self._factor)

    def _arithmetic(self, signs: tuple[str, ...], part: Callable[[], Node]) -> Node:
        left = part()
        while (token := self._take(*signs)) is not None:
            right = _as_number(part())
            if token.text in ("/", "%") and _constant(right) == 0:
                raise FilterError("this divides by zero", right.column)
            left = Arithmetic(token.column, token.text, _as_number(left), right)
        return left

    def _factor(self) -> Node:
        token = self._next
        if self._take("-"):
            return Arithmetic(
                token.column, "-", Number(token.column, 0), _as_number(self._factor())
            )
        if self._take("("):
            return self._bracketed(token.column)
        self._at += 1
        if token.kind == "number":
            return Number(token.column, _number(token.text))
        if token.kind == "word":
            return self._word(token)
        found = "the end" if token.kind == "end" else repr(token.text)
        raise FilterError(f"a column or a number is missing before {found}", token.column)

    def _bracketed(self, column: int) -> Node:
        inner = self._either()
        if self._next.text == ",":
            return self._place(column, inner)
        self._expect(")", f"for the '(' in column {column + 1}")
        return inner

    def _place(self, column: int, first: Node) -> Node:
        parts = [first]
        while self._take(","):
            parts.append(self._factor())
        self._expect(")", f"for the '(' in column {column + 1}")
        whole = []
        for part in parts:
            if not isinstance(part, Number) or not isinstance(part.value, int):
                raise FilterError("a position holds whole numbers: (3,1)", part.column)
            whole.append(part.value)
        if len(whole) > 3:
            raise FilterError("a position has at most three parts", parts[3].column)
        return Place(column, tuple(whole))

    def _word(self, token: _Token) -> Node:
        if token.text in self._names:
            return Name(token.column, token.text)
        if _STATISTIC.fullmatch(token.text):
            return Statistic(token.column, token.text)
        known = ", ".join(self._names)
        raise FilterError(f"no column {token.text!r}; there are {known}", token.column)

    def _truth(self, rule: Callable[[], Node]) -> Node:
        return _as_truth(rule())


def _as_truth(node: Node) -> Node:
    if not is_truth(node):
        what = node.name if isinstance(node, Name) else "this"
        raise FilterError(f"compare {what} with something, as in elapsed > 10k", node.column)
    return node


def _as_number(node: Node) -> Node:
    if is_truth(node):
        raise FilterError("a number or a column is wanted here, not a condition", node.column)
    return node


def _checked(pair: Comparison) -> Comparison:
    """A comparison whose statistics and positions have a column to refer to."""
    sides = (pair.left, pair.right)
    for side, other in (sides, sides[::-1]):
        statistic = _first(side, Statistic)
        if statistic is not None and (_first(other, Name) is None or _first(other, Statistic)):
            what = statistic.name if isinstance(statistic, Statistic) else ""
            raise FilterError(
                f"{what} is taken of the column on the other side: elapsed > {what}",
                statistic.column,
            )
        if isinstance(side, Place):
            if not isinstance(other, Name):
                raise FilterError("a position is compared with block", side.column)
            if pair.operator not in ("==", "!="):
                raise FilterError("positions are equal (==) or not (!=)", pair.column)
        elif (place := _first(side, Place)) is not None:
            raise FilterError("no arithmetic with positions", place.column)
    return pair


def _constant(node: Node) -> int | float | None:
    """The value of what is made of numbers alone, None where it has none."""
    if isinstance(node, Number):
        return node.value
    if not isinstance(node, Arithmetic):
        return None
    left, right = _constant(node.left), _constant(node.right)
    if left is None or right is None:
        return None
    try:
        value: int | float = COMPUTE[node.operator](left, right)
        return value
    except OverflowError:
        return None


def _first(node: Node, kind: type[Node]) -> Node | None:
    """The first node of `kind` in a sum or product."""
    if isinstance(node, kind):
        return node
    if isinstance(node, Arithmetic):
        return _first(node.left, kind) or _first(node.right, kind)
    return None
