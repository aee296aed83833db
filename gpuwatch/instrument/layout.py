"""Where a launch's maps lie: slots and bytes per map, buffers in the order of their pointers."""

from __future__ import annotations

from gpuwatch.errors import UserError
from gpuwatch.instrument.model import MapLayout, MapPlace, Woven
from gpuwatch.probe.model import Map

WARP = 32
COUNT_BYTES = 4
"""Bytes of a slot's save counter, and of a warp's counter of departed lanes."""

FIELD_BYTES = {"u32": 4, "s32": 4, "f32": 4, "pred": 4, "u64": 8, "s64": 8}
"""Bytes of a field in a record; a predicate is stored as 0 or 1."""


def field_offsets(map_: Map) -> tuple[int, ...]:
    """Byte offset of each field in a record: in order, each aligned to its own size.

    Raises UserError when the fields do not fit the record's size, or when the size is no
    multiple of 4, so that records could not be aligned.
    """
    offsets, end = [], 0
    for field in map_.fields:
        size = FIELD_BYTES[field.type]
        start = -(-end // size) * size
        offsets.append(start)
        end = start + size
    if end > map_.size or map_.size % 4:
        raise UserError(
            f"the fields of map {map_.name} take {end} bytes, its records have {map_.size}",
            hint=f"give the map size={-(-end // 8) * 8}",
            at=map_.at,
        )
    return tuple(offsets)


def lay_out(woven: Woven, grid: tuple[int, int, int], block: tuple[int, int, int]) -> MapLayout:
    """The maps of `woven` for a launch of `grid` blocks of `block` threads.

    Warps per block is a ceiling. Each map has a buffer of records and one of u32 save counts;
    a program that ends with the warp has a last buffer, a u32 of departed lanes per warp.
    Raises UserError for negative dimensions.
    """
    if min(*grid, *block) < 0:
        raise UserError(
            f"a launch of {grid} blocks of {block} threads has a negative dimension",
            hint="give grid and block as three numbers of at least 0",
        )
    blocks = grid[0] * grid[1] * grid[2]
    threads = block[0] * block[1] * block[2]
    warps_per_block = (threads + WARP - 1) // WARP
    slots = {
        "thread": (blocks * threads, 1),
        "warp": (blocks * warps_per_block, WARP),
        "block": (blocks, threads),
        "site": (len(woven.sites), 0),
        "kernel": (1, 0),
    }
    places: list[MapPlace] = []
    buffers: list[int] = []
    for number, map_ in enumerate(woven.maps):
        count, divisor = slots[map_.level]
        places.append(MapPlace(map_, count, divisor, 2 * number, 2 * number + 1))
        buffers += [count * map_.slot_bytes, count * COUNT_BYTES]
    if woven.counts_departures:
        buffers.append(blocks * warps_per_block * COUNT_BYTES)
    return MapLayout(tuple(places), tuple(buffers), blocks, warps_per_block)
