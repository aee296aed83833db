"""Which of a program's kernels are listed, in what order, and the lines of those in sight."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style

from gpuwatch.engine.program_kernels import ProgramKernel
from gpuwatch.tui.glyphs import Glyphs, bar
from gpuwatch.tui.kernel_names import cut_within, fitted_name
from gpuwatch.tui.paint import Span
from gpuwatch.tui.program_columns import (
    COLUMNS,
    GAP,
    NAME,
    PER_CENT,
    SHARE,
    Column,
    Layout,
    per_cent,
    share_of,
)
from gpuwatch.tui.theme import CURSOR, FOCUS, KEY, QUIET, STRONG, TEXT, TITLE, ramp

Line = list[Span]

_SHARE_TITLES = ("share of all kernels' time", "share of kernel time", "share of time", SHARE)


class KernelRows:
    """The newest kernels, those with all `words` in their names shown, in order of a column."""

    def __init__(self) -> None:
        self.kernels: tuple[ProgramKernel, ...] = ()
        self.shown: tuple[ProgramKernel, ...] = ()
        self.sort = "total"
        self.descending = True
        self.filter = ""
        self.seconds = 0.0
        """Of all kernels, shown or not."""
        self.unprobeable = 0
        """How many of all kernels."""
        self.first = 0
        """Rank of the first that a probe can attach to."""
        self._ranks: dict[str, int] = {}

    def take(self, kernels: Sequence[ProgramKernel]) -> None:
        self.kernels = tuple(kernels)
        self.seconds = sum(one.total_seconds or 0.0 for one in self.kernels)
        self.unprobeable = sum(not one.probeable for one in self.kernels)
        self._arrange()

    def sort_by(self, title: str, descending: bool) -> None:
        self.sort, self.descending = title, descending
        self._arrange()

    def filter_by(self, text: str) -> None:
        self.filter = text.strip()
        self._arrange()

    def rank(self, key: str | None) -> int | None:
        """Where a kernel stands, from 0; None where it is not shown."""
        return None if key is None else self._ranks.get(key)

    def _arrange(self) -> None:
        column = next(one for one in COLUMNS if one.title == self.sort)
        words = self.filter.casefold().split()
        kept = [one for one in self.kernels if _has(one, words)]
        kept.sort(key=lambda one: (-one.launches, one.name, one.key))
        known = [one for one in kept if column.value(one) is not None]
        known.sort(key=column.value, reverse=self.descending)  # type: ignore[arg-type]
        unknown = [one for one in kept if column.value(one) is None]
        self.shown = (*known, *unknown)
        self._ranks = {one.key: rank for rank, one in enumerate(self.shown)}
        self.first = next((rank for rank, one in enumerate(self.shown) if one.probeable), 0)


def _has(kernel: ProgramKernel, words: Sequence[str]) -> bool:
    names = f"{kernel.name} {kernel.mangled}".casefold()
    return all(word in names for word in words)


def title_line(layout: Layout, sort: str, direction: str) -> Line:
    """The titles, the one that is ordered by marked with `direction`."""
    spans: Line = [("    ", QUIET)]
    for column, width in zip(layout.columns, layout.widths, strict=True):
        chosen = column.title == sort
        mark = direction if chosen else ""
        title = _title(column, width - len(mark)) + mark
        text = title.ljust(width) if column.left or column.title == SHARE else title.rjust(width)
        spans.append((text, FOCUS + STRONG if chosen else QUIET))
        spans.append((" " * GAP, QUIET))
    return spans


def _title(column: Column, room: int) -> str:
    if column.title != SHARE:
        return column.title
    return next((text for text in _SHARE_TITLES if len(text) <= room), SHARE)


def row_line(
    kernel: ProgramKernel,
    layout: Layout,
    rows: KernelRows,
    glyphs: Glyphs,
    *,
    under_cursor: bool,
    watched: bool,
) -> Line:
    """A kernel that no probe can attach to is quiet, and marked besides."""
    cursor = glyphs.cursor if under_cursor else " "
    mark = glyphs.block if watched else " " if kernel.probeable else glyphs.cross
    line: Line = [(cursor, TITLE), (" ", TEXT), (mark, KEY if watched else QUIET), (" ", TEXT)]
    for column, width in zip(layout.columns, layout.widths, strict=True):
        line += _cell(kernel, column, width, layout.bar, rows, glyphs)
        line.append((" " * GAP, TEXT))
    return [(text, CURSOR) for text, _ in line] if under_cursor else line


def _cell(
    kernel: ProgramKernel, column: Column, width: int, of_bar: int, rows: KernelRows, glyphs: Glyphs
) -> Line:
    if column.title == SHARE:
        part = share_of(kernel, rows.seconds)
        shade = ramp(part or 0.0) if kernel.probeable else QUIET
        figure = per_cent(part).rjust(PER_CENT)
        return [
            (bar(part or 0.0, of_bar, glyphs.across), shade),
            (figure, _style(kernel, column, rows.sort)),
        ]
    if column.title == NAME:
        text = fitted_name(kernel.name, width, glyphs.ellipsis)
    else:
        text = cut_within(column.text(kernel, glyphs), width, glyphs.ellipsis)
    text = text.ljust(width) if column.left else text.rjust(width)
    return [(text, _style(kernel, column, rows.sort))]


def _style(kernel: ProgramKernel, column: Column, sort: str) -> Style:
    if not kernel.probeable:
        return QUIET
    if column.title in (sort, NAME):
        return STRONG
    return QUIET if column.title == "PTX" else TEXT
