"""Statements of a function body: a quick scan by one pattern, the full grammar for the rest."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpuwatch.ptx.declarations import SPACES, DeclarationReader
from gpuwatch.ptx.lexer import TRIVIA_PATTERN, Cursor
from gpuwatch.ptx.model import (
    Directive,
    Guard,
    Instruction,
    Label,
    Loc,
    Operand,
    RegisterDeclaration,
    Scope,
    Statement,
    unread_instruction,
)
from gpuwatch.ptx.operands import PLAIN_LIST, OperandReader

# Group numbers of _STATEMENT; lastindex is that of the outermost group that closed last.
_INSTRUCTION, _NEGATED, _GUARD, _OPCODE = 1, 2, 3, 4
_LABEL, _LABEL_NAME = 5, 6
_BRACE = 7

_STATEMENT = re.compile(
    rf"""{TRIVIA_PATTERN}*+
    (?:
      ((?:@(!?)([%$A-Za-z_][\w$]*)[ \t]+)?
       ([a-z]\w*(?:(?:\.|::)\w+)*)
       (?:[ \t]+{PLAIN_LIST.replace(" ", "[ ]")})?;)
    | (([%$A-Za-z_][\w$]*)[ \t]*:(?!:))
    | ([{{}}])
    )""",
    re.VERBOSE | re.ASCII,
)

_MODIFIER = re.compile(rf"{TRIVIA_PATTERN}*+(\.[a-zA-Z]\w*(?:::\w+)*)", re.ASCII)

_Place = tuple[int, int]


class BodyReader:
    """Reads the statements between the braces of a function, or of a fragment."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._operands = OperandReader(cursor)
        self._outer: list[OperandReader] = []
        self._declarations = DeclarationReader(cursor)
        self._place: _Place = (0, 0)
        self._opcodes: dict[str, tuple[str, ...]] = {}
        self._guards: dict[tuple[str, str], Guard] = {}

    def body(self) -> list[Statement]:
        """body = { statement } "}"; the cursor is left on the closing brace."""
        statements: list[Statement] = []
        self._statements(statements, enclosed=True)
        return statements

    def fragment(self) -> list[Statement]:
        """fragment = { statement } end-of-text"""
        statements: list[Statement] = []
        self._statements(statements, enclosed=False)
        return statements

    def _statements(self, found: list[Statement], *, enclosed: bool) -> None:
        """The scan. What the pattern does not know goes through `_statement`."""
        cursor = self._cursor
        text = cursor.text
        match_at = _STATEMENT.match
        position = cursor.position
        add = found.append
        open_braces: list[int] = []
        while True:
            match = match_at(text, position)
            kind = match.lastindex if match else None
            if match is None or kind is None:
                cursor.seek(position)
                if not self._statement(found, enclosed, open_braces):
                    return
                position = cursor.position
                continue
            start, position = match.span(kind)
            if kind == _INSTRUCTION:
                add(self._plain_instruction(match, start, position))
            elif kind == _LABEL:
                add(Label(start, position, match[_LABEL_NAME]))
            elif match[_BRACE] == "{":
                open_braces.append(start)
                self._outer.append(self._operands)
                add(Scope(start, position, True))
            elif open_braces:
                open_braces.pop()
                self._operands = self._outer.pop()
                add(Scope(start, position, False))
            elif enclosed:
                cursor.seek(start)
                return
            else:
                cursor.fail("'}' without '{'", start, "remove it")

    def _plain_instruction(self, match: re.Match[str], start: int, end: int) -> Instruction:
        opcode = match[_OPCODE]
        tokens = self._opcodes.get(opcode)
        if tokens is None:
            tokens = self._opcodes[opcode] = split_opcode(opcode)
        name = match[_GUARD]
        guard = None
        if name is not None:
            guard = self._guard(match[_NEGATED], name)
        return unread_instruction(start, end, guard, tokens, self._place, self._operands.read_plain)

    def _guard(self, mark: str, name: str) -> Guard:
        guard = self._guards.get((mark, name))
        if guard is None:
            guard = self._guards[mark, name] = Guard(name, mark == "!")
        return guard

    def _statement(self, found: list[Statement], enclosed: bool, open_braces: list[int]) -> bool:
        """statement = directive | instruction; False at the end of a fragment."""
        cursor = self._cursor
        token = cursor.peek()
        if token.kind == "end":
            if open_braces:
                cursor.fail("'{' without '}'", open_braces[-1], "close the scope with '}'")
            if enclosed:
                cursor.unexpected("'}' at the end of the function")
            return False
        if token.kind == "directive":
            self._directive(found)
        elif token.kind == "word" or token.text == "@":
            found.append(self._instruction())
        else:
            cursor.unexpected("an instruction, a label or a directive")
        return True

    def _directive(self, found: list[Statement]) -> None:
        """directive = loc | reg | variable | pragma | other ";" """
        name = self._cursor.peek().text
        if name in SPACES:
            variables = self._declarations.variables()
            for variable in variables:
                self._operands = self._operands.hiding(variable.name)
            found.extend(variables)
            return
        found.append(_DIRECTIVES.get(name, BodyReader._other)(self))

    def _loc(self) -> Loc:
        loc = self._declarations.loc()
        self._place = (loc.file, loc.line)
        return loc

    def _registers(self) -> RegisterDeclaration:
        declaration = self._declarations.registers()
        self._operands = self._operands.declaring(declaration.names)
        return declaration

    def _other(self) -> Directive:
        return self._declarations.terminated()

    def _instruction(self) -> Instruction:
        """instruction = [ "@" [ "!" ] register ] opcode [ operands ] ";" """
        cursor = self._cursor
        start = cursor.peek().start
        guard = None
        if cursor.take("@"):
            mark = "!" if cursor.take("!") else ""
            guard = self._guard(mark, self._operands.register().name)
        opcode = cursor.expect_kind("word", "an opcode")
        if opcode.text[0] in "%$":
            cursor.fail(
                f"expected an opcode or a directive, found {opcode.text!r}",
                opcode.start,
                "write 'opcode operands;', or ':' behind a label",
            )
        tokens = split_opcode(opcode.text + self._modifiers())
        self._operands.in_call = tokens[0] == "call"
        operands: tuple[Operand, ...] = self._operands.operands(";")
        end = cursor.next().end
        return Instruction(start, end, guard, tokens, operands, self._place[1], self._place[0])

    def _modifiers(self) -> str:
        """Parts of the opcode that stand apart: `ld .global .u32`."""
        cursor = self._cursor
        found = ""
        while match := _MODIFIER.match(cursor.text, cursor.position):
            found += match[1]
            cursor.seek(match.end())
        return found


_DIRECTIVES: dict[str, Callable[[BodyReader], Statement]] = {
    ".loc": BodyReader._loc,
    ".reg": BodyReader._registers,
}


def split_opcode(opcode: str) -> tuple[str, ...]:
    """The opcode's parts: `ld.shared::cta.f32` is ("ld", "shared::cta", "f32")."""
    return tuple(opcode.split("."))
