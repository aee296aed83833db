"""Counts of values in bins: of one launch, and of many without keeping their values."""

from __future__ import annotations

from dataclasses import dataclass
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

    def counts(self, scale: Scale, bins: int) -> NDArray[np.float64]:
        """Values in each bin of `scale`; what lies beyond its ends counts in the end bins."""


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


_PER_OCTAVE = 256
_MANTISSA_TAIL = 52 - 8
"""Bits of a float64 behind its exponent and the 8 bits that say which of 256 it is."""
_FIRST_OCTAVE, _END_OCTAVE = -65, 65
"""Values from 2**-65 to 2**65 have buckets of their own; 64-bit numbers are among them."""
_BEFORE_FIRST = (_FIRST_OCTAVE + 1023) * _PER_OCTAVE - 1
_BUCKETS = (_END_OCTAVE - _FIRST_OCTAVE) * _PER_OCTAVE + 1


@dataclass(slots=True)
class Tally:
    """Counts over many launches in buckets so narrow (1/256 of an octave, 0.4 %) that any axis
    can be drawn from them; values within a bucket are taken as evenly spread.

    Bucket 0 holds what is 0 or below. `edges` (buckets + 1,) rise.
    """

    bucket_counts: Counts
    edges: Edges
    launches: int = 0

    @staticmethod
    def empty() -> Tally:
        octaves = np.exp2(np.arange(_FIRST_OCTAVE, _END_OCTAVE))
        within = 1.0 + np.arange(_PER_OCTAVE) / _PER_OCTAVE
        edges = np.concatenate(([0.0], np.outer(octaves, within).ravel(), [octaves[-1] * 2]))
        return Tally(np.zeros(_BUCKETS, np.int64), edges)

    def copy(self) -> Tally:
        return Tally(self.bucket_counts.copy(), self.edges, self.launches)

    def observe(self, values: NDArray[Any]) -> None:
        """Adds one launch; only to a tally that began as `empty`."""
        finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        bits = finite.astype(np.float64).view(np.int64)
        index = np.clip((bits >> _MANTISSA_TAIL) - _BEFORE_FIRST, 0, _BUCKETS - 1)
        self.bucket_counts += np.bincount(index, minlength=_BUCKETS)
        self.launches += 1

    @property
    def total(self) -> int:
        return int(self.bucket_counts.sum())

    @property
    def low(self) -> float:
        used = np.flatnonzero(self.bucket_counts)
        return float(self.edges[used[0]]) if len(used) else 0.0

    @property
    def high(self) -> float:
        used = np.flatnonzero(self.bucket_counts)
        return float(self.edges[used[-1] + 1]) if len(used) else 0.0

    @property
    def positive(self) -> float:
        used = np.flatnonzero(self.bucket_counts[1:])
        return float(self.edges[used[0] + 1]) if len(used) else 0.0

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """Interpolated within their buckets."""
        if self.total == 0:
            return (0.0, 0.0, 0.0)
        below = self._below()
        found = np.interp(np.array(QUANTILES) * below[-1], below, self.edges)
        return (float(found[0]), float(found[1]), float(found[2]))

    def counts(self, scale: Scale, bins: int) -> NDArray[np.float64]:
        below = self._below()
        at = np.interp(scale.edges(bins), self.edges, below)
        at[0], at[-1] = 0, below[-1]
        return np.diff(at)

    def _below(self) -> NDArray[np.float64]:
        """How many values lie below each edge."""
        return np.concatenate(([0.0], np.cumsum(self.bucket_counts)))


def reduced_edges(buckets: int) -> Edges:
    """Edges of the buckets in which a GPU counts by itself: one for each value below 16, above
    it 16 to the octave; (buckets + 1,)."""
    index = np.arange(buckets + 1)
    octave = np.maximum(index // 16 - 1, 0)
    edges: Edges = np.where(index < 16, index, (16.0 + index % 16) * np.exp2(octave))
    return edges
