"""Records as rows: columns of equal length, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.warps import SM_FIELDS, Shape
from gpuwatch.probe.model import Map
from gpuwatch.trace.decode import Decoded, bucket_edges, record_dtype
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.reading import LaunchRecords

Columns = dict[str, NDArray[np.generic]]

CHUNK = 1 << 16
"""Most rows of a piece."""

_CYCLES = ("start", "elapsed")


@dataclass(frozen=True, slots=True)
class Column:
    """`unit` is "" where a field has none that is known."""

    name: str
    dtype: np.dtype[np.generic]
    unit: str = ""


def columns_of_map(map_: Map, facts: KernelFacts) -> tuple[Column, ...]:
    """The columns of a map's rows: launch, what the slot stands for, number within the slot, and
    the fields; of a histogram the bounds and count of each bucket."""
    whole = np.dtype(np.int64)
    head = [Column("launch", whole), Column(map_.level, whole)]
    if map_.level in ("thread", "warp"):
        head.append(Column("block", whole))
    if map_.type == "hist":
        real, count = np.dtype(np.float64), np.dtype(np.uint64)
        return (*head, Column("from", real), Column("to", real), Column("count", count))
    head.append(Column("record", whole))
    taken = {column.name for column in head}
    dtype = record_dtype(map_)
    fields = [
        Column(
            f"{field.name}_field" if field.name in taken else field.name,
            dtype[field.name],
            unit_of(field.name, facts.device.modelled),
        )
        for field in map_.fields
    ]
    return (*head, *fields)


def unit_of(field: str, modelled: bool) -> str:
    """cycles of the SM's own clock, bytes, or the number of an SM, by the field's name."""
    if field in _CYCLES:
        return "modelled cycles" if modelled else "cycles"
    if field in SM_FIELDS:
        return "SM"
    return "bytes" if field == "bytes" else ""


def row_pieces(found: LaunchRecords, name: str, chunk: int = CHUNK) -> Iterator[Columns]:
    """The rows of one map of one launch; every piece has the columns of `columns_of_map`."""
    decoded, index = found.maps[name], found.index[name]
    names = [column.name for column in columns_of_map(decoded.map, found.kernel)]
    for start in range(0, len(decoded), chunk):
        piece = slice(start, min(start + chunk, len(decoded)))
        yield dict(zip(names, _arrays(found, decoded, index, piece), strict=True))


def _arrays(
    found: LaunchRecords, decoded: Decoded, index: NDArray[np.int64], piece: slice
) -> list[NDArray[np.generic]]:
    map_ = decoded.map
    stands_for = index[piece]
    arrays: list[NDArray[np.generic]] = [
        np.full(len(stands_for), found.launch.number, np.int64),
        stands_for,
    ]
    if map_.level in ("thread", "warp"):
        layout = found.layout
        per_block = layout.threads_per_block if map_.level == "thread" else layout.warps_per_block
        arrays.append(stands_for // per_block)
    if map_.type == "hist":
        edges = bucket_edges(map_)
        bucket = np.arange(piece.start, piece.stop) % map_.cap
        counts = np.ascontiguousarray(decoded.records["count"][piece])
        return [*arrays, edges[bucket], edges[bucket + 1], counts]
    arrays.append(_numbers(decoded.slots, piece))
    return arrays + [np.ascontiguousarray(decoded.records[f.name][piece]) for f in map_.fields]


def _numbers(slots: NDArray[np.int64], piece: slice) -> NDArray[np.int64]:
    """Place of each record within its slot; `slots` ascend."""
    mine = slots[piece]
    first: NDArray[np.int64] = np.searchsorted(slots, mine, side="left").astype(np.int64)
    return np.arange(piece.start, piece.stop, dtype=np.int64) - first


def shape_of(found: LaunchRecords, map_: Map) -> Shape:
    layout = found.layout
    return Shape(
        layout.threads_per_block, layout.warps_per_block, 1 if map_.level == "thread" else 32
    )
