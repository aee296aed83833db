"""Where a launch's maps lie: slots and bytes per map, buffers in the order of their pointers.

Each map has a buffer of records and one of u32 save counts, empty where records show by themselves
that they arrived. Behind those of all maps come the
offsets of each dynamic map, then the number of SMs if a map has a slot per SM, then the counts of
departed lanes if a probe ends with its warp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuwatch.errors import UserError
from gpuwatch.instrument.model import Dim3, MapLayout, MapPlace, Woven
from gpuwatch.probe.language import TYPE_BYTES, copy_bytes, layout_of
from gpuwatch.probe.model import Level, Map

WARP = 32
COUNT_BYTES = 4
"""Bytes of a slot's save counter, and of a warp's counter of departed lanes."""
OFFSET_BYTES = 8

FIELD_BYTES = {str(type_): size for type_, size in TYPE_BYTES.items()}
"""Bytes of a field in a record; a predicate is stored as 0 or 1."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """Numbers of the buffers that are not a map's records (2 * number) and counts (2 * number
    + 1); -1 for one that is not there."""

    offsets: tuple[int, ...]
    """Of each map."""
    sm_count: int
    departed: int
    """The last one, present where a probe ends with its warp."""

    @staticmethod
    def of(maps: Sequence[Map]) -> Buffers:
        following = 2 * len(maps)
        offsets = []
        for map_ in maps:
            offsets.append(following if map_.dynamic else -1)
            following += map_.dynamic
        per_sm = any(map_.level == "sm" for map_ in maps)
        return Buffers(tuple(offsets), following if per_sm else -1, following + per_sm)


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides how many slots a map has."""

    grid: Dim3
    block: Dim3
    sm_count: int
    sites: int

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Per block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        return -(-self.threads // WARP)

    def slots(self, map_: Map) -> int:
        """Slots of a map; only for the sampled warps or blocks where it is thinned."""
        blocks, warps = self.blocks, self.blocks * self.warps_per_block
        per_block = {"thread": self.threads, "warp": self.warps_per_block, "block": 1}
        if map_.thinned and map_.sample_unit == "warp":
            return -(-warps // map_.sample) * (WARP if map_.level == "thread" else 1)
        if map_.level in per_block:
            sampled = -(-blocks // map_.sample) if map_.thinned else blocks
            return sampled * per_block[map_.level]
        return {"sm": self.sm_count, "site": self.sites, "line": self.sites, "kernel": 1}[
            map_.level
        ]


_DIVISORS: dict[Level, int] = {"thread": 1, "warp": WARP}


def slots_at_sites(map_: Map, sites: int) -> int:
    """Slots of a map that has one for the kernel, or for each of its sites or lines."""
    return 1 if map_.level == "kernel" else sites


def field_offsets(map_: Map) -> tuple[int, ...]:
    """Byte offset of each field in a record: in order, each aligned to its own size. The record
    of a histogram is a bucket's count.

    Raises UserError when the fields do not fit the record's size, or when the size is no
    multiple of 4, so that records could not be aligned.
    """
    offsets, end = layout_of(map_.fields)
    if end > map_.size or map_.size % 4:
        raise UserError(
            f"the fields of map {map_.name} take {end} bytes, its records have {map_.size}",
            hint=f"give the map size={-(-end // 8) * 8}",
            at=map_.at,
        )
    return offsets


def lay_out(
    woven: Woven,
    grid: Dim3,
    block: Dim3,
    *,
    sm_count: int = 0,
    counts: Mapping[str, NDArray[np.uint32]] | None = None,
) -> MapLayout:
    """The maps of `woven` for a launch of `grid` blocks of `block` threads on `sm_count` SMs.

    `counts` holds, for each dynamic map by name, the saves in each slot that an earlier launch
    counted: each slot gets room for exactly so many. A dynamic map without them has room for
    none, so that a launch only counts. Warps per block is a ceiling.

    Raises UserError for negative dimensions, and for a map per SM without a number of SMs.
    """
    shape = _shape(grid, block, sm_count, len(woven.sites))
    if sm_count < 1 and any(map_.level == "sm" for map_ in woven.maps):
        raise UserError(
            "a map has a slot per SM, but the number of SMs is not known",
            hint="name a device: --device sim:h200",
        )
    numbers = Buffers.of(woven.maps)
    places: list[MapPlace] = []
    sizes: dict[int, int] = {}
    fixed: dict[int, NDArray[np.uint8]] = {}
    for number, map_ in enumerate(woven.maps):
        place = _place(map_, number, numbers, shape, woven.marks.get(map_.name, -1))
        place = replace(place, packed=woven.stored.get(map_.name))
        places.append(place)
        records = place.slots * place.stored.slot_bytes
        if map_.dynamic:
            offsets = _offsets(place.slots, (counts or {}).get(map_.name))
            records = int(offsets[-1]) * map_.size
            fixed[place.offsets] = offsets.view(np.uint8)
        if map_.copies > 1:
            records = map_.copies * copy_bytes(map_, place.slots)
        sizes[place.records] = records
        counted = place.slots + (map_.level == "sm") if place.mark < 0 else 0
        sizes[place.counts] = counted * COUNT_BYTES
    if numbers.sm_count >= 0:
        fixed[numbers.sm_count] = np.array([sm_count], np.uint64).view(np.uint8)
    sizes |= {number: len(contents) for number, contents in fixed.items()}
    if woven.counts_departures:
        sizes[numbers.departed] = shape.blocks * shape.warps_per_block * COUNT_BYTES
    buffers = tuple(sizes[number] for number in sorted(sizes))
    return MapLayout(
        tuple(places), buffers, shape.blocks, shape.warps_per_block, fixed, shape.threads
    )


def _shape(grid: Dim3, block: Dim3, sm_count: int, sites: int) -> Shape:
    if min(*grid, *block) < 0:
        raise UserError(
            f"a launch of {grid} blocks of {block} threads has a negative dimension",
            hint="give grid and block as three numbers of at least 0",
        )
    return Shape(grid, block, sm_count, sites)


def _place(map_: Map, number: int, numbers: Buffers, shape: Shape, mark: int) -> MapPlace:
    slots = shape.slots(map_)
    divisor = shape.threads if map_.level == "block" else _DIVISORS.get(map_.level, 0)
    absent = np.empty(0, np.int64)
    spare = shape.threads % WARP
    if map_.thinned and (map_.level, map_.sample_unit) == ("thread", "warp") and spare:
        # A block's last warp has fewer lanes than the slots that are kept for it.
        sampled = np.arange(slots // WARP, dtype=np.int64)
        last = (sampled * map_.sample + 1) % shape.warps_per_block == 0
        absent = (sampled[last, None] * WARP + np.arange(spare, WARP)).reshape(-1)
    return MapPlace(
        map_,
        slots,
        divisor,
        2 * number,
        2 * number + 1,
        numbers.offsets[number],
        map_.sample,
        mark,
        absent,
    )


def _offsets(slots: int, counts: NDArray[np.uint32] | None) -> NDArray[np.uint64]:
    """Index of each slot's first record, and the end of the last one's."""
    offsets = np.zeros(slots + 1, np.uint64)
    if counts is not None:
        np.cumsum(counts[:slots], dtype=np.uint64, out=offsets[1:])
    return offsets


def index_of(layout: MapLayout, place: MapPlace, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each of `slots` stands for: the index of the thread, warp, block, SM or site in the
    launch. That is the slot itself unless the map is thinned by sampling."""
    map_ = place.map
    if not map_.thinned:
        return slots
    if map_.sample_unit == "warp":
        if map_.level == "warp":
            return slots * map_.sample
        warp = slots // WARP * map_.sample
        block, within = np.divmod(warp, layout.warps_per_block)
        thread: NDArray[np.int64] = block * layout.threads_per_block + within * WARP + slots % WARP
        return thread
    per_block = {"thread": layout.threads_per_block, "warp": layout.warps_per_block}
    size = per_block.get(map_.level, 1)
    index: NDArray[np.int64] = slots // size * map_.sample * size + slots % size
    return index
