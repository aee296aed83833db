"""Which lines a timeline has, and how blocks are drawn on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.timeline import BlockSpans, coverage, lanes
from gpuwatch.engine.frame import Dim3
from gpuwatch.tui.glyphs import Glyphs, place
from gpuwatch.tui.paint import Span
from gpuwatch.tui.theme import CURSOR, QUIET, RULE, STRONG, ramp

LABEL = 5
"""Cells of an SM's label."""
CLOSEST = 1.0
"""Cycles of a cell beyond which zooming in shows nothing new."""


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the longest SM's span that is shown, both 0..1."""

    low: float = 0.0
    high: float = 1.0

    def zoomed(self, factor: float, least: float) -> Window:
        """`factor` times as long around the same middle, at least `least`."""
        middle = (self.low + self.high) / 2
        length = min(1.0, max(least, (self.high - self.low) * factor))
        low = min(max(0.0, middle - length / 2), 1.0 - length)
        return Window(low, low + length)

    def panned(self, part: float) -> Window:
        """Moved by `part` of its length, within 0..1."""
        length = self.high - self.low
        low = min(max(0.0, self.low + part * length), 1.0 - length)
        return Window(low, low + length)

    def cycles(self, longest: int) -> tuple[float, float]:
        """Its ends in cycles since the SM's first start."""
        return self.low * longest, self.high * longest


@dataclass(frozen=True, slots=True)
class Row:
    """One line: all blocks of an SM (`lane` None), or those of one of its lanes, as rows of the
    spans."""

    sm: int
    lane: int | None = None
    blocks: NDArray[np.int64] | None = None


def rows_of(spans: BlockSpans, first: int, height: int, opened: Sequence[int] | None) -> list[Row]:
    """The lines from SM `first` on that fit in `height`; the SMs of `opened`, all for None, show
    each lane on a line of its own below theirs."""
    rows: list[Row] = []
    for sm in range(first, spans.sms):
        if len(rows) >= height:
            break
        rows.append(Row(sm))
        if opened is None or sm in opened:
            mine = spans.of_sm(sm)
            lane = lanes(spans.begin[mine], spans.end[mine])
            count = int(lane.max()) + 1 if len(lane) else 0
            rows += [
                Row(sm, number, np.flatnonzero(lane == number) + mine.start)
                for number in range(count)
            ]
    return rows[:height]


def first_to_show(spans: BlockSpans, first: int, cursor: int, height: int, opened: bool) -> int:
    """The nearest first SM to `first` with which SM `cursor` is in sight, with its lanes if it is
    the only one `opened` and there is room."""
    if cursor <= first:
        return cursor
    mine = spans.of_sm(cursor)
    lane = lanes(spans.begin[mine], spans.end[mine]) if opened else ()
    need = 1 + (int(max(lane)) + 1 if len(lane) else 0)
    return min(cursor, max(first, cursor - max(0, height - need)))


class Gantt:
    """The cells of one redraw: `width` cells for the cycles `low` to `high`."""

    def __init__(
        self, spans: BlockSpans, low: float, high: float, width: int, glyphs: Glyphs, grid: Dim3
    ) -> None:
        self._spans, self._glyphs, self._grid = spans, glyphs, grid
        self._low, self._width = low, max(1, width)
        self._scale = self._width / max(high - low, 1e-9)
        length = spans.end - spans.begin
        self._shortest = int(length.min()) if len(length) else 0
        self._variation = int(length.max()) - self._shortest if len(length) else 0
        begin, end = self._cells(spans.begin), self._cells(spans.end)
        self._resident = coverage(spans.sm, begin, end, spans.sms, self._width)
        self._peak = max(1.0, float(self._resident.max()) if self._resident.size else 1.0)

    def _cells(self, cycles: NDArray[np.int64]) -> NDArray[np.float64]:
        return (cycles - self._low).astype(np.float64) * self._scale

    def row(self, row: Row, chosen: int | None) -> list[Span]:
        """One line; the block `chosen` stands out."""
        if row.lane is None or row.blocks is None:
            return self._activity(row.sm)
        begin, end = (
            self._cells(self._spans.begin[row.blocks]),
            self._cells(self._spans.end[row.blocks]),
        )
        inside = (end > 0) & (begin < self._width)
        if np.count_nonzero(inside) > self._width:
            return self._crowd(begin, end)
        cells: list[Span] = [(self._glyphs.dot, RULE)] * self._width
        drawn = zip(row.blocks[inside].tolist(), begin[inside], end[inside], strict=True)
        for index, left, right in drawn:
            self._block(cells, index, math.floor(left), round(right), chosen)
        return cells

    def _activity(self, sm: int) -> list[Span]:
        """How many blocks are resident, of the most that any SM has."""
        levels = self._glyphs.upward
        top = len(levels) - 1
        return [
            (levels[max(part > 0, min(top, round(part * top)))], ramp(part))
            for part in (self._resident[sm] / self._peak).tolist()
        ]

    def _crowd(self, begin: NDArray[np.float64], end: NDArray[np.float64]) -> list[Span]:
        """A lane with more blocks than cells: how much of each cell is taken."""
        rows = np.zeros(len(begin), np.int64)
        parts = np.minimum(coverage(rows, begin, end, 1, self._width)[0], 1.0)
        return [(self._glyphs.thread if part > 0 else self._glyphs.dot, ramp(part))
                for part in parts.tolist()]  # fmt: skip

    def _block(
        self, cells: list[Span], index: int, left: int, right: int, chosen: int | None
    ) -> None:
        """A mark where the block starts, its position in the grid if there is room, a line."""
        block = int(self._spans.block[index])
        length = int(self._spans.end[index] - self._spans.begin[index])
        part = (length - self._shortest) / self._variation if self._variation else 0.5
        style = CURSOR if block == chosen else ramp(part)
        begin = max(0, left)
        room = max(1, min(self._width, right) - begin)
        mark = self._glyphs.axis if left >= 0 else ""
        text = mark + place(block, self._grid)
        text = text if len(text) < room else mark
        for offset, glyph in enumerate(text.ljust(room, self._glyphs.thread)):
            cells[begin + offset] = (glyph, style)


def label_of(row: Row, cursor: int | None) -> Span:
    """The SM's number on its first line."""
    if row.lane is not None:
        return (" " * LABEL, QUIET)
    return (f"{row.sm:>{LABEL - 1}} ", CURSOR if row.sm == cursor else STRONG)
