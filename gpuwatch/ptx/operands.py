"""Operands: the full grammar, and a quick way for the shapes that nearly all of them have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from gpuwatch.ptx.constants import WARP_SZ, ConstantReader
from gpuwatch.ptx.lexer import Cursor, is_float_literal, number
from gpuwatch.ptx.model import (
    Address,
    Group,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
    numbered,
)

_NAME = r"[%$A-Za-z_][\w$]*+(?:\.\w++)?+"
_INTEGER = r"-?(?:0|[1-9]\d{0,18})(?![\w.$])"
_LITERAL = r"0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]{1,16}\b"
_ATOM = rf"(?:{_NAME}|{_INTEGER}|{_LITERAL})"
_PLAIN_ADDRESS = rf"\[ ?{_NAME}(?: ?\+ ?{_INTEGER})? ?\]"
_PLAIN_VECTOR = rf"\{{ ?{_ATOM}(?:, ?{_ATOM})*+ ?\}}"
_PLAIN = rf"(?:{_ATOM}|{_PLAIN_ADDRESS}|{_PLAIN_VECTOR})"

_PLAIN_LIST = re.compile(rf"{_PLAIN}(?:, ?{_PLAIN})*+;", re.ASCII)
"""An operand list that is well formed and has the usual shape."""
_PLAIN_ONE = re.compile(_PLAIN, re.ASCII)
_HEAD = re.compile(r"(?:@!?[%$\w]+[ \t]+)?[\w.:]+[ \t]*", re.ASCII)
_VARIABLE = -1
"""Count of a name that a variable hides."""
_DEEPEST = 8
"""Levels of brackets; PTX itself has no use for more than three."""


class OperandReader:
    """Reads operands of one function (or fragment).

    `registers` holds the declared names that have no `%`, with the count of `name<count>`, 0 for
    plain ones; a name that is not there is a Symbol. A declaration makes a new reader, so that
    operands that are read later mean what they meant at their place.
    """

    __slots__ = ("_constants", "_depth", "_known", "cursor", "in_call", "registers")

    def __init__(self, cursor: Cursor, registers: Mapping[str, int] = MappingProxyType({})) -> None:
        self.cursor = cursor
        self.registers = registers
        self.in_call = False
        self._constants = ConstantReader(cursor)
        self._depth = 0
        self._known = _Known(registers)

    def declaring(self, names: Iterable[tuple[str, int]]) -> OperandReader:
        """A reader that knows the registers `names` too; this one, where all of them have a %."""
        new = {name: count for name, count in names if name[0] != "%"}
        return self._with({**self.registers, **new}) if new else self

    def hiding(self, name: str) -> OperandReader:
        """A reader to which `name` is a variable."""
        if not _declared(name, self.registers):
            return self
        return self._with({**self.registers, name: _VARIABLE})

    def _with(self, registers: Mapping[str, int]) -> OperandReader:
        return OperandReader(self.cursor, registers)

    def read(self, instruction: Instruction) -> tuple[Operand, ...]:
        """Operands of an instruction on one line without comments.

        Raises UserError with the place of what is no operand.
        """
        text = self.cursor.text
        head = _HEAD.match(text, instruction.start)
        begin = head.end() if head else instruction.start
        last = instruction.end - 1
        if begin == last:
            return ()
        known = self._known
        try:
            return tuple([known[one] for one in text[begin:last].split(", ")])
        except KeyError:  # not of names, numbers and addresses alone
            pass
        if _PLAIN_LIST.match(text, begin, instruction.end):
            return tuple([known[one] for one in _PLAIN_ONE.findall(text, begin, last)])
        fork = OperandReader(self.cursor.fork(begin), self.registers)
        return fork.operands_of(instruction.tokens)

    def operands_of(self, tokens: Sequence[str]) -> tuple[Operand, ...]:
        """Operands behind an opcode, up to the semicolon, which stays."""
        self.in_call = tokens[0] == "call"
        return self.operands(";")

    def operands(self, closing: str) -> tuple[Operand, ...]:
        """operands = [ operand { "," operand } ], up to `closing`, which stays."""
        cursor = self.cursor
        if cursor.at(closing):
            return ()
        found = [self.operand()]
        while cursor.take(","):
            found.append(self.operand())
        if cursor.at("[") and isinstance(found[-1], Symbol):
            cursor.fail(
                "an index behind a name",
                cursor.peek().start,
                "write the address in bytes: [name+8], or name+8 for the address itself",
            )
        if not cursor.at(closing):
            cursor.unexpected(f"',' or '{closing}'")
        return tuple(found)

    def operand(self) -> Operand:
        """operand = vector [ "|" register ] | bracketed | "!" register | constant
        | name [ "|" register ]"""
        token = self.cursor.peek()
        if token.kind == "number" or token.text == WARP_SZ.text:
            return self._constants.immediate()
        if token.kind == "word":
            return self._named()
        read = _MARKED.get(token.text)
        return read(self) if read else self.cursor.unexpected("an operand")

    def _constant(self) -> Immediate:
        return self._constants.immediate()

    def _vector(self) -> Vector:
        items = self._enclosed("}")
        return Vector(items, self.register() if self.cursor.take("|") else None)

    def _negated(self) -> Negated | Immediate:
        start = self.cursor.next().start
        if self.cursor.peek().kind == "word":
            return Negated(self.register())
        self.cursor.seek(start)
        return self._constants.immediate()

    def _parenthesised(self) -> Group | Immediate:
        """Lists are in parentheses in calls only; elsewhere these are of a constant."""
        if not self.in_call:
            return self._constants.immediate()
        self.in_call = False
        items = self._enclosed(")")
        self.in_call = True
        return Group(items)

    def _enclosed(self, closing: str) -> tuple[Operand, ...]:
        self._open()
        items = self.operands(closing)
        self._close(closing)
        return items

    def _open(self) -> None:
        bracket = self.cursor.next()
        self._depth += 1
        if self._depth > _DEEPEST:
            self.cursor.fail(
                f"more than {_DEEPEST} brackets inside each other",
                bracket.start,
                "PTX operands nest no deeper than [a, {b, c}]",
            )

    def _close(self, closing: str) -> None:
        self.cursor.expect(closing, "an operand")
        self._depth -= 1

    def _bracketed(self) -> Address | Group:
        """bracketed = "[" operand [ offset ] ( "]" [ ".unified" ] | { "," operand } "]" )"""
        cursor = self.cursor
        self._open()
        first = self.operand()
        offset = self._constants.offset()
        if cursor.at("]"):
            self._close("]")
            return self._address(first, offset, cursor.take(".unified"))
        items: list[Operand] = [self._address(first, offset) if offset else first]
        while cursor.take(","):
            items.append(self.operand())
        self._close("]")
        return Group(tuple(items))

    def _address(self, base: Operand, offset: int, unified: bool = False) -> Address:
        if isinstance(base, Symbol):
            return Address(Symbol(base.name), base.offset + offset, unified)
        if isinstance(base, Register | Immediate):
            return Address(base, offset, unified)
        return self.cursor.fail(
            "an address needs a register, a name or a number",
            self.cursor.position - 1,
            "write [%rd1+8] or [name]",
        )

    def register(self) -> Register:
        token = self.cursor.expect_kind("word", "a register")
        return Register(token.text)

    def _named(self) -> Register | Symbol | Pair:
        """name = register [ "|" register ] | symbol [ offset ]"""
        cursor = self.cursor
        token = cursor.next()
        if cursor.at("|"):
            cursor.next()
            return Pair(Register(token.text), self.register())
        if _is_register(token.text, self.registers):
            return Register(token.text)
        return Symbol(token.text, self._constants.offset())


def _is_register(text: str, declared: Mapping[str, int]) -> bool:
    if text[0] == "%" or text == "_":
        return True
    return bool(declared) and _declared(text.partition(".")[0], declared)


def _declared(name: str, declared: Mapping[str, int]) -> bool:
    """Whether `name` is declared itself, or is a number of a declared `family<count>`."""
    known = declared.get(name)
    if known == 0 or known == _VARIABLE:
        return known == 0
    family, index = numbered(name)
    return index < declared.get(family, 0)


class _Known(dict[str, Operand]):
    """Operands of the usual shapes by their text; KeyError for any other text."""

    def __init__(self, registers: Mapping[str, int]) -> None:
        super().__init__()
        self._registers = registers

    def __missing__(self, text: str) -> Operand:
        if not _PLAIN_ONE.fullmatch(text):
            raise KeyError(text)
        operand = self[text] = self._read(text)
        return operand

    def _read(self, text: str) -> Operand:
        first = text[0]
        if first == "[":
            base, _, offset = text[1:-1].partition("+")
            return Address(self._name(base.strip()), int(offset or "0"))
        if first == "{":
            return Vector(tuple([self[item.strip()] for item in text[1:-1].split(",")]))
        if first.isdigit() or first == "-":
            value = -number(text[1:]) if first == "-" else number(text)
            return Immediate(text, value, is_float_literal(text))
        return self._name(text)

    def _name(self, text: str) -> Register | Symbol | Immediate:
        if _is_register(text, self._registers):
            return Register(text)
        return WARP_SZ if text == WARP_SZ.text else Symbol(text)


_MARKED: dict[str, Callable[[OperandReader], Operand]] = {
    "{": OperandReader._vector,
    "[": OperandReader._bracketed,
    "(": OperandReader._parenthesised,
    "!": OperandReader._negated,
    "-": OperandReader._constant,
    "+": OperandReader._constant,
    "~": OperandReader._constant,
}
