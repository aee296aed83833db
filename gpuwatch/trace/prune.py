"""A PTX module cut down to one kernel and what it can reach."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuwatch.ptx.model import Directive, Function, Module, Statement, Variable

_WORD = re.compile(r"[%$A-Za-z_][\w$]*", re.ASCII)


@dataclass(slots=True)
class _Piece:
    """A statement at the top of a module, or several variables that one declares; `names` are
    those that it gives, none of what always stays."""

    start: int
    end: int
    names: tuple[str, ...]


def prune(module: Module, entry: str) -> str:
    """The module's text without functions and variables that `entry` does not reach.

    What stays is byte for byte as it was; a name in a comment counts as reached. Raises KeyError
    when there is no such entry.
    """
    pieces = _pieces(module)
    kept = _reached(module.text, entry, pieces)
    result, at = [], 0
    for piece in pieces:
        end = _line_end(module.text, piece.end)
        if not piece.names or kept.intersection(piece.names):
            result.append(module.text[at:end])
        at = end
    return "".join(result) + module.text[at:]


def _pieces(module: Module) -> list[_Piece]:
    pieces: list[_Piece] = []
    for statement in module.statements:
        names = _defined(statement)
        if names and module.text[statement.start] == ",":
            pieces[-1].end = statement.end
            pieces[-1].names += names
        else:
            pieces.append(_Piece(statement.start, statement.end, names))
    return pieces


def _defined(statement: Statement) -> tuple[str, ...]:
    if isinstance(statement, Function | Variable):
        return (statement.name,)
    if isinstance(statement, Directive) and statement.name == "alias":
        return statement.words[:1]
    return ()


def _reached(text: str, entry: str, pieces: Sequence[_Piece]) -> frozenset[str]:
    named: dict[str, list[_Piece]] = defaultdict(list)
    for piece in pieces:
        for name in piece.names:
            named[name].append(piece)
    if entry not in named:
        raise KeyError(entry)
    found: set[str] = set()
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _mentioned(text, named[name], named)
    return frozenset(found)


def _mentioned(
    text: str, pieces: Sequence[_Piece], known: Mapping[str, Sequence[_Piece]]
) -> set[str]:
    return {
        word
        for piece in pieces
        for word in _WORD.findall(text, piece.start, piece.end)
        if word in known
    }


def _line_end(text: str, end: int) -> int:
    """Behind the line that ends at `end`, so that no blank lines pile up where it goes."""
    line = text.find("\n", end)
    return line + 1 if line >= 0 and not text[end:line].strip() else end
