"""Idle gaps: how long the warp slots of an SM stood empty between two warps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def idle_cycles(
    start: NDArray[np.int64], end: NDArray[np.int64], bounds: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Idle cycles of each SM, summed over its warps; `end >= start`. Those of SM k are
    `bounds[k]` up to `bounds[k + 1]`, in ascending order of start.

    The rule: taken in order of start, each warp takes over the slot that was freed earliest,
    at or before its start, and the slot idled in between; when none is free, it opens a new one.

    A freed slot is never passed over for one freed later, so the ends taken over are the
    smallest ones, in order. With `free[i]` the number of warps before `i` that ended by
    `start[i]`, the number of slots taken over so far is `taken[i] = min(taken[i-1] + 1,
    free[i])`, which is a running minimum of `free[i] - i`. The idle sum is the starts of the
    warps that took a slot over minus as many of the smallest ends.

    All SMs at once: their times are moved apart, so that no end of one lies behind a start of
    the next; an SM's sums of starts and ends are moved alike.
    """
    sizes = np.diff(bounds)
    idle = np.zeros(len(sizes), np.int64)
    used = np.flatnonzero(sizes)
    if len(used) == 0:
        return idle
    firsts, sizes = bounds[used], sizes[used]
    starts, ends = _apart(start, end, firsts, sizes)
    sorted_ends = np.sort(ends)
    free = np.searchsorted(sorted_ends, starts, side="right") - _ended_at_once(starts, ends)
    order = np.arange(len(starts), dtype=np.int64)
    # Each SM's values lie below those of the one before, so that the minimum begins anew.
    below = np.repeat(np.arange(len(used), dtype=np.int64) * (2 * len(starts) + 1), sizes)
    within = order - np.repeat(firsts, sizes)
    taken = np.minimum.accumulate(free - order - below) + below + within
    before = np.roll(taken, 1)
    before[firsts] = 0
    takes_over = np.where(taken > before, starts, 0)
    totals = np.concatenate(([0], np.cumsum(sorted_ends)))
    smallest = totals[firsts + taken[firsts + sizes - 1]] - totals[firsts]
    idle[used] = np.add.reduceat(takes_over, firsts) - smallest
    return idle


def _apart(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    firsts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and ends with each SM's first start moved behind the last end of the one before."""
    begin = start[firsts]
    spans = np.maximum.reduceat(end, firsts) - begin + 1
    shift: NDArray[np.int64] = np.repeat(np.cumsum(spans) - spans - begin, sizes)
    starts: NDArray[np.int64] = start + shift
    ends: NDArray[np.int64] = end + shift
    return starts, ends


def _ended_at_once(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each warp, how many warps of its own start, itself and later ones, took no time:
    they ended by that start, but not before the warp came."""
    zero: NDArray[np.int64] = (end == start).astype(np.int64)
    if not zero.any():
        return zero
    through = np.cumsum(zero)
    group_end = np.searchsorted(start, start, side="right")
    result: NDArray[np.int64] = through[group_end - 1] - through + zero
    return result
