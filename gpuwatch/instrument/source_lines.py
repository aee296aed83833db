"""Lines of the main source file that PTX belongs to, code inlined into them included."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.ptx.model import Function, Instruction, Loc, Statement

_Point = tuple[int, int, int]
"""File, line and column."""


class SourceLines:
    """The lines in force while a body's `.loc` directives are seen one after the other.

    A `.loc` of inlined code names the place that it was inlined into, which is that of an
    earlier `.loc`, perhaps of inlined code again.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._known: dict[_Point, tuple[int, ...]] = {}
        self.lines: tuple[int, ...] = ()
        """Innermost first; none for code that has nothing to do with the file."""

    def see(self, loc: Loc) -> None:
        own = (loc.line,) if loc.file == self._file and loc.line else ()
        outer: tuple[int, ...] = ()
        if loc.inlined_at:
            file, line, _ = loc.inlined_at
            outer = self._known.get(loc.inlined_at, (line,) if file == self._file else ())
        self.lines = self._known[loc.file, loc.line, loc.column] = own + outer


def instruction_lines(body: Sequence[Statement], file: int) -> dict[int, int]:
    """The innermost line of the file that each instruction of a body belongs to, by its index;
    none for one that has nothing to do with the file."""
    source, found = SourceLines(file), {}
    for index, statement in enumerate(body):
        if isinstance(statement, Loc):
            source.see(statement)
        elif isinstance(statement, Instruction) and source.lines:
            found[index] = source.lines[0]
    return found


def main_file(kernel: Function) -> int:
    """Index of the kernel's source file, that of its first `.loc`; 0 when it has none."""
    return next((one.file for one in kernel.body or () if isinstance(one, Loc)), 0)
