"""Histogram of elapsed cycles with axis, counts and percentile marks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rich.style import Style

from gpuwatch.analysis.histogram import (
    Range,
    bin_counts,
    column_of,
    nice_step,
    steady_range,
    ticks,
)
from gpuwatch.analysis.spread import Spread, spread
from gpuwatch.tui.glyphs import brief, column, short, whole
from gpuwatch.tui.paint import Span
from gpuwatch.tui.pane import Pane, View, nothing_recorded
from gpuwatch.tui.theme import CURSOR, MARK, QUIET, RULE, STRONG, TEXT, ramp

_GUTTER = 6
"""Columns of the count axis."""
_BELOW = 3
"""Lines under the bars: axis, tick labels, percentile labels."""


class HistogramPane(Pane):
    """Bars are counts of warps; colour goes from the fastest (blue) to the slowest (orange)."""

    _axis: Range | None = None
    _spread: Spread | None = None
    _kind: tuple[str, str] = ("", "")
    _bins: tuple[int, NDArray[np.int64]] | None = None

    def title_text(self) -> str:
        return "Elapsed cycles"

    def show(self, view: View) -> None:
        frame = view.frame
        if frame is not None and (self.view is None or frame is not self.view.frame):
            self._take(view)
        super().show(view)

    def _take(self, view: View) -> None:
        frame = view.frame
        assert frame is not None
        self._bins, self._spread = None, None
        table = frame.warps_table
        if table is None or len(table) == 0:
            return
        kind = (frame.mangled, frame.probe)
        if kind != self._kind:
            self._kind, self._axis = kind, None
        self._spread = frame.elapsed or spread(table.elapsed)
        low, high = int(table.elapsed.min()), int(table.elapsed.max())
        self._axis = steady_range(self._axis, low, high)

    def figures(self) -> list[list[list[Span]]]:
        seen = self._spread
        if seen is None:
            return [[]]
        marks = (("p50", seen.p50), ("p90", seen.p90), ("p99", seen.p99))
        return [
            [
                [(name + " ", QUIET), (text(value), STRONG if name == "p50" else TEXT)]
                for name, value in marks
            ]
            for text in (short_cycles, brief)
        ]

    def body(self, row: int, width: int, height: int) -> list[Span]:
        if self._spread is None or self._axis is None:
            return nothing_recorded(self.view, "start and elapsed", row, height)
        columns = max(1, width - _GUTTER - 2)
        bars = height - _BELOW
        if bars < 1:
            return [(whole(self._spread.p50) + " cycles", TEXT)] if row == 0 else []
        if row < bars:
            return self._bar_line(row, columns, bars)
        return (self._axis_line, self._tick_line, self._mark_line)[row - bars](columns)

    def _counts(self, columns: int) -> NDArray[np.int64]:
        assert self.view is not None and self.view.frame is not None and self._axis is not None
        if self._bins is None or self._bins[0] != columns:
            table = self.view.frame.warps_table
            assert table is not None
            self._bins = (columns, bin_counts(table.elapsed, *self._axis, columns))
        return self._bins[1]

    def _bar_line(self, row: int, columns: int, bars: int) -> list[Span]:
        counts = self._counts(columns)
        step = nice_step(float(counts.max()), 2 if bars < 8 else 4)
        top = -(-float(counts.max()) // step) * step
        level = bars - 1 - row
        spans: list[Span] = [(_count_label(level, bars, top, step), QUIET)]
        spans.append((self.glyphs.axis, RULE))
        for index, count in enumerate(counts):
            glyph = column(float(count) / top, bars, self.glyphs.upward)[level]
            spans.append((glyph, ramp(index / columns)))
        return spans

    def _axis_line(self, columns: int) -> list[Span]:
        assert self._axis is not None
        cells: list[Span] = [(self.glyphs.rule, RULE)] * columns
        for value in self._ticks(columns):
            cells[column_of(value, *self._axis, columns)] = (self.glyphs.tick, RULE)
        for _, position, style in self._marks(columns):
            cells[position] = (self.glyphs.mark, style)
        return [("0".rjust(_GUTTER), QUIET), (self.glyphs.corner, RULE), *cells]

    def _tick_line(self, columns: int) -> list[Span]:
        assert self._axis is not None
        labels = [
            (short(value), column_of(value, *self._axis, columns), QUIET)
            for value in self._ticks(columns)
        ]
        return [(" " * (_GUTTER + 1), QUIET), *_place_labels(labels, columns)]

    def _mark_line(self, columns: int) -> list[Span]:
        return [(" " * (_GUTTER + 1), QUIET), *_place_labels(self._marks(columns), columns)]

    def _ticks(self, columns: int) -> list[float]:
        assert self._axis is not None
        return ticks(*self._axis, max(1, columns // 9))

    def _marks(self, columns: int) -> list[tuple[str, int, Style]]:
        assert self._axis is not None and self._spread is not None and self.view is not None
        marks = [
            (name, column_of(value, *self._axis, columns), MARK)
            for name, value in (
                ("p50", self._spread.p50),
                ("p90", self._spread.p90),
                ("p99", self._spread.p99),
            )
        ]
        chosen = self.view.selected_value("elapsed")
        if chosen is not None:
            marks.append(("this", column_of(chosen, *self._axis, columns), CURSOR))
        return sorted(marks, key=lambda mark: mark[1])


def short_cycles(value: float) -> str:
    """Whole cycles below ten million, shortened above."""
    return whole(value) if value < 1e7 else short(value)


def _count_label(level: int, bars: int, top: float, step: float) -> str:
    """The multiple of `step` whose height falls into cell `level`, if any."""
    for multiple in range(1, round(top / step) + 1):
        cell = min(bars - 1, int(multiple * step / top * bars - 1e-9))
        if cell == level:
            return (short(multiple * step) + " ").rjust(_GUTTER)
    return " " * _GUTTER


def _place_labels(labels: list[tuple[str, int, Style]], columns: int) -> list[Span]:
    """Labels centred under their columns, moved aside where they would touch; those at the left
    are left out where all do not fit. One cell may stand out at the right."""
    starts: list[int] = []
    least = 0
    for text, centre, _ in labels:
        starts.append(max(least, centre - len(text) // 2))
        least = starts[-1] + len(text) + 1
    most = columns + 1
    for index in reversed(range(len(labels))):
        starts[index] = min(starts[index], most - len(labels[index][0]))
        most = starts[index] - 1
    spans: list[Span] = []
    used = 0
    for (text, _, style), start in zip(labels, starts, strict=True):
        if start >= 0:
            spans += [(" " * (start - used), QUIET), (text, style)]
            used = start + len(text)
    return spans
