"""Raw map bytes to structured arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuwatch.instrument.model import MapLayout, MapPlace
from gpuwatch.probe.language import copy_bytes, layout_of
from gpuwatch.probe.model import Field, Map

_FORMATS = {"u32": "<u4", "u64": "<u8", "s32": "<i4", "s64": "<i8", "f32": "<f4", "pred": "<u4"}
_BUCKET = np.dtype([("count", "<u8")])


@dataclass(frozen=True, slots=True)
class Decoded:
    """The records of one map after one launch.

    `records` is structured, one row per record, in order of slot and of saving. `slots` is the
    slot of each row, `missing` the slots that saved nothing, `dropped` how many saves found
    their slot full, or no slot of their SM. `records` of an array map is a view of the bytes
    given wherever every slot is full, so it lives as long as they do.

    A `reduce` map has a row per slot that was saved to. A `hist` map has `cap` rows per slot,
    its buckets with their `count`, whether or not anything was saved.
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
    """The layout of one record: fields in order, each aligned to its own size, `size` bytes. Of a
    hist map, that of one bucket."""
    return _BUCKET if record.type == "hist" else _dtype(record.fields, record.size)


@lru_cache(maxsize=64)
def _dtype(fields: tuple[Field, ...], size: int) -> np.dtype[np.void]:
    return np.dtype(
        {
            "names": [field.name for field in fields],
            "formats": [np.dtype(_FORMATS[field.type]) for field in fields],
            "offsets": list(layout_of(fields)[0]),
            "itemsize": size,
        }
    )


def bucket_edges(record: Map) -> NDArray[np.float64]:
    """`cap + 1` edges of a hist map's buckets: bucket k counts values from edge k up to edge
    k + 1, the first and last also what lies beyond."""
    if record.scale == "log2":
        return np.concatenate(([0.0], 2.0 ** np.arange(record.cap)))
    return record.low + record.step * np.arange(record.cap + 1, dtype=np.float64)


def folded(
    record: Map, slots: int, records: NDArray[np.uint8], counts: NDArray[np.uint32]
) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """The buffers of a map with its copies (`Map.copies`) added up; those of a map that has one
    are given back as they are. A slot counts as saved to where its record is not all zeros."""
    size, used = copy_bytes(record, slots), slots * record.slot_bytes
    if record.copies == 1 or len(records) < record.copies * size:
        return records, counts
    copies = records[: record.copies * size].reshape(record.copies, size)[:, :used]
    rows = np.ascontiguousarray(copies).view(record_dtype(record))
    total = np.zeros(rows.shape[1], rows.dtype)
    for name in rows.dtype.names or ():
        total[name] = rows[name].sum(axis=0, dtype=total[name].dtype)
    words = total.view(np.uint8).reshape(slots, -1)
    saved = words.any(axis=1) | (counts[:slots] != 0)
    return total.view(np.uint8), saved.astype(np.uint32)


def folding(
    places: Sequence[MapPlace], read_map: Callable[[int], NDArray[np.uint8]]
) -> Callable[[int], NDArray[np.uint8]]:
    """`read_map` by number of the buffer, with the copies of maps added up, packed records as the
    map has them, and the counts that were not kept."""
    copied = {
        number: place
        for place in places
        if place.map.copies > 1
        for number in (place.records, place.counts)
    }
    marked = {place.counts: place for place in places if place.mark >= 0}
    packed = {place.records: place for place in places if place.packed is not None}

    def read(number: int) -> NDArray[np.uint8]:
        if number in marked:
            return counts_of(marked[number], read_map).view(np.uint8)
        if number in packed:
            stored = packed[number]
            return unpacked(stored, read_map(number), counts_of(stored, read_map))
        place = copied.get(number)
        if place is None:
            return read_map(number)
        counts = read_map(place.counts).view(np.uint32)
        records, counts = folded(place.map, place.slots, read_map(place.records), counts)
        return records if number == place.records else counts.view(np.uint8)

    return read


def counts_of(place: MapPlace, read_map: Callable[[int], NDArray[np.uint8]]) -> NDArray[np.uint32]:
    """The saves in each slot of a map (uint32), from its records where they were not counted."""
    if place.mark < 0:
        return read_map(place.counts).view(np.uint32)
    size = place.stored.slot_bytes
    words = read_map(place.records)[: place.slots * size].view(np.uint64).reshape(place.slots, -1)
    arrived: NDArray[np.uint32] = (words[:, place.mark // 8] != 0).astype(np.uint32)
    return arrived


def unpacked(
    place: MapPlace, stored: NDArray[np.uint8], counts: NDArray[np.uint32]
) -> NDArray[np.uint8]:
    """The records of a map as it has them, from those of its buffer and the saves in each slot."""
    if place.packed is None:
        return stored
    rows = stored[: place.slots * place.packed.size].view(record_dtype(place.packed))
    kept = {field.name for field in place.packed.fields}
    numbers = np.where(counts[: place.slots] != 0, np.arange(place.slots), 0)
    records = np.zeros(place.slots, record_dtype(place.map))
    for field in place.map.fields:
        records[field.name] = rows[field.name] if field.name in kept else numbers
    return records.view(np.uint8)


def read_place(
    layout: MapLayout, place: MapPlace, read_map: Callable[[int], NDArray[np.uint8]]
) -> Decoded:
    """The records of one map of a launch, from its buffers by their numbers."""
    offsets = layout.fixed.get(place.offsets)
    bounds = None if offsets is None else offsets.view(np.uint64)
    counts = counts_of(place, read_map)
    records = unpacked(place, read_map(place.records), counts)
    return decode(place.map, place.slots, records, counts, bounds, place.absent)


def decode(
    record: Map,
    slots: int,
    records: NDArray[np.uint8],
    counts: NDArray[np.uint32],
    offsets: NDArray[np.uint64] | None = None,
    absent: NDArray[np.int64] | None = None,
) -> Decoded:
    """Reads the buffers of a map of `slots` slots.

    `records` holds at least `slots * record.slot_bytes` bytes. `counts` has the saves attempted
    in each slot of an array map (uint32; those beyond its capacity were dropped), and whether
    there was one in each slot of another; a map per SM has one more at the end, of saves on SMs
    that have no slot. `offsets` of a dynamic map are its `slots + 1` bounds, in records; without
    them a dynamic map has room for nothing. `absent` are slots in which nothing can be missing.

    Raises ValueError when a buffer is shorter than that.
    """
    if record.dynamic and offsets is None:
        offsets = np.zeros(slots + 1, np.uint64)
    records, counts = folded(record, slots, records, counts)
    bounds = None if offsets is None else offsets[: slots + 1].astype(np.int64)
    rows_used = slots * record.cap if bounds is None else int(bounds[-1])
    used = rows_used * record.size
    if len(records) < used or len(counts) < slots or (bounds is not None and len(bounds) <= slots):
        raise ValueError(f"map {record.name}: {len(records)} bytes for {slots} slots")
    rows = records[:used].view(record_dtype(record))
    beyond = int(counts[slots]) if record.level == "sm" and len(counts) > slots else 0
    decoded = _read(record, rows, counts[:slots], bounds)
    missing = decoded.missing
    if absent is not None and len(absent):
        missing = np.setdiff1d(missing, absent, assume_unique=True)
    return Decoded(record, decoded.records, decoded.slots, missing, decoded.dropped + beyond)


def _read(
    record: Map,
    rows: NDArray[np.void],
    counts: NDArray[np.uint32],
    bounds: NDArray[np.int64] | None,
) -> Decoded:
    if record.type == "hist":
        return _buckets(record, rows, counts)
    if bounds is not None:
        return _several(record, rows, counts, bounds[:-1], np.diff(bounds))
    if record.cap > 1:
        firsts = np.arange(len(counts), dtype=np.int64) * record.cap
        return _several(record, rows, counts, firsts, record.cap)
    decoded = _single(record, rows, counts)
    return _unkeyed(decoded) if record.type == "reduce" else decoded


def _buckets(record: Map, rows: NDArray[np.void], counts: NDArray[np.uint32]) -> Decoded:
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
    dropped = 0 if record.type == "reduce" else _overflow(counts, len(slots))
    return Decoded(record, rows, slots, missing, dropped)


def _several(
    record: Map,
    rows: NDArray[np.void],
    counts: NDArray[np.uint32],
    firsts: NDArray[np.int64],
    room: NDArray[np.int64] | int,
) -> Decoded:
    """Of each slot its first `counts` rows, `room` at most, from row `firsts` on."""
    kept = np.minimum(counts.astype(np.int64), room)
    slots = np.repeat(np.arange(len(counts), dtype=np.int64), kept)
    if len(slots) != len(rows):
        within = np.arange(len(slots), dtype=np.int64) - np.repeat(np.cumsum(kept) - kept, kept)
        rows = rows[np.repeat(firsts, kept) + within]
    return Decoded(record, rows, slots, np.flatnonzero(counts == 0), _overflow(counts, len(slots)))


def _overflow(counts: NDArray[np.uint32], kept: int) -> int:
    return int(counts.sum(dtype=np.uint64)) - kept


def _unkeyed(decoded: Decoded) -> Decoded:
    """With least and greatest values in place of the keys that the device keeps of them
    (`gpuwatch.instrument.reductions`)."""
    keyed = [field for field in decoded.map.fields if field.reduction != "sum"]
    if not keyed:
        return decoded
    records = decoded.records.copy()
    for field in keyed:
        unsigned = "<u8" if field.type in ("u64", "s64") else "<u4"
        keys = records[field.name].view(unsigned)
        values = ~keys if field.reduction == "min" else keys
        if field.type == "f32":
            values = _float_bits(values)
        elif field.type.startswith("s"):
            values = values ^ np.array(1 << (8 * values.itemsize - 1), values.dtype)
        records[field.name] = values.view(_FORMATS[field.type])
    return Decoded(decoded.map, records, decoded.slots, decoded.missing, decoded.dropped)


def _float_bits(keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Bit patterns of floats from integers that sort like them. Where only NaNs were saved the key
    is 0 or, of a least value, its complement: both give a NaN."""
    sign = np.uint32(1 << 31)
    return np.where(keys & sign, keys ^ sign, ~keys)
