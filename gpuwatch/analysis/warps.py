"""Warps: what each did in one launch, and its mean over several."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

SM_FIELDS = ("cuid", "smid", "sm")
"""Names under which a probe may record the SM."""


@dataclass(slots=True)
class WarpColumns:
    """`start` and `elapsed` in cycles of the warp's SM; `sm` is -1 where the probe records none.

    `average` is the mean elapsed over the launches observed since the last reset, `count` how
    many those were. `fields` holds the probe's remaining fields by name.
    """

    warp: NDArray[np.int64]
    block: NDArray[np.int64]
    sm: NDArray[np.int32]
    start: NDArray[np.int64]
    elapsed: NDArray[np.int64]
    average: NDArray[np.float64]
    count: NDArray[np.int64]
    fields: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.warp)


@dataclass(frozen=True, slots=True)
class Shape:
    """How slots map to warps: threads and warps of a block, and the threads that share a slot
    (32: one slot a warp; 1: one slot a thread)."""

    threads_per_block: int
    warps_per_block: int
    divisor: int = 32

    def warp_of(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The warp ID of each slot: its block times warps per block, plus the warp within."""
        if self.divisor != 1:
            return slots
        block, thread = np.divmod(slots, self.threads_per_block)
        warp: NDArray[np.int64] = block * self.warps_per_block + thread // 32
        return warp


@dataclass(frozen=True, slots=True)
class Intervals:
    """Spans of time that a probe recorded in one launch, in ascending order of warp.

    `sm` is None when the probe records none. Several may belong to one warp when its slot
    holds several records; `rows` is the record that each was taken from.
    """

    warp: NDArray[np.int64]
    sm: NDArray[np.int32] | None
    start: NDArray[np.int64]
    elapsed: NDArray[np.int64]
    rows: NDArray[np.int64] | None = None
    """None: record i is interval i."""

    def __len__(self) -> int:
        return len(self.warp)


def is_timed(names: tuple[str, ...]) -> bool:
    """Whether records with these fields give intervals."""
    return "start" in names and "elapsed" in names


def intervals(
    records: NDArray[np.void], slots: NDArray[np.int64], shape: Shape
) -> Intervals | None:
    """The intervals of `records`, a structured array with the ascending slot of each row.

    None unless it has the fields `start` and `elapsed`. Threads' records are merged into their
    warp's: from its first lane's start to its last lane's end.
    """
    names = records.dtype.names or ()
    if not is_timed(names):
        return None
    start = records["start"].astype(np.int64)
    elapsed = records["elapsed"].astype(np.int64)
    sm_name = next((name for name in SM_FIELDS if name in names), None)
    sm = None if sm_name is None else records[sm_name].astype(np.int32)
    warp = shape.warp_of(slots)
    if shape.divisor != 1 or len(warp) == 0:
        return Intervals(warp, sm, start, elapsed)
    first = _firsts(warp)
    begin = np.minimum.reduceat(start, first)
    end = np.maximum.reduceat(start + elapsed, first)
    return Intervals(warp[first], None if sm is None else sm[first], begin, end - begin, first)


class Accumulated:
    """Elapsed cycles of each of `warps` warps, summed over the launches observed."""

    def __init__(self, warps: int) -> None:
        self._sums = np.zeros(warps, dtype=np.int64)
        self._counts = np.zeros(warps, dtype=np.int64)

    def observe(self, seen: Intervals) -> None:
        """Adds one launch: a warp's intervals add up to its elapsed cycles of that launch."""
        warp, elapsed = _per_warp(seen)
        if len(warp) == len(self._sums):
            self._sums += elapsed
            self._counts += 1
        else:
            self._sums[warp] += elapsed
            self._counts[warp] += 1

    def average(self, warp: NDArray[np.int64]) -> NDArray[np.float64]:
        """Mean elapsed of these warps, 0 where none was observed."""
        counts = self._counts[warp]
        sums = self._sums[warp].astype(np.float64)
        return np.divide(sums, counts, out=np.zeros(len(warp)), where=counts > 0)

    def count(self, warp: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._counts[warp]

    def reset(self) -> None:
        self._sums[:] = 0
        self._counts[:] = 0


def warp_columns(
    seen: Intervals, records: NDArray[np.void], shape: Shape, accumulated: Accumulated
) -> WarpColumns:
    """The warp table of one launch, one row per warp that left a record.

    A warp with several intervals shows the first one's start, their sum as elapsed, and the
    last one's remaining fields.
    """
    warp, elapsed = _per_warp(seen)
    first = slice(None) if len(warp) == len(seen) else _firsts(seen.warp)
    last = slice(None) if isinstance(first, slice) else np.append(first[1:], len(seen)) - 1
    rows = records if seen.rows is None else records[seen.rows]
    names = records.dtype.names or ()
    shown = {"start", "elapsed", *SM_FIELDS}
    return WarpColumns(
        warp=warp,
        block=warp // shape.warps_per_block,
        sm=np.full(len(warp), -1, dtype=np.int32) if seen.sm is None else seen.sm[first],
        start=seen.start[first],
        elapsed=elapsed,
        average=accumulated.average(warp),
        count=accumulated.count(warp),
        fields={name: rows[name][last].copy() for name in names if name not in shown},
    )


def _per_warp(seen: Intervals) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each warp once, with the sum of its intervals."""
    if len(seen) < 2 or (seen.warp[1:] != seen.warp[:-1]).all():
        return seen.warp, seen.elapsed
    first = _firsts(seen.warp)
    return seen.warp[first], np.add.reduceat(seen.elapsed, first)


def _firsts(warp: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each run of equal values begins."""
    return np.flatnonzero(np.diff(warp, prepend=warp[0] - 1))
