"""Source lines of a function's code: from `.loc`, through what was inlined."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from gpuwatch.ptx.model import Directive, Function, Loc, Module

_LABEL_OR_BYTES = re.compile(
    r"//[^\n]*|(?P<label>[%$A-Za-z_][\w$]*)[ \t]*:|\.b8[ \t]+(?P<bytes>\d+(?:[ \t]*,[ \t]*\d+)*)",
    re.ASCII,
)
_Key = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a source file; lines and columns count from 1, 0 is for code that the compiler
    gave no line."""

    path: str
    """As the `.file` directive has it; "" when the module has none of that index."""
    line: int
    column: int
    function: str = ""
    """Linker name of the inlined function that this is in; "" for the function itself."""


class SourceMap:
    """Where the code of one function comes from."""

    def __init__(self, module: Module, function: Function) -> None:
        self._files = module.files
        self._strings = _debug_strings(module)
        self._starts: list[int] = []
        self._chains: list[tuple[Place, ...]] = []
        seen: dict[_Key, tuple[Place, ...]] = {}
        for statement in function.body or ():
            if isinstance(statement, Loc):
                chain = self._chain(statement, seen)
                seen[statement.file, statement.line, statement.column] = chain
                self._starts.append(statement.start)
                self._chains.append(chain)

    def at(self, offset: int) -> tuple[Place, ...]:
        """The places of the code at `offset` of the module's text, by the last `.loc` before it.

        The first is where the code is written, each next one where the one before was inlined;
        the last is in the function itself. Empty in front of the first `.loc`.
        """
        index = bisect_right(self._starts, offset) - 1
        return self._chains[index] if index >= 0 else ()

    def _chain(self, loc: Loc, seen: dict[_Key, tuple[Place, ...]]) -> tuple[Place, ...]:
        """The places of a `.loc`; where it was inlined is a place that an earlier one names."""
        own = self._place((loc.file, loc.line, loc.column), loc.function)
        if loc.inlined_at is None:
            return (own,)
        outer = seen.get(loc.inlined_at)
        return (own, *(outer or (self._place(loc.inlined_at, ""),)))

    def _place(self, key: _Key, label: str) -> Place:
        file, line, column = key
        return Place(self._files.get(file, ""), line, column, self._name(label))

    def _name(self, label: str) -> str:
        """The string at `label` or `label+offset`."""
        name, _, offset = label.partition("+")
        string = self._strings.get(name, b"")[int(offset or 0) :]
        return string.partition(b"\0")[0].decode(errors="replace")


def source_chain(module: Module, offset: int) -> tuple[Place, ...]:
    """`SourceMap.at` in the function that `offset` of the module's text lies in; empty outside
    every body."""
    around = (f for f in module.functions if f.body_start <= offset < f.body_end)
    function = next(around, None)
    return SourceMap(module, function).at(offset) if function is not None else ()


def own_place(chain: tuple[Place, ...]) -> Place | None:
    """The innermost place of a chain in the file of the function that all was inlined into, so of
    code from a header the line that calls it; None without a line."""
    return next((one for one in chain if one.path == chain[-1].path and one.line), None)


def _debug_strings(module: Module) -> dict[str, bytes]:
    """The bytes behind each label of the module's `.debug_str` sections."""
    found: dict[str, bytes] = {}
    for statement in module.statements:
        if isinstance(statement, Directive) and statement.name == "section":
            text = module.text[statement.start : statement.end]
            if text.split(None, 2)[1].startswith(".debug_str"):
                found.update(_strings(text))
    return found


def _strings(section: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    label = ""
    for match in _LABEL_OR_BYTES.finditer(section):
        if match["label"]:
            label = match["label"]
            found[label] = b""
        elif match["bytes"] and label:
            found[label] += bytes(int(code) & 0xFF for code in match["bytes"].split(","))
    return found
