"""Idle gaps: how long the warp slots of an SM stood empty between two warps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def idle_cycles(start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    """Idle cycles of one SM, summed over its warps; `start` ascends, `end >= start`.

    The rule: taken in order of start, each warp takes over the slot that was freed earliest,
    at or before its start, and the slot idled in between; when none is free, it opens a new one.

    A freed slot is never passed over for one freed later, so the ends taken over are the
    smallest ones, in order. With `free[i]` the number of warps before `i` that ended by
    `start[i]`, the number of slots taken over so far is `taken[i] = min(taken[i-1] + 1,
    free[i])`, which is a running minimum of `free[i] - i`. The idle sum is the starts of the
    warps that took a slot over minus as many of the smallest ends.
    """
    count = len(start)
    if count < 2:
        return 0
    ends = np.sort(end)
    free = np.searchsorted(ends, start, side="right") - _ended_at_once(start, end)
    order = np.arange(count, dtype=np.int64)
    taken = np.minimum.accumulate(free - order) + order
    takes_over = np.diff(taken, prepend=0) > 0
    return int(start[takes_over].sum()) - int(ends[: taken[-1]].sum())


def _ended_at_once(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each warp, how many warps of its own start, itself and later ones, took no time:
    they ended by that start, but not before the warp came."""
    zero = (end == start).astype(np.int64)
    through = np.cumsum(zero)
    group_end = np.searchsorted(start, start, side="right")
    result: NDArray[np.int64] = through[group_end - 1] - through + zero
    return result
