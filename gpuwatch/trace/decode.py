"""Raw map bytes to structured arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuwatch.probe.model import Field, Map

_FORMATS = {"u32": "<u4", "u64": "<u8", "s32": "<i4", "s64": "<i8", "f32": "<f4", "pred": "<u4"}


@dataclass(frozen=True, slots=True)
class Decoded:
    """The records of one map after one launch.

    `records` is structured, one row per record, in order of slot and of saving. `slots` is the
    slot of each row, `missing` the slots that saved nothing, `dropped` how many saves found
    their slot full. `records` is a view of the bytes given wherever every slot is full, so it
    lives as long as they do.
    """

    map: Map
    records: NDArray[np.void]
    slots: NDArray[np.int64]
    missing: NDArray[np.int64]
    dropped: int

    def __len__(self) -> int:
        return len(self.records)

    def column(self, name: str) -> NDArray[np.generic]:
        """One field of every record."""
        column: NDArray[np.generic] = self.records[name]
        return column


def record_dtype(record: Map) -> np.dtype[np.void]:
    """The layout of one record: fields in order, each aligned to its own size, `size` bytes."""
    return _dtype(record.fields, record.size)


@lru_cache(maxsize=64)
def _dtype(fields: tuple[Field, ...], size: int) -> np.dtype[np.void]:
    formats = [np.dtype(_FORMATS[field.type]) for field in fields]
    offsets = []
    offset = 0
    for one in formats:
        offset = -(-offset // one.itemsize) * one.itemsize
        offsets.append(offset)
        offset += one.itemsize
    return np.dtype(
        {
            "names": [field.name for field in fields],
            "formats": formats,
            "offsets": offsets,
            "itemsize": size,
        }
    )


def decode(
    record: Map, slots: int, records: NDArray[np.uint8], counts: NDArray[np.uint32]
) -> Decoded:
    """Reads the buffers of a map of `slots` slots.

    `records` holds at least `slots * record.slot_bytes` bytes, `counts` the saves attempted in
    each slot (uint32, those beyond `record.cap` were dropped; only an `array` map drops).

    Raises ValueError when a buffer is shorter than that.
    """
    used = slots * record.slot_bytes
    if len(records) < used or len(counts) < slots:
        raise ValueError(f"map {record.name}: {len(records)} bytes for {slots} slots")
    rows = records[:used].view(record_dtype(record))
    counts = counts[:slots]
    if record.type != "array":
        return _every_row(record, rows, counts)
    if record.cap == 1:
        return _single(record, rows, counts)
    return _several(record, rows, counts)


def _every_row(record: Map, rows: NDArray[np.void], counts: NDArray[np.uint32]) -> Decoded:
    """Reduced and bucketed slots are whole at any count: a slot never saved to holds zeros."""
    slots = np.arange(len(counts) * record.cap, dtype=np.int64) // record.cap
    return Decoded(record, rows, slots, np.flatnonzero(counts == 0), 0)


def _single(record: Map, rows: NDArray[np.void], counts: NDArray[np.uint32]) -> Decoded:
    if len(counts) == 0 or counts.min() > 0:
        slots = np.arange(len(counts), dtype=np.int64)
        missing = np.empty(0, dtype=np.int64)
    else:
        slots = np.flatnonzero(counts)
        missing = np.flatnonzero(counts == 0)
        rows = rows[slots]
    return Decoded(record, rows, slots, missing, _overflow(counts, len(slots)))


def _several(record: Map, rows: NDArray[np.void], counts: NDArray[np.uint32]) -> Decoded:
    kept = np.minimum(counts, record.cap).astype(np.int64)
    slots = np.repeat(np.arange(len(counts), dtype=np.int64), kept)
    if len(slots) != len(rows):
        firsts = np.cumsum(kept) - kept
        within = np.arange(len(slots), dtype=np.int64) - np.repeat(firsts, kept)
        rows = rows[slots * record.cap + within]
    return Decoded(record, rows, slots, np.flatnonzero(counts == 0), _overflow(counts, len(slots)))


def _overflow(counts: NDArray[np.uint32], kept: int) -> int:
    return int(counts.sum(dtype=np.uint64)) - kept
