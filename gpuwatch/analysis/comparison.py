"""Two runs against each other, figure by figure, with the spread between launches in mind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Wanted = Literal["less", "more", ""]
Verdict = Literal["better", "worse", "differs", "same", "unclear", "other probe"]

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Series:
    """One figure, a value for each launch: `values` (n,), without NaN.

    `wanted` says whether less or more of it is better, "" for neither. `exact` figures are the
    same in every launch of the same program, so one launch tells them.
    """

    name: str
    unit: str
    values: NDArray[np.float64]
    wanted: Wanted = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class MedianRange:
    """The median of some launches, and the range that holds the median of all launches with a
    confidence of 95 %; with fewer than six launches it is from the least to the greatest, whose
    confidence is 1 - 2^(1 - n)."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """`before` or `after` is None where that run has no such figure. `ratio` is after over
    before, None where before is 0."""

    name: str
    unit: str
    wanted: Wanted
    before: MedianRange | None
    after: MedianRange | None
    verdict: Verdict

    @property
    def change(self) -> float | None:
        if self.before is None or self.after is None:
            return None
        return self.after.median - self.before.median

    @property
    def ratio(self) -> float | None:
        if self.before is None or self.after is None or self.before.median == 0:
            return None
        return self.after.median / self.before.median


def median_range(values: NDArray[np.float64]) -> MedianRange:
    """By order statistics, which supposes nothing of how the values are distributed: as many
    values lie below the median as a fair coin shows heads (H. A. David, Order Statistics, 7.1).

    Raises ValueError for no values.
    """
    if len(values) == 0:
        raise ValueError("no launches")
    ordered = np.sort(values)
    skip = _skipped(len(values))
    low, high = ordered[skip], ordered[len(values) - 1 - skip]
    return MedianRange(float(low), float(np.median(ordered)), float(high))


def compare(before: Series | None, after: Series | None) -> Difference:
    """One figure of two runs. They differ where the ranges of their medians do not overlap; where
    a run has one launch of a figure that varies, nothing is clear. Raises ValueError for none."""
    known = before if before is not None else after
    if known is None:
        raise ValueError("neither run has the figure")
    left = None if before is None else median_range(before.values)
    right = None if after is None else median_range(after.values)
    verdict = _verdict(before, after, left, right)
    return Difference(known.name, known.unit, known.wanted, left, right, verdict)


def _verdict(
    before: Series | None,
    after: Series | None,
    left: MedianRange | None,
    right: MedianRange | None,
) -> Verdict:
    if before is None or after is None or left is None or right is None:
        return "unclear"
    if not all(one.exact or len(one.values) > 1 for one in (before, after)):
        return "unclear"
    if left.low <= right.high and right.low <= left.high:
        return "same"
    if not before.wanted:
        return "differs"
    fell = right.median < left.median
    return "better" if fell == (before.wanted == "less") else "worse"


def _skipped(count: int) -> int:
    """How many values to leave out on either side, so that those left still hold the median with
    the confidence wanted."""
    if count > 500:  # where the normal distribution is near enough to the coins' own
        return max(0, math.floor((count - 1.96 * math.sqrt(count)) / 2) - 1)
    tail, skip = 0.0, 0
    for heads in range(count // 2):
        tail += math.comb(count, heads) / 2**count
        if 2 * tail > 1 - _CONFIDENCE:
            break
        skip = heads
    return skip
