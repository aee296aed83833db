"""Counts of values in bins: of one launch, and of many without keeping their values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.scale import Scale

Counts = NDArray[np.int64]
Edges = NDArray[np.float64]

QUANTILES = (0.5, 0.9, 0.99)

_SMALL_RANGE = 1 << 16


def counts_between(values: NDArray[Any], edges: Edges, *, log: bool = False) -> Counts:
    """How many of `values` (n,) fall between each two of the rising `edges` (bins + 1,); (bins,).

    A value on an edge counts above it, on the last edge below it. Values outside are not
    counted. The edges are those of a `Scale`, `log` or not: a value's bin is computed, and put
    right by one where rounding had missed.
    """
    bins = len(edges) - 1
    inside = values[(values >= edges[0]) & (values <= edges[-1])].astype(np.float64)
    if len(inside) == 0:
        return np.zeros(bins, np.int64)
    low, high = float(edges[0]), float(edges[-1])
    if log:
        place = np.log(inside / low) * (bins / np.log(high / low))
    else:
        place = (inside - low) * (bins / (high - low))
    index = np.clip(place.astype(np.int64), 0, bins - 1)
    index -= inside < edges[index]
    index += (inside >= edges[index + 1]) & (index < bins - 1)
    return np.bincount(index, minlength=bins).astype(np.int64)


class Distribution(Protocol):
    """What a histogram draws. Without values `total` is 0 and the other figures are 0."""

    @property
    def total(self) -> int: ...

    @property
    def launches(self) -> int: ...

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...

    @property
    def positive(self) -> float:
        """The least value above 0, 0 for none."""

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """p50, p90 and p99."""

    def bars(self, scale: Scale, bins: int) -> Edges:
        """Lower and upper ends of the bar that each bin of `scale` shows, (2, bins). A bar may
        take several bins."""

    def counts(self, scale: Scale, bins: int) -> NDArray[np.float64]:
        """Values in the bar of each bin; what lies beyond the ends counts in the end bars."""


def bar_column(bars: Edges, scale: Scale, value: float) -> int:
    """The bin above `value` among those of its bar."""
    bins = bars.shape[1]
    first = int(np.searchsorted(bars[1], value, side="right"))
    last = int(np.searchsorted(bars[0], value, side="right")) - 1
    nearest: int = max(min(scale.column(value, bins), max(last, 0)), min(first, bins - 1))
    return nearest


class Sample:
    """The values of one launch, exactly. Values that are no finite numbers are left out.

    Whole numbers of a small range are counted one by one once, (range,), and every question is
    answered from that.
    """

    launches = 1

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        self.total = len(self._values)
        ends = (self._values.min(), self._values.max()) if self.total else (0, 0)
        self.low, self.high = float(ends[0]), float(ends[1])
        self.positive = self.low if self.low > 0 else self._least_positive()
        self._quantiles: tuple[float, float, float] | None = None
        self._first = int(ends[0]) if values.dtype.kind in "iu" else 0
        self._below: Counts | None = None
        span = int(ends[1]) - self._first
        if values.dtype.kind in "iu" and span <= max(_SMALL_RANGE, 4 * self.total):
            each = np.bincount((self._values - ends[0]).astype(np.int64), minlength=span + 1)
            self._below = np.concatenate(([0], np.cumsum(each)))

    def _least_positive(self) -> float:
        above = self._values[self._values > 0]
        return float(above.min()) if len(above) else 0.0

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """Interpolated linearly between neighbours."""
        if self._quantiles is None:
            p50, p90, p99 = self._find_quantiles().tolist()
            self._quantiles = (p50, p90, p99)
        return self._quantiles

    def _find_quantiles(self) -> NDArray[np.float64]:
        if self.total == 0:
            return np.zeros(3)
        if self._below is None:
            exact: NDArray[np.float64] = np.quantile(self._values, QUANTILES)
            return exact
        rank = np.array(QUANTILES) * (self.total - 1)
        lower = np.floor(rank)
        ends = np.searchsorted(self._below, (lower, np.ceil(rank)), side="right") - 1
        low, high = ends + float(self._first)
        found: NDArray[np.float64] = low + (high - low) * (rank - lower)
        return found

    def bars(self, scale: Scale, bins: int) -> Edges:
        edges = scale.edges(bins)
        return np.stack((edges[:-1], edges[1:]))

    def counts(self, scale: Scale, bins: int) -> NDArray[np.float64]:
        edges = scale.edges(bins)
        if self._below is not None:
            place = np.ceil(edges) - self._first
            at = self._below[np.clip(place, 0, len(self._below) - 1).astype(np.int64)]
            at[0], at[-1] = 0, self.total
            within: NDArray[np.float64] = np.diff(at).astype(np.float64)
            return within
        counts = counts_between(self._values, edges, log=scale.log).astype(np.float64)
        counts[0] += np.count_nonzero(self._values < edges[0])
        counts[-1] += np.count_nonzero(self._values > edges[-1])
        return counts


_PER_OCTAVE = 4096
_MANTISSA_TAIL = 52 - 12
"""Bits of a float64 behind its exponent and the 12 bits that say which of 4096 it is."""
_FIRST_OCTAVE, _END_OCTAVE = -65, 65
"""Values from 2**-65 to 2**65 have buckets of their own; 64-bit numbers are among them."""
_BEFORE_FIRST = (_FIRST_OCTAVE + 1023) * _PER_OCTAVE - 1
_BUCKETS = (_END_OCTAVE - _FIRST_OCTAVE) * _PER_OCTAVE + 1


@lru_cache(maxsize=1)
def _fine_edges() -> Edges:
    octaves = np.exp2(np.arange(_FIRST_OCTAVE, _END_OCTAVE))
    within = 1.0 + np.arange(_PER_OCTAVE) / _PER_OCTAVE
    return np.concatenate(([0.0], np.outer(octaves, within).ravel(), [octaves[-1] * 2]))


@dataclass(slots=True)
class Tally:
    """Counts over many launches in buckets, where they are made here 1/4096 of an octave (0.02 %)
    wide. Bars are of whole buckets: how values lie within one is not known.

    `edges` rise. Bucket 0, behind the first of them, holds what is 0 or below; `bucket_counts`
    are of the buckets from `first` on, all others are empty.
    """

    bucket_counts: Counts
    edges: Edges
    launches: int = 0
    first: int = 0

    @staticmethod
    def empty() -> Tally:
        return Tally(np.zeros(0, np.int64), _fine_edges())

    def copy(self) -> Tally:
        """What it holds now; further launches are not added to that."""
        return replace(self)

    def observe(self, values: NDArray[Any]) -> None:
        """Adds one launch; only to a tally that began as `empty`."""
        finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        self.launches += 1
        if len(finite) == 0:
            return
        bits = finite.astype(np.float64).view(np.int64)
        index = np.clip((bits >> _MANTISSA_TAIL) - _BEFORE_FIRST, 0, _BUCKETS - 1)
        self._make_room(int(index.min()), int(index.max()) + 1)
        counts = np.bincount(index - self.first, minlength=len(self.bucket_counts))
        counts += self.bucket_counts
        self.bucket_counts = counts

    def _make_room(self, first: int, end: int) -> None:
        if len(self.bucket_counts) == 0:
            self.first = first
        before = max(self.first - first, 0)
        behind = max(end - self.first - len(self.bucket_counts), 0)
        if before or behind:
            self.bucket_counts = np.pad(self.bucket_counts, (before, behind))
            self.first -= before

    @property
    def total(self) -> int:
        return int(self.bucket_counts.sum())

    @property
    def low(self) -> float:
        used = self._used()
        return float(self.edges[used[0]]) if len(used) else 0.0

    @property
    def high(self) -> float:
        used = self._used()
        return float(self.edges[used[-1] + 1]) if len(used) else 0.0

    @property
    def positive(self) -> float:
        used = self._used()
        above = used[used > 0]
        return float(self.edges[above[0]]) if len(above) else 0.0

    def _used(self) -> Counts:
        used: Counts = np.flatnonzero(self.bucket_counts) + self.first
        return used

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """Interpolated within their buckets."""
        if self.total == 0:
            return (0.0, 0.0, 0.0)
        below = self._below()
        edges = self.edges[self.first : self.first + len(below)]
        found = np.interp(np.array(QUANTILES) * below[-1], below, edges)
        return (float(found[0]), float(found[1]), float(found[2]))

    def bars(self, scale: Scale, bins: int) -> Edges:
        return self.edges[self._bar_buckets(scale, bins)]

    def counts(self, scale: Scale, bins: int) -> NDArray[np.float64]:
        below = self._below()
        ends = self._bar_buckets(scale, bins) - self.first
        first, end = np.clip(ends, 0, len(below) - 1)
        first[ends[0] == ends[0][0]] = 0
        end[ends[1] == ends[1][-1]] = len(below) - 1
        within: NDArray[np.float64] = below[end] - below[first]
        return within

    def _bar_buckets(self, scale: Scale, bins: int) -> Counts:
        """The first bucket of each bin's bar, and the one behind its last; (2, bins)."""
        ends = scale.edges(bins)
        middles = self._bucket_of((ends[:-1] + ends[1:]) / 2)
        at = self._bucket_of(ends)
        nearer_above = ends - self.edges[at] > self.edges[at + 1] - ends
        cuts = at + nearer_above
        cuts[1:-1] = np.clip(cuts[1:-1], middles[:-1] + 1, middles[1:])
        cuts[0], cuts[-1] = min(cuts[0], middles[0]), max(cuts[-1], middles[-1] + 1)
        starts = np.concatenate(([True], middles[1:] != middles[:-1]))
        bar = np.cumsum(starts) - 1
        borders = np.append(cuts[:-1][starts], cuts[-1])
        return np.stack((borders[bar], borders[bar + 1]))

    def _bucket_of(self, values: NDArray[np.float64]) -> Counts:
        place = np.searchsorted(self.edges, values, side="right") - 1
        return np.clip(place, 0, len(self.edges) - 2)

    def _below(self) -> NDArray[np.float64]:
        """How many values lie below each edge, from the `first` on."""
        return np.concatenate(([0.0], np.cumsum(self.bucket_counts)))


def reduced_edges(buckets: int) -> Edges:
    """Edges of the buckets in which a GPU counts by itself: one for each value below 16, above
    it 16 to the octave; (buckets + 1,)."""
    index = np.arange(buckets + 1)
    octave = np.maximum(index // 16 - 1, 0)
    edges: Edges = np.where(index < 16, index, (16.0 + index % 16) * np.exp2(octave))
    return edges
