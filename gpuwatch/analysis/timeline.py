"""When warps and blocks ran within the busy span of their SM."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Real = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SmSpans:
    """First start and last end of each SM, at index SM + 1: rows with SM -1 share one span.

    Times are only ever told relative to the SM's own span, because the clocks of two SMs
    cannot be compared.
    """

    first: Whole
    last: Whole

    @staticmethod
    def of(sm: NDArray[np.int32], start: Whole, elapsed: Whole) -> SmSpans:
        """The spans of warps given by equally long columns, in any order."""
        slots = int(sm.max()) + 2 if len(sm) else 0
        first = np.full(slots, np.iinfo(np.int64).max)
        last = np.full(slots, np.iinfo(np.int64).min)
        slot = sm.astype(np.int64) + 1
        np.minimum.at(first, slot, start)
        np.maximum.at(last, slot, start + elapsed)
        return SmSpans(first, last)

    def parts(self, sm: NDArray[np.int32], start: Whole, elapsed: Whole) -> tuple[Real, Real]:
        """Begin and end of some of the warps as parts 0..1 of their SM's span."""
        slot = sm.astype(np.int64) + 1
        begin = start - self.first[slot]
        span = np.maximum(self.last[slot] - self.first[slot], 1)
        return begin / span, (begin + elapsed) / span


@dataclass(frozen=True, slots=True)
class BlockSpans:
    """Blocks by SM and begin. `begin` and `end` are cycles since the SM's first start, or on a
    common axis since the first of all; those of SM n are rows `bounds[n]` up to
    `bounds[n + 1]`."""

    block: Whole
    sm: Whole
    begin: Whole
    end: Whole
    bounds: Whole

    @property
    def sms(self) -> int:
        return len(self.bounds) - 1

    def of_sm(self, sm: int) -> slice:
        """The rows of one SM."""
        return slice(int(self.bounds[sm]), int(self.bounds[sm + 1]))


def block_spans(
    sm: NDArray[np.int32],
    block: Whole,
    start: Whole,
    elapsed: Whole,
    sm_count: int,
    *,
    common: bool = False,
) -> BlockSpans:
    """From the first warp's start to the last warp's end of each block.

    `block` ascends. Rows with SM -1 are left out. A block with warps on several SMs has a row
    for each run of its warps. `common` says that starts of all SMs lie on one axis.
    """
    known = sm >= 0
    if not known.all():
        sm, block, start, elapsed = sm[known], block[known], start[known], elapsed[known]
    sms = max(sm_count, int(sm.max()) + 1 if len(sm) else 0)
    if len(sm) == 0:
        none = np.empty(0, np.int64)
        return BlockSpans(none, none, none, none, np.zeros(sms + 1, np.int64))
    change = (block[1:] != block[:-1]) | (sm[1:] != sm[:-1])
    first = np.concatenate(([0], np.flatnonzero(change) + 1))
    where = sm[first].astype(np.int64)
    origin = np.full(sms, np.iinfo(np.int64).max)
    begin = np.minimum.reduceat(start, first)
    end = np.maximum.reduceat(start + elapsed, first)
    np.minimum.at(origin, where, begin)
    if common:
        origin[:] = origin.min()
    begin, end = begin - origin[where], end - origin[where]
    order = np.lexsort((begin, where))
    bounds = np.searchsorted(where[order], np.arange(sms + 1)).astype(np.int64)
    return BlockSpans(block[first][order], where[order], begin[order], end[order], bounds)


def coverage(row: NDArray[np.integer], begin: Real, end: Real, rows: int, bins: int) -> Real:
    """How many intervals run at once, on average within each bin; (rows, bins).

    `row` (n,) says which row an interval counts for; `begin` and `end` are in bins, 0 to
    `bins`, and clipped to that.
    """
    width = bins + 2
    base = row.astype(np.int64) * width
    total = np.zeros(rows * width)
    for edge, sign in ((begin, 1.0), (end, -1.0)):
        clipped = np.clip(edge, 0.0, bins)
        left = clipped.astype(np.int64)
        late = clipped - left
        place = base + left
        total += sign * np.bincount(place, 1.0 - late, minlength=rows * width)
        total[1:] += sign * np.bincount(place, late, minlength=rows * width)[:-1]
    running: Real = np.cumsum(total.reshape(rows, width), axis=1)[:, :bins]
    return np.maximum(running, 0.0)


def residency(sm: NDArray[np.int32], start: Whole, elapsed: Whole, sms: int, bins: int) -> Real:
    """Warps that are resident at once, on average within each of `bins` equal parts of the busy
    span of their SM; (sms, bins). Rows with an SM of -1 are left out."""
    known = sm >= 0
    if not known.all():
        sm, start, elapsed = sm[known], start[known], elapsed[known]
    begin, end = SmSpans.of(sm, start, elapsed).parts(sm, start, elapsed)
    return coverage(sm, begin * bins, end * bins, sms, bins)


def lanes(begin: Whole, end: Whole) -> Whole:
    """A lane for each interval, in ascending order of begin, so that none in a lane overlap:
    the lowest lane that is free, and as few lanes as there are intervals at once."""
    lane = np.empty(len(begin), np.int64)
    free: list[int] = []
    running: list[tuple[int, int]] = []
    opened = 0
    for place, (starts, ends) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        while running and running[0][0] <= starts:
            heapq.heappush(free, heapq.heappop(running)[1])
        if free:
            mine = heapq.heappop(free)
        else:
            mine, opened = opened, opened + 1
        lane[place] = mine
        heapq.heappush(running, (ends, mine))
    return lane
