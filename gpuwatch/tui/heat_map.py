"""The memory access timeline: pages downwards, time to the right, as a picture of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gpuwatch.analysis.access_map import AccessMap, fitted, levels
from gpuwatch.analysis.scale import column_of, ticks
from gpuwatch.tui.chart import placed_labels
from gpuwatch.tui.glyphs import Glyphs, whole
from gpuwatch.tui.paint import Span, as_many
from gpuwatch.tui.theme import QUIET, RULE, STRONG, TEXT, TITLE, glow

Line = list[Span]

GUTTER = 10
"""Columns of the addresses and the axis."""
_LEAST_ROWS = 4
_BESIDE = 4
"""Lines of a heat map that are not cells: heading, axis, times, scale."""
_LABEL_EVERY = 4
_TICK_COLUMNS = 14
_STEPS = 16
"""Shades of colour."""


def heat_lines(
    found: AccessMap, glyphs: Glyphs, width: int, height: int, *, modelled: bool, colours: bool
) -> Iterator[Line]:
    """`height` lines, and no fewer than the axes need. Without `colours` characters tell how
    many accesses a cell has."""
    yield _heading(found, width, modelled=modelled)
    rows, columns = max(_LEAST_ROWS, height - _BESIDE), max(1, width - GUTTER - 1)
    steps = _STEPS if colours else len(glyphs.shades) - 1
    fine = 2 * rows if colours else rows
    cells = levels(fitted(found.counts, fine, columns), found.most, steps)
    pages = len(found.counts)
    for row in range(rows):
        labelled = row % _LABEL_EVERY == 0
        address = f"..{found.address(row * pages // rows)}" if labelled else ""
        yield [
            (f"{address:>{GUTTER - 1}}", QUIET),
            (glyphs.axis, RULE),
            *(
                _halves(cells[2 * row], cells[2 * row + 1])
                if colours
                else _shades(cells[row], glyphs)
            ),
        ]
    yield from _time_axis(found, glyphs, columns)
    yield _scale(found, glyphs, width, colours=colours)


def _heading(found: AccessMap, width: int, *, modelled: bool) -> Line:
    """As much of what is to be said as fits."""
    title = " Pages by time"
    groups: list[Line] = [[(text, TEXT)] for text in found.words(modelled=modelled)]
    return [(title + "  ", TITLE), *as_many(groups, width - len(title) - 2, ("; ", QUIET))]


def _halves(upper: Sequence[int], lower: Sequence[int]) -> Iterator[Span]:
    """Two rows of levels as half blocks, cells alike in one span."""
    pairs = np.stack([upper, lower])
    ends = np.flatnonzero(np.any(pairs[:, 1:] != pairs[:, :-1], axis=0)) + 1
    starts = [0, *ends.tolist()]
    for start, end in zip(starts, [*starts[1:], pairs.shape[1]], strict=True):
        text, style = _half(int(pairs[0, start]), int(pairs[1, start]))
        yield text * (end - start), style


def _half(upper: int, lower: int) -> Span:
    if not upper and not lower:
        return " ", TEXT
    if upper == lower:
        return "█", glow(upper / _STEPS)
    if not upper or not lower:
        return ("▀" if upper else "▄"), glow(max(upper, lower) / _STEPS)
    return "▀", glow(upper / _STEPS, lower / _STEPS)


def _shades(row: Sequence[int], glyphs: Glyphs) -> Line:
    return [("".join(glyphs.shades[level] for level in row), TEXT)]


def _time_axis(found: AccessMap, glyphs: Glyphs, columns: int) -> Iterator[Line]:
    end = found.microseconds
    marks = ticks(0.0, end, max(1, columns // _TICK_COLUMNS))
    places = [column_of(mark, 0.0, end, columns) for mark in marks]
    line = [glyphs.rule] * columns
    for place in places:
        line[place] = glyphs.tick
    yield [(" " * (GUTTER - 1), RULE), (glyphs.corner + "".join(line), RULE)]
    labels = [
        (f"{mark:,g}{f' {glyphs.micro}s' if mark == marks[-1] else ''}", place, QUIET)
        for mark, place in zip(marks, places, strict=True)
    ]
    yield [(" " * GUTTER, QUIET), *placed_labels(labels, columns)]


def _scale(found: AccessMap, glyphs: Glyphs, width: int, *, colours: bool) -> Line:
    """From few accesses in a cell to the most."""
    shades: Line = [(glyphs.shades[1:], TEXT)]
    if colours:
        shades = [("█", glow(step / _STEPS)) for step in range(1, _STEPS + 1)]
    scale = [("accesses in a cell  ", QUIET), ("1 ", STRONG), *shades]
    groups: list[Line] = [
        [*scale, (f" {whole(found.most)}", STRONG)],
        [("address mod 16 MiB", QUIET)],
    ]
    return [(" " * GUTTER, QUIET), *as_many(groups, width - GUTTER, ("   ", QUIET))]
