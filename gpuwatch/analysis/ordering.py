"""Order of table rows by one column, without sorting more than a screen needs."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

FULL_SORT_ROWS = 100_000
"""Above this many rows only those around the window that is shown get sorted."""
_AROUND = 2_000
"""Rows sorted before and after the window, so that scrolling on needs no new partition."""

_SAMPLE = 10_000

_ROW_BITS = np.uint64(32)
_ROW_MASK = np.uint64(0xFFFF_FFFF)

Rows = NDArray[np.int64]


class Order(Protocol):
    """Some or all rows of a table, one after the other."""

    def __len__(self) -> int: ...

    def rows(self, first: int, count: int) -> Rows:
        """Row numbers of ranks `first` to `first + count`, clipped to what there is."""

    def rank(self, row: int) -> int | None:
        """Where `row` stands, from 0; None when it is not among them."""


class Ordering:
    """Rows by `values` (any real dtype, shape (n,), n < 2**32); equal values keep row order.

    `among` restricts it to these rows, ascending. NaN comes last either way. Up to
    `FULL_SORT_ROWS` integers whose range fits 32 bits are packed with their row number into one
    uint64, so that a plain sort is stable. Of more rows only those around the window are sorted;
    which values enclose it is taken from a sample, and from a partition where that misses.
    """

    def __init__(self, values: NDArray[Any], *, descending: bool, among: Rows | None = None):
        self._among = among
        kept = values if among is None else values[among]
        packed = _pack(kept, descending) if len(kept) <= FULL_SORT_ROWS else None
        self._keys: _Keys = _Plain(kept, descending) if packed is None else _Packed(packed)

    def __len__(self) -> int:
        return len(self._keys)

    def rows(self, first: int, count: int) -> Rows:
        first = max(0, min(first, len(self)))
        last = max(first, min(first + count, len(self)))
        places = self._keys.window(first, last)
        return places if self._among is None else self._among[places]

    def rank(self, row: int) -> int | None:
        if self._among is None:
            return self._keys.rank(row)
        place = int(np.searchsorted(self._among, row))
        if place == len(self._among) or self._among[place] != row:
            return None
        return self._keys.rank(place)


class Given:
    """The rows in an order that stays as it was made."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, first: int, count: int) -> Rows:
        rows: Rows = self._rows[max(0, first) : max(0, first + count)]
        return rows

    def rank(self, row: int) -> int | None:
        found = np.flatnonzero(self._rows == row)
        return int(found[0]) if len(found) else None


def carried_over(order: NDArray[np.int64], ids: NDArray[np.int64]) -> Rows:
    """Rows of a new table in an old order: `order` are identities, `ids` (ascending) those of
    the new table's rows. Identities that are gone are left out."""
    if len(ids) == 0:
        return np.empty(0, np.int64)
    rows = np.minimum(np.searchsorted(ids, order), len(ids) - 1)
    kept: Rows = rows[ids[rows] == order]
    return kept


class _Keys:
    """Keys in ascending order; large ones are sorted around the window that is asked for."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._first = self._last = 0
        self._sorted: Rows = np.empty(0, np.int64)

    def __len__(self) -> int:
        return self._length

    def window(self, first: int, last: int) -> Rows:
        if first == last:
            return np.empty(0, np.int64)
        if first < self._first or last > self._last:
            whole = self._length <= FULL_SORT_ROWS
            self._first = 0 if whole else max(0, first - _AROUND)
            self._last = self._length if whole else min(self._length, last + _AROUND)
            self._sorted = self._sort(self._first, self._last)
        return self._sorted[first - self._first : last - self._first]

    def rank(self, place: int) -> int:
        raise NotImplementedError

    def _sort(self, first: int, last: int) -> Rows:
        """Places of ranks `first` to `last`."""
        raise NotImplementedError


class _Packed(_Keys):
    """Value and place in one number."""

    def __init__(self, packed: NDArray[np.uint64]) -> None:
        super().__init__(len(packed))
        self._packed = packed

    def rank(self, place: int) -> int:
        return int(np.count_nonzero(self._packed < self._packed[place]))

    def _sort(self, first: int, last: int) -> Rows:
        return (np.sort(self._packed) & _ROW_MASK).astype(np.int64)[first:last]


class _Plain(_Keys):
    """Floating-point numbers and integers of a wide range."""

    def __init__(self, values: NDArray[Any], descending: bool) -> None:
        super().__init__(len(values))
        falling = np.negative if values.dtype.kind == "f" else np.invert
        self._values = falling(values) if descending else values

    def rank(self, place: int) -> int:
        value = self._values[place]
        if value != value:
            numbers = self._length - int(np.isnan(self._values).sum())
            return numbers + int(np.isnan(self._values[:place]).sum())
        before = np.count_nonzero(self._values < value)
        return int(before + np.count_nonzero(self._values[:place] == value))

    def _sort(self, first: int, last: int) -> Rows:
        if last - first == self._length:
            return _stable(self._values)
        for enclosing in (self._sampled, self._exact):
            low, high = enclosing(first, last)
            between = np.flatnonzero((self._values >= low) & (self._values <= high))
            begin = first - int(np.count_nonzero(self._values < low))
            if begin >= 0 and begin + last - first <= len(between):
                order = slice(None) if low == high else _stable(self._values[between])
                return between[order][begin : begin + last - first]
        return _stable(self._values)[first:last]  # NaN is in sight

    def _sampled(self, first: int, last: int) -> tuple[Any, Any]:
        """Values that enclose the window, as a sample of all has it; they may turn out not to."""
        sample = np.sort(self._values[:: max(1, self._length // _SAMPLE)])
        scale = len(sample) / self._length
        margin = 3 * math.isqrt(len(sample))
        low, high = int(first * scale) - margin, int(last * scale) + margin
        return (
            sample[low] if low >= 0 else self._values.min(),
            sample[high] if high < len(sample) else self._values.max(),
        )

    def _exact(self, first: int, last: int) -> tuple[Any, Any]:
        """First and last value of the window."""
        ends = np.partition(self._values, (first, last - 1))
        return ends[first], ends[last - 1]


def _stable(values: NDArray[Any]) -> Rows:
    return np.argsort(values, kind="stable").astype(np.int64, copy=False)


def _pack(values: NDArray[Any], descending: bool) -> NDArray[np.uint64] | None:
    """Keys as (distance from the first value << 32) | row, None where they do not fit."""
    if values.dtype.kind not in "iub" or len(values) == 0:
        return None
    low, high = int(values.min()), int(values.max())
    if high - low > int(_ROW_MASK):
        return None
    whole = values.astype(np.uint64)  # wraps below zero, and so does the difference
    origin = np.uint64((high if descending else low) % (1 << 64))
    packed: NDArray[np.uint64] = origin - whole if descending else whole - origin
    packed <<= _ROW_BITS
    packed |= np.arange(len(values), dtype=np.uint64)
    return packed
