"""Statements of a function body: a quick scan by one pattern, the full grammar for the rest."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpuwatch.ptx.collector import collector_paused
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
    Variable,
)
from gpuwatch.ptx.operands import OperandReader
from gpuwatch.ptx.types import ALL_TYPES, type_bytes

_INSTRUCTION, _GUARD, _OPCODE = 1, 2, 3
"""Groups of _STATEMENT that are asked for most often, by number."""
_NAME = r"[%$A-Za-z_][\w$]*+"
_TYPE = rf"\.(?P<{{}}>{'|'.join(sorted(ALL_TYPES, key=len, reverse=True))})(?!\w)"

_STATEMENT = re.compile(
    rf"""\s*+
    (?:
      (?P<instruction>
       (?:@(!?+{_NAME})[ \t]++)?+
       ([a-z]\w*+(?:(?:\.|::)\w++)*+)
       (?:[ \t]++[^;\n"/:.][^;\n"/]*+)?+;)
    | (?P<loc>\.loc[ \t]+(?P<file>\d+)[ \t]+(?P<line>\d+)[ \t]+(?P<column>\d+)
       (?:,[ ]function_name[ ](?P<function>{_NAME}),
        [ ]inlined_at[ ](?P<from_file>\d+)[ ](?P<from_line>\d+)[ ](?P<from_column>\d+))?+
       (?=(?:[ \t]*+(?://[^\n]*+)?+\r?\n)++[ \t]*+[^,/\s]))
    | (?P<label>(?P<label_name>{_NAME})[ \t]*+:(?!:))
    | (?P<brace>[{{}}])
    | (?P<registers>\.reg[ \t]+{_TYPE.format("register_type")}[ \t]+
       (?P<register>{_NAME})(?:<(?P<registers_count>[1-9]\d{{0,8}})>)?+[ \t]*+;)
    | (?P<parameter>\.param[ \t]+(?:\.align[ \t]+(?P<align>[1-9]\d{{0,3}})[ \t]+)?+
       {_TYPE.format("parameter_type")}[ \t]+
       (?P<parameter_name>{_NAME})(?:\[(?P<length>[1-9]\d{{0,8}})\])?+[ \t]*+;)
    | //[^\n]*+ | /\*[\s\S]*?\*/
    | (?P<odd>\S)
    )""",
    re.VERBOSE | re.ASCII,
)
"""Matches follow each other without gaps: what no form fits is the last group's character."""

_MODIFIER = re.compile(rf"{TRIVIA_PATTERN}*+(\.[a-zA-Z]\w*(?:::\w+)*)", re.ASCII)


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
        with collector_paused():
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
            kind = match.lastgroup
            if kind == "instruction":
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
            elif kind == "odd":
                self._cursor.seek(match.start("odd"))
                self._statement()
                return self._cursor.position
            elif kind is not None:
                _SCANNED[kind](self, match)
                file, line, read = self._file, self._line, self._operands.read
        return self._end

    def _scanned_loc(self, match: re.Match[str]) -> None:
        self._file, self._line = int(match["file"]), int(match["line"])
        loc = Loc(*match.span("loc"), self._file, self._line, int(match["column"]))
        if match["function"] is not None:
            loc.function = match["function"]
            file, line, column = match.group("from_file", "from_line", "from_column")
            loc.inlined_at = int(file), int(line), int(column)
        self._found.append(loc)

    def _scanned_label(self, match: re.Match[str]) -> None:
        self._found.append(Label(*match.span("label"), match["label_name"]))

    def _scanned_registers(self, match: re.Match[str]) -> None:
        kind, name, count = match.group("register_type", "register", "registers_count")
        names = ((name, int(count or 0)),)
        self._found.append(RegisterDeclaration(*match.span("registers"), kind, names))
        self._operands = self._operands.declaring(names)

    def _scanned_parameter(self, match: re.Match[str]) -> None:
        """A `.param` variable of a call sequence."""
        align, kind, name, length = match.group(
            "align", "parameter_type", "parameter_name", "length"
        )
        size = int(align) if align else type_bytes(kind)
        variable = Variable(*match.span("parameter"), "param", kind, name, size, 1)
        if length:
            variable.count = int(length)
            variable.dims = (variable.count,)
        self._found.append(variable)
        self._operands = self._operands.hiding(name)

    def _scanned_brace(self, match: re.Match[str]) -> None:
        start, end = match.span("brace")
        opens = match["brace"] == "{"
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


_SCANNED: dict[str, Callable[[BodyReader, re.Match[str]], None]] = {
    "loc": BodyReader._scanned_loc,
    "label": BodyReader._scanned_label,
    "brace": BodyReader._scanned_brace,
    "registers": BodyReader._scanned_registers,
    "parameter": BodyReader._scanned_parameter,
}
"""How matches are read, by the group that they end in."""

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
