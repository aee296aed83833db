"""Declarations and directives: registers, variables, parameters, `.loc`."""

from __future__ import annotations

import math
import re

from gpuwatch.ptx.lexer import TRIVIA_PATTERN, Cursor, Token
from gpuwatch.ptx.model import Directive, Loc, Parameter, RegisterDeclaration, Variable
from gpuwatch.ptx.types import ALL_TYPES, type_bytes

SPACES = frozenset({".global", ".const", ".shared", ".local", ".param", ".tex"})
LINKAGES = frozenset({".visible", ".extern", ".weak", ".common"})
_NAMING = frozenset({".branchtargets", ".calltargets", ".alias"})
_TRIVIA = re.compile(TRIVIA_PATTERN, re.ASCII)
_WORD = re.compile(r"[%$A-Za-z_][\w$]*", re.ASCII)
_PLAIN_INITIAL = re.compile(
    rf"{TRIVIA_PATTERN}*+(\{{[\w\s,.()$%+-]*+\}}|[\w.]++)(?={TRIVIA_PATTERN}*+[;,])", re.ASCII
)
_VECTORS = frozenset({".v2", ".v4", ".v8"})


class DeclarationReader:
    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def linkage(self) -> str:
        """linkage = { ".visible" | ".extern" | ".weak" | ".common" }; the last one counts."""
        found = ""
        while self._cursor.peek().text in LINKAGES:
            found = self._cursor.next().text[1:]
        return found

    def type(self) -> str:
        """type = [ ".v2" | ".v4" | ".v8" ] "." name; vectors give "v4.f32"."""
        cursor = self._cursor
        vector = ""
        if cursor.peek().text in _VECTORS:
            vector = cursor.next().text[1:] + "."
        token = cursor.expect_kind("directive", "a type such as .b32")
        if token.text[1:] not in ALL_TYPES:
            cursor.fail(f"unknown type {token.text}", token.start, "PTX types: .b32 .u64 .f32 ...")
        return vector + token.text[1:]

    def alignment(self) -> int:
        """alignment = [ ".align" integer ]; 0 without one."""
        if not self._cursor.take(".align"):
            return 0
        return self._cursor.integer("an alignment in bytes")

    def attributes(self) -> None:
        """attributes = { ".attribute" "(" ... ")" }"""
        cursor = self._cursor
        while cursor.take(".attribute"):
            cursor.expect("(", ".attribute")
            self._skip_to(")")
            cursor.next()

    def registers(self) -> RegisterDeclaration:
        """registers = ".reg" type name [ "<" n ">" ] { "," name [ "<" n ">" ] } ";" """
        cursor = self._cursor
        start = cursor.next().start
        kind = self.type()
        names = [self._register_name()]
        while cursor.take(","):
            names.append(self._register_name())
        end = cursor.expect(";", "the register's name").end
        return RegisterDeclaration(start, end, kind, tuple(names))

    def _register_name(self) -> tuple[str, int]:
        cursor = self._cursor
        name = cursor.expect_kind("word", "a register name").text
        if not cursor.take("<"):
            return name, 0
        count = cursor.integer("a register count")
        cursor.expect(">", "the register count")
        return name, count

    def variables(self) -> list[Variable]:
        """variables = [ linkage ] space [ alignment ] type variable { "," variable } ";" """
        cursor = self._cursor
        start = cursor.peek().start
        linkage = self.linkage()
        space = cursor.next().text[1:]
        self.attributes()
        align = self.alignment()
        self.attributes()
        kind = self.type()
        found = []
        while True:
            variable = self._variable(start, linkage, (space, kind), align or type_bytes(kind))
            found.append(variable)
            start = cursor.peek().start
            if not cursor.take(","):
                break
        found[-1].end = cursor.expect(";", "the variable").end
        return found

    def _variable(
        self, start: int, linkage: str, space_and_type: tuple[str, str], align: int
    ) -> Variable:
        """variable = name { "[" [ n ] "]" } [ "=" initial ]"""
        cursor = self._cursor
        space, kind = space_and_type
        token = cursor.expect_kind("word", "a variable name")
        dims = self._dims()
        end = cursor.position
        initial = ""
        if cursor.take("="):
            first, end = self._initial()
            initial = cursor.text[first:end]
        count = math.prod(dims)
        if count == 0 and initial:
            count = initial.count(",") + 1
        return Variable(start, end, space, kind, token.text, align, count, initial, linkage, dims)

    def _initial(self) -> tuple[int, int]:
        """Start and end of an initial value; long lists of numbers are taken in one step."""
        cursor = self._cursor
        match = _PLAIN_INITIAL.match(cursor.text, cursor.position)
        if match is not None:
            cursor.seek(match.end(1))
            return match.span(1)
        return cursor.peek().start, self._skip_to(",", ";")

    def _dims(self) -> tuple[int, ...]:
        """dims = { "[" [ integer ] "]" }; an empty one is 0."""
        cursor = self._cursor
        dims = []
        while cursor.take("["):
            dims.append(0 if cursor.at("]") else cursor.integer("an array length"))
            cursor.expect("]", "the array length")
        return tuple(dims)

    def parameters(self) -> tuple[Parameter, ...]:
        """parameters = "(" [ parameter { "," parameter } ] ")" """
        cursor = self._cursor
        cursor.expect("(", "the name")
        found: list[Parameter] = []
        while not cursor.at(")"):
            found.append(self._parameter())
            if not cursor.take(","):
                break
        cursor.expect(")", "the parameters")
        return tuple(found)

    def _parameter(self) -> Parameter:
        """parameter = (".param" | ".reg") [ alignment ] type [ pointer ] name [ "[" n "]" ]"""
        cursor = self._cursor
        if not (cursor.take(".param") or cursor.take(".reg")):
            cursor.unexpected("'.param'")
        align = self.alignment()
        kind = self.type()
        pointer, pointee_align = self._pointer()
        name = cursor.expect_kind("word", "a parameter name").text
        dims = self._dims()
        count = math.prod(dims) if dims else 0
        return Parameter(name, kind, align or type_bytes(kind), count, pointer, pointee_align)

    def _pointer(self) -> tuple[str, int]:
        """pointer = [ ".ptr" [ space ] [ alignment ] ]"""
        cursor = self._cursor
        if not cursor.take(".ptr"):
            return "", 0
        space = "generic"
        if cursor.peek().text in SPACES:
            space = cursor.next().text[1:]
        return space, self.alignment()

    def loc(self) -> Loc:
        """loc = ".loc" file line column [ "," "function_name" label [ offset ] ","
        "inlined_at" file line column ]"""
        cursor = self._cursor
        start = cursor.next().start
        file, line, column = self._place()
        end = cursor.position
        function = ""
        inlined_at = None
        if cursor.take(","):
            if cursor.take("function_name"):
                function = cursor.expect_kind("word", "a label").text
                if cursor.take("+"):
                    function += f"+{cursor.integer('an offset')}"
                cursor.take(",")
            cursor.expect("inlined_at", "'.loc'")
            inlined_at = self._place()
            end = cursor.position
        return Loc(start, end, file, line, column, function, inlined_at)

    def _place(self) -> tuple[int, int, int]:
        cursor = self._cursor
        return (
            cursor.integer("a file index"),
            cursor.integer("a line number"),
            cursor.integer("a column number"),
        )

    def terminated(self) -> Directive:
        """Any other directive, up to its ";"."""
        cursor = self._cursor
        token = cursor.next()
        first = cursor.position
        last = self._skip_to(";")
        named = _TRIVIA.sub(" ", cursor.text[first:last]) if token.text in _NAMING else ""
        words = tuple(_WORD.findall(named))
        return Directive(token.start, cursor.next().end, token.text[1:], words)

    def _skip_to(self, *closing: str) -> int:
        """Skips tokens, bracketed ones whole, up to one of `closing`; gives the end of the last."""
        cursor = self._cursor
        first: Token = cursor.peek()
        depth = 0
        end = first.start
        while True:
            token = cursor.peek()
            if token.kind == "end":
                cursor.fail(
                    f"'{closing[-1]}' is missing behind this", first.start, f"add '{closing[-1]}'"
                )
            if token.kind == "mark":
                if depth == 0 and token.text in closing:
                    return end
                depth += _DEPTH.get(token.text, 0)
            end = cursor.next().end


_DEPTH = {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}
