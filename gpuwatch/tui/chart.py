"""Drawing of bars over an axis, as lines of styled text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.style import Style

from gpuwatch.analysis.scale import nice_step
from gpuwatch.tui.glyphs import Glyphs, short
from gpuwatch.tui.paint import Span
from gpuwatch.tui.theme import CURSOR, FORMER, QUIET, RULE, heat, ramp

GUTTER = 6
"""Columns of the count axis."""
_SHADES = 16


@dataclass(frozen=True, slots=True)
class Heights:
    """How high a count stands, 0..1, and which counts are labelled."""

    top: float
    log: bool
    labels: tuple[float, ...]

    @staticmethod
    def of(most: float, bars: int, *, log: bool) -> Heights:
        """For counts up to `most` in `bars` lines."""
        if log:
            powers = [10.0**power for power in range(20) if 10.0**power <= max(most, 1.0)]
            return Heights(max(most, 1.0), True, tuple(powers))
        step = nice_step(most, 2 if bars < 8 else 4)
        count = max(1, round(-(-most // step)))
        return Heights(count * step, False, tuple(step * (i + 1) for i in range(count)))

    def parts(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The height of each count."""
        parts: NDArray[np.float64] = counts / self.top
        return np.log1p(counts) / np.log1p(self.top) if self.log else parts

    def gutter(self, level: int, bars: int) -> str:
        """The label of the cell `level` lines above the axis, blank for none."""
        for label in self.labels:
            height = float(self.parts(np.array([label]))[0])
            if min(bars - 1, int(height * bars - 1e-9)) == level:
                return (short(label) + " ").rjust(GUTTER)
        return " " * GUTTER


class Bars:
    """The cells of one redraw. `line` are counts drawn as a line over the bars, e.g. former
    ones; the column `cursor` stands out."""

    def __init__(
        self,
        counts: NDArray[np.float64],
        bars: int,
        glyphs: Glyphs,
        *,
        log: bool,
        line: NDArray[np.float64] | None = None,
        cursor: int | None = None,
    ) -> None:
        most = max(float(counts.max()), float(line.max()) if line is not None else 0.0, 1.0)
        self._heights = Heights.of(most, bars, log=log)
        self._bars, self._glyphs, self._cursor = bars, glyphs, cursor
        self._levels = glyphs.upward
        parts = len(glyphs.upward) - 1
        filled = np.floor(self._heights.parts(counts) * bars * parts + 0.5).astype(np.int64)
        self._filled = np.where(counts > 0, np.maximum(filled, 1), 0)
        self._parts = parts
        self._line: NDArray[np.int64] | None = None
        if line is not None:
            cell = np.ceil(self._heights.parts(line) * bars - 1e-9).astype(np.int64) - 1
            self._line = np.where(line > 0, np.clip(cell, 0, bars - 1), -1)
        shade = (np.arange(len(counts)) * _SHADES // max(1, len(counts))) / (_SHADES - 1)
        self._shades = shade.tolist()
        self._styles = [ramp(part) for part in self._shades]

    def row(self, row: int) -> list[Span]:
        """Line `row` from the top, with its label and axis."""
        level = self._bars - 1 - row
        cells = np.clip(self._filled - level * self._parts, 0, self._parts).tolist()
        lined = (self._line == level).tolist() if self._line is not None else [False] * len(cells)
        spans: list[Span] = [
            (self._heights.gutter(level, self._bars), QUIET),
            (self._glyphs.axis, RULE),
        ]
        if not any(cells) and not any(lined) and self._cursor is None:
            return [*spans, (" " * len(cells), RULE)]
        for column, (cell, former) in enumerate(zip(cells, lined, strict=True)):
            spans.append(self._cell(column, cell, former=former))
        return spans

    def _cell(self, column: int, cell: int, *, former: bool) -> tuple[str, Style]:
        if column == self._cursor:
            return self._levels[cell], CURSOR
        if former:
            return self._glyphs.rule, heat(self._shades[column]) if cell == self._parts else FORMER
        return self._levels[cell], self._styles[column]


def placed_labels(labels: Sequence[tuple[str, int, Style]], columns: int) -> list[Span]:
    """Labels (text, column, style) centred under their columns, moved aside where they would
    touch; those at the left are left out where all do not fit. One cell may stand out at the
    right."""
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
