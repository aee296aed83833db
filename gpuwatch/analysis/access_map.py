"""The memory access timeline: how often each page was accessed when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.maps import MapFigures

COLUMNS = 128
"""Columns of time of the preset dmat; a cell's number is row * COLUMNS + column."""
PAGE_BYTES = 1 << 16
PAGES = 256
"""Pages that it tells apart."""
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
    sample: int = 1

    @property
    def most(self) -> int:
        """Accesses of the cell that has most."""
        return int(self.counts.max())

    @property
    def microseconds(self) -> float:
        return float(self.counts.shape[1] * COLUMN_NANOSECONDS / 1000)

    def address(self, row: int) -> str:
        """Where the page of a row begins: the digits of its address that are told apart."""
        return f"{(self.first_page + row) * PAGE_BYTES:06x}"

    def words(self, *, modelled: bool) -> Iterator[str]:
        """What the picture has to say beside its axes, the most important first."""
        width = COLUMN_NANOSECONDS / 1000
        yield f"{self.microseconds:,.0f} us{' modelled' if modelled else ''}"
        yield f"up to {_counted(self.most, 'access', 'accesses')} of a page in {width:.1f} us"
        if self.folded:
            yield f"folded: longer than {COLUMNS * width:,.0f} us"
        if self.sample > 1:
            yield f"estimated from 1 warp in {self.sample}"
        yield f"{_counted(int(self.counts.sum()), 'access', 'accesses')} of warps"
        used = int(np.count_nonzero(self.counts.any(axis=1)))
        yield f"{_counted(used, 'page', 'pages')} of {PAGE_BYTES // 1024} KiB"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def is_access_map(figures: MapFigures) -> bool:
    """Whether a map is a memory access timeline, which is a picture and no histogram."""
    buckets = figures.buckets if figures.name == "page_by_time" else None
    return buckets is not None and len(buckets.counts) % COLUMNS == 0


def access_map(figures: MapFigures) -> AccessMap | None:
    """The timeline out of such a map; None when nothing was accessed."""
    assert figures.buckets is not None
    cells = figures.buckets.counts.reshape(-1, COLUMNS)
    times: NDArray[np.bool_] = np.any(cells, axis=0, keepdims=True)[0]
    pages = np.flatnonzero(cells.any(axis=1))
    if not len(pages):
        return None
    begin = _behind_longest_gap(times)
    turned = np.roll(cells, -begin, axis=1)
    used = np.flatnonzero(turned.any(axis=0))
    first, last = int(pages[0]), int(pages[-1])
    shown = turned[first : last + 1, : int(used[-1]) + 1]
    return AccessMap(shown, first, bool(times.all()), figures.sample)


def _behind_longest_gap(used: NDArray[np.bool_]) -> int:
    """The column behind the longest run of unused ones, going round; 0 where all are used."""
    taken = np.flatnonzero(used)
    gaps = np.diff(np.append(taken, taken[0] + len(used)))
    longest = int(gaps.argmax())
    return 0 if gaps[longest] == 1 else int(taken[(longest + 1) % len(taken)])


def fitted(counts: NDArray[np.int64], rows: int, columns: int) -> NDArray[np.int64]:
    """The map in just so many rows and columns: the most of neighbours that share a cell, or each
    cell several times."""
    result = counts
    for axis, wanted in enumerate((rows, columns)):
        size = result.shape[axis]
        starts = np.arange(wanted) * size // wanted
        if wanted <= size:
            result = np.maximum.reduceat(result, starts, axis=axis)
        else:
            result = np.take(result, starts, axis=axis)
    return result


def levels(counts: NDArray[np.int64], most: int, steps: int) -> NDArray[np.int64]:
    """How dark each cell is, in equal steps up to `most`; 0 is for none at all."""
    result: NDArray[np.int64] = -(-counts * steps // max(most, 1))
    return result
