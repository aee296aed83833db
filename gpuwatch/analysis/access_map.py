"""The memory access timeline: how often each page was accessed when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.maps import MapFigures

COLUMNS = 128
"""Columns of time of the preset dmat; a cell's number is row * COLUMNS + column."""
PAGE_BYTES = 1 << 16
COLUMN_NANOSECONDS = 1 << 12


@dataclass(frozen=True, slots=True)
class AccessMap:
    """`counts` (pages, columns) are the accesses of warps to each page in each span of time, from
    the first used page to the last, beginning with the launch. `first_page` is the number of the
    first row, modulo the number of rows that the probe tells apart."""

    counts: NDArray[np.int64]
    first_page: int
    folded: bool
    """Whether the launch took longer than the columns, so that they begin anywhere."""


def access_map(figures: MapFigures) -> AccessMap | None:
    """The timeline out of the map of dmat; None when nothing was accessed."""
    if figures.buckets is None or len(figures.buckets.counts) % COLUMNS:
        return None
    cells = figures.buckets.counts.reshape(-1, COLUMNS)
    times: NDArray[np.bool_] = np.any(cells, axis=0, keepdims=True)[0]
    pages = np.flatnonzero(cells.any(axis=1))
    if not len(pages):
        return None
    begin = _behind_longest_gap(times)
    turned = np.roll(cells, -begin, axis=1)
    used = np.flatnonzero(turned.any(axis=0))
    first, last = int(pages[0]), int(pages[-1])
    return AccessMap(turned[first : last + 1, : int(used[-1]) + 1], first, bool(times.all()))


def _behind_longest_gap(used: NDArray[np.bool_]) -> int:
    """The column behind the longest run of unused ones, going round; 0 where all are used."""
    taken = np.flatnonzero(used)
    gaps = np.diff(np.append(taken, taken[0] + len(used)))
    longest = int(gaps.argmax())
    return 0 if gaps[longest] == 1 else int(taken[(longest + 1) % len(taken)])


def shrunk(counts: NDArray[np.int64], rows: int, columns: int) -> NDArray[np.int64]:
    """The map in at most so many rows and columns, neighbours added up."""
    result = counts
    for axis, most in enumerate((rows, columns)):
        size = result.shape[axis]
        starts = np.unique(np.arange(most) * size // most) if size > most else np.arange(size)
        result = np.add.reduceat(result, starts, axis=axis)
    return result
