"""The parser of a module: header, functions, variables, debug sections."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpuwatch.ptx.body import BodyReader
from gpuwatch.ptx.declarations import SPACES, DeclarationReader
from gpuwatch.ptx.lexer import TRIVIA, Cursor, closing_brace
from gpuwatch.ptx.model import (
    Directive,
    Function,
    Instruction,
    Module,
    Parameter,
    Statement,
    defer_body,
)


def parse(text: str, source: str = "<ptx>") -> Module:
    """Reads a module; raises UserError with the place of what is not PTX.

    Bodies of functions are read when they are first asked for, operands of instructions too,
    which makes work on a few of them quick; both raise UserError then. `check` reads them all.
    """
    return _ModuleReader(text, source).module()


def check(module: Module) -> None:
    """Reads what is left to read; raises UserError with the place of what is not PTX."""
    for function in module.functions:
        for statement in function.body or ():
            if isinstance(statement, Instruction):
                _ = statement.operands


def parse_fragment(text: str, source: str, first_line: int = 1) -> list[Statement]:
    """Reads statements outside a function; spans are offsets into `text`.

    `first_line` is the line of `source` that `text` begins on, for the places of errors.
    """
    cursor = Cursor(text, source, line_offset=first_line - 1)
    return BodyReader(cursor, len(text), eager=True).statements()


def unparse(module: Module) -> str:
    """The module's text, put together from the spans of its nodes and the gaps between them.

    Raises ValueError when nodes overlap or a gap holds more than white space and comments.
    """
    pieces: list[str] = []
    end = _tile(module.text, 0, len(module.text), module.statements, pieces)
    pieces.append(_gap(module.text, end, len(module.text)))
    return "".join(pieces)


def _tile(text: str, start: int, limit: int, statements: list[Statement], pieces: list[str]) -> int:
    """Appends gap and text of each statement; the end of the last one."""
    at = start
    for statement in statements:
        pieces.append(_gap(text, at, statement.start))
        if statement.end > limit:
            raise ValueError(f"statement at {statement.start} reaches beyond {limit}")
        if isinstance(statement, Function) and statement.body is not None:
            pieces.append(text[statement.start : statement.body_start])
            last = _tile(text, statement.body_start, statement.body_end, statement.body, pieces)
            pieces.append(_gap(text, last, statement.body_end))
            pieces.append(text[statement.body_end : statement.end])
        else:
            pieces.append(text[statement.start : statement.end])
        at = statement.end
    return at


def _gap(text: str, start: int, end: int) -> str:
    if end == start:
        return ""
    match = TRIVIA.fullmatch(text, start, end) if end > start else None
    if match is None:
        raise ValueError(f"statements do not tile the text at {start}..{end}")
    return match[0]


_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|(.))", re.DOTALL)


def _unescaped(string: str) -> str:
    """The path that a `.file` string means: compilers write letters beyond ASCII as the octal
    numbers of their UTF-8 bytes."""
    raw = _ESCAPE.sub(_character, string.encode("utf-8", "surrogatepass"))
    return raw.decode("utf-8", "replace")


def _character(match: re.Match[bytes]) -> bytes:
    number, letter = match.groups()
    return bytes([int(number, 8) & 0xFF]) if number else letter


class _ModuleReader:
    def __init__(self, text: str, source: str) -> None:
        self._cursor = Cursor(text, source)
        self._declarations = DeclarationReader(self._cursor)
        self._module = Module(text, source, "", "", 64)

    def module(self) -> Module:
        """module = { version | target | address_size | file | section | function | variable }"""
        cursor = self._cursor
        module = self._module
        while cursor.peek().kind != "end":
            token = cursor.peek()
            if token.kind != "directive":
                cursor.unexpected("a directive such as .version, .entry or .global")
            read = _READERS.get(token.text, _ModuleReader._declaration)
            module.statements.extend(read(self))
        if not module.version:
            cursor.fail("no .version directive", 0, "PTX begins with .version, .target")
        return module

    def _version(self) -> list[Statement]:
        """version = ".version" major "." minor"""
        start = self._cursor.next().start
        token = self._cursor.expect_kind("number", "a version such as 8.5")
        self._module.version = token.text
        return [Directive(start, token.end, "version")]

    def _target(self) -> list[Statement]:
        """target = ".target" name { "," name }"""
        cursor = self._cursor
        start = cursor.next().start
        token = cursor.expect_kind("word", "a target such as sm_86")
        self._module.target = token.text
        while cursor.take(","):
            token = cursor.expect_kind("word", "a target option")
        return [Directive(start, token.end, "target")]

    def _address_size(self) -> list[Statement]:
        """address_size = ".address_size" ( "32" | "64" )"""
        start = self._cursor.next().start
        self._module.address_size = self._cursor.integer("32 or 64")
        return [Directive(start, self._cursor.position, "address_size")]

    def _file(self) -> list[Statement]:
        """file = ".file" index string { "," integer }"""
        cursor = self._cursor
        start = cursor.next().start
        index = cursor.integer("a file index")
        path = cursor.expect_kind("string", "a path in quotes").text
        self._module.files[index] = _unescaped(path[1:-1])
        while cursor.take(","):
            cursor.integer("a time or a size")
        return [Directive(start, cursor.position, "file")]

    def _section(self) -> list[Statement]:
        """section = ".section" name "{" data "}"; the data is left as it is."""
        cursor = self._cursor
        start = cursor.next().start
        cursor.next()
        opening = cursor.expect("{", "the section's name").start
        end = closing_brace(cursor.text, opening + 1)
        if end < 0:
            cursor.fail("'{' without '}'", opening, "close the section with '}'")
        cursor.seek(end + 1)
        return [Directive(start, end + 1, "section")]

    def _terminated(self) -> list[Statement]:
        """alias = ".alias" name "," name ";" and `.pragma` at the top."""
        return [self._declarations.terminated()]

    def _declaration(self) -> list[Statement]:
        """declaration = [ linkage ] ( function | variables )"""
        cursor = self._cursor
        start = cursor.peek().start
        linkage = self._declarations.linkage()
        token = cursor.peek()
        if token.text in (".entry", ".func"):
            return [self._function(start, linkage)]
        if token.text not in SPACES:
            cursor.unexpected("a directive such as .entry, .func or .global")
        cursor.seek(start)
        variables = self._declarations.variables()
        self._module.variables.extend(variables)
        return list(variables)

    def _function(self, start: int, linkage: str) -> Function:
        """function = ( ".entry" | ".func" ) [ results ] name [ parameters ] { performance }
        ( ";" | "{" body "}" )"""
        cursor = self._cursor
        kind = cursor.next().text[1:]
        self._declarations.attributes()
        results: tuple[Parameter, ...] = ()
        if cursor.at("("):
            results = self._declarations.parameters()
        name = cursor.expect_kind("word", "the function's name").text
        parameters = self._declarations.parameters() if cursor.at("(") else ()
        directives = self._performance()
        function = Function(start, 0, kind, name, linkage, parameters, results, None)
        function.directives = directives
        if cursor.take(";"):
            function.end = cursor.position
        else:
            cursor.expect("{", "the function's head")
            self._body(function)
        self._module.functions.append(function)
        return function

    def _body(self, function: Function) -> None:
        """Finds the closing brace and leaves the statements for later. Without one, reading
        them says what is wrong."""
        cursor = self._cursor
        start = cursor.position
        function.body_start = start
        end = closing_brace(cursor.text, start)
        if end < 0:
            BodyReader(cursor, len(cursor.text), eager=True).statements()
            cursor.unexpected("'}' at the end of the function")
        function.body_end, function.end = end, end + 1
        defer_body(function, self._read_body)
        cursor.seek(end + 1)

    def _read_body(self, function: Function) -> list[Statement]:
        return BodyReader(self._cursor.fork(function.body_start), function.body_end).statements()

    def _performance(self) -> tuple[str, ...]:
        """performance = directive [ value { "," value } ] [ ";" behind a .pragma ]"""
        cursor = self._cursor
        found = []
        while cursor.peek().kind == "directive":
            token = cursor.next()
            end = token.end
            while cursor.peek().kind in ("number", "string", "word") or cursor.at(","):
                end = cursor.next().end
            found.append(cursor.text[token.start : end])
            if token.text == ".pragma":
                cursor.expect(";", ".pragma")
        return tuple(found)


_READERS: dict[str, Callable[[_ModuleReader], list[Statement]]] = {
    ".version": _ModuleReader._version,
    ".target": _ModuleReader._target,
    ".address_size": _ModuleReader._address_size,
    ".file": _ModuleReader._file,
    ".section": _ModuleReader._section,
    ".alias": _ModuleReader._terminated,
    ".pragma": _ModuleReader._terminated,
}
