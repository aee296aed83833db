"""Statements of a function body: a quick scan by one pattern, the full grammar for the rest."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpuwatch.ptx.declarations import SPACES, DeclarationReader
from gpuwatch.ptx.lexer import TRIVIA_PATTERN, Cursor
from gpuwatch.ptx.model import (
    Directive,
    Guard,
    Instruction,
    Label,
    Loc,
    RegisterDeclaration,
    Scope,
    Statement,
)
from gpuwatch.ptx.operands import OperandReader

# Group numbers of _STATEMENT; lastindex is that of the outermost group that closed last.
_INSTRUCTION, _GUARD, _OPCODE = 1, 2, 3
_LOC, _FILE, _LINE, _COLUMN = 4, 5, 6, 7
_FUNCTION, _INLINED_FILE, _INLINED_LINE, _INLINED_COLUMN = 8, 9, 10, 11
_LABEL, _LABEL_NAME = 12, 13
_BRACE = 14
_ODD = 15

_STATEMENT = re.compile(
    r"""\s*+
    (?:
      ((?:@(!?+[%$A-Za-z_][\w$]*+)[ \t]++)?+
       ([a-z]\w*+(?:(?:\.|::)\w++)*+)
       (?:[ \t]++[^;\n"/:][^;\n"/]*+)?+;)
    | (\.loc[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)
       (?:,[ ]function_name[ ]([%$A-Za-z_][\w$]*),[ ]inlined_at[ ](\d+)[ ](\d+)[ ](\d+))?+
       (?=(?:[ \t]*+(?://[^\n]*+)?+\r?\n)++[ \t]*+[^,/\s]))
    | (([%$A-Za-z_][\w$]*+)[ \t]*+:(?!:))
    | ([{}])
    | //[^\n]*+ | /\*[\s\S]*?\*/
    | (\S)
    )""",
    re.VERBOSE | re.ASCII,
)
"""Matches follow each other without gaps: what no form fits is the last group's character."""

_MODIFIER = re.compile(rf"{TRIVIA_PATTERN}*+(\.[a-zA-Z]\w*(?:::\w+)*)", re.ASCII)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """The many nodes of a body hold no cycles; looking for some takes a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class BodyReader:
    """Reads the statements of a function or a fragment, from the cursor's position to `end`.

    Operands of plain instructions are left for later, unless `eager`.
    """

    def __init__(self, cursor: Cursor, end: int, *, eager: bool = False) -> None:
        self._cursor = cursor
        self._end = end
        self._eager = eager
        self._found: list[Statement] = []
        self._open_braces: list[int] = []
        self._operands = OperandReader(cursor)
        self._outer: list[OperandReader] = []
        self._declarations = DeclarationReader(cursor)
        self._file = self._line = 0
        self._opcodes = _Opcodes()
        self._guards = _Guards()

    def statements(self) -> list[Statement]:
        """statements = { statement }; the cursor is left behind the last one."""
        cursor = self._cursor
        position = cursor.position
        with _collector_paused():
            while position < self._end:
                position = self._scan(position)
        if self._found:
            cursor.seek(self._found[-1].end)
        if self._open_braces:
            cursor.fail("'{' without '}'", self._open_braces[-1], "close the scope with '}'")
        return self._found

    def _scan(self, position: int) -> int:
        """Reads up to a statement that the pattern does not know, and that one by the grammar;
        the end of it."""
        add = self._found.append
        new, opcodes, guards = object.__new__, self._opcodes, self._guards
        file, line, read = self._file, self._line, self._operands.read
        for match in _STATEMENT.finditer(self._cursor.text, position, self._end):
            kind = match.lastindex
            if kind == _INSTRUCTION:
                node = new(Instruction)
                node.start, node.end = match.span(_INSTRUCTION)
                head, opcode = match.group(_GUARD, _OPCODE)
                node.guard = guards[head]
                node.tokens = opcodes[opcode]
                node.line = line
                node.file = file
                node._read = read
                add(node)
                if self._eager:
                    _ = node.operands
            elif kind == _ODD:
                self._cursor.seek(match.start(_ODD))
                self._statement()
                return self._cursor.position
            elif kind is not None:
                _SCANNED[kind](self, match)
                file, line, read = self._file, self._line, self._operands.read
        return self._end

    def _scanned_loc(self, match: re.Match[str]) -> None:
        self._file, self._line = int(match[_FILE]), int(match[_LINE])
        start, end = match.span(_LOC)
        loc = Loc(start, end, self._file, self._line, int(match[_COLUMN]))
        if match[_FUNCTION] is not None:
            loc.function = match[_FUNCTION]
            file, line, column = match.group(_INLINED_FILE, _INLINED_LINE, _INLINED_COLUMN)
            loc.inlined_at = int(file), int(line), int(column)
        self._found.append(loc)

    def _scanned_label(self, match: re.Match[str]) -> None:
        start, end = match.span(_LABEL)
        self._found.append(Label(start, end, match[_LABEL_NAME]))

    def _scanned_brace(self, match: re.Match[str]) -> None:
        start, end = match.span(_BRACE)
        opens = match[_BRACE] == "{"
        if opens:
            self._open_braces.append(start)
            self._outer.append(self._operands)
        elif self._open_braces:
            self._open_braces.pop()
            self._operands = self._outer.pop()
        else:
            self._cursor.fail("'}' without '{'", start, "remove it")
        self._found.append(Scope(start, end, opens))

    def _statement(self) -> None:
        """statement = directive | instruction"""
        token = self._cursor.peek()
        if token.kind == "directive":
            self._directive()
        elif token.kind == "word" or token.text == "@":
            self._found.append(self._instruction())
        else:
            self._cursor.unexpected("an instruction, a label or a directive")

    def _directive(self) -> None:
        """directive = loc | reg | variable | pragma | other ";" """
        name = self._cursor.peek().text
        if name in SPACES:
            variables = self._declarations.variables()
            for variable in variables:
                self._operands = self._operands.hiding(variable.name)
            self._found.extend(variables)
            return
        self._found.append(_DIRECTIVES.get(name, BodyReader._other)(self))

    def _loc(self) -> Loc:
        loc = self._declarations.loc()
        self._file, self._line = loc.file, loc.line
        return loc

    def _registers(self) -> RegisterDeclaration:
        declaration = self._declarations.registers()
        self._operands = self._operands.declaring(declaration.names)
        return declaration

    def _other(self) -> Directive:
        return self._declarations.terminated()

    def _instruction(self) -> Instruction | Label:
        """instruction = [ "@" [ "!" ] register ] opcode [ operands ] ";"; label = name ":" """
        cursor = self._cursor
        start = cursor.peek().start
        guard = None
        if cursor.take("@"):
            mark = "!" if cursor.take("!") else ""
            guard = self._guards[mark + self._operands.register().name]
        opcode = cursor.expect_kind("word", "an opcode")
        if guard is None and cursor.at(":"):
            return Label(start, cursor.next().end, opcode.text)
        if opcode.text[0] in "%$":
            cursor.fail(
                f"expected an opcode or a directive, found {opcode.text!r}",
                opcode.start,
                "write 'opcode operands;', or ':' behind a label",
            )
        tokens = self._opcodes[opcode.text + self._modifiers()]
        operands = self._operands.operands_of(tokens)
        end = cursor.next().end
        return Instruction(start, end, guard, tokens, operands, self._line, self._file)

    def _modifiers(self) -> str:
        """Parts of the opcode that stand apart: `ld .global .u32`."""
        cursor = self._cursor
        found = ""
        while match := _MODIFIER.match(cursor.text, cursor.position):
            found += match[1]
            cursor.seek(match.end())
        return found


_SCANNED: dict[int, Callable[[BodyReader, re.Match[str]], None]] = {
    _LOC: BodyReader._scanned_loc,
    _LABEL: BodyReader._scanned_label,
    _BRACE: BodyReader._scanned_brace,
}
"""How matches are read, by the number of the last group."""

_DIRECTIVES: dict[str, Callable[[BodyReader], Statement]] = {
    ".loc": BodyReader._loc,
    ".reg": BodyReader._registers,
}


class _Opcodes(dict[str, tuple[str, ...]]):
    """An opcode's parts: `ld.shared::cta.f32` is ("ld", "shared::cta", "f32")."""

    def __missing__(self, opcode: str) -> tuple[str, ...]:
        tokens = self[opcode] = tuple(opcode.split("."))
        return tokens


class _Guards(dict[str | None, Guard | None]):
    """A guard by its text behind the `@`; None where there is none."""

    def __missing__(self, text: str | None) -> Guard | None:
        guard = None if text is None else Guard(text.lstrip("!"), text[0] == "!")
        self[text] = guard
        return guard
