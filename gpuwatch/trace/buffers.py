"""A result file as the map buffers of its launch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuwatch.instrument.layout import WARP, Shape, lay_out
from gpuwatch.instrument.model import Dim3, MapLayout, MapPlace, Woven
from gpuwatch.probe.model import Map
from gpuwatch.trace.decode import record_dtype
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.result import MapEntry, Result, Section

MOST_WARPS = 1 << 28
"""Of a launch that is looked at."""
MOST_SMS = 1 << 16


def layout_of_result(facts: KernelFacts, result: Result) -> MapLayout:
    """Where the maps of the launch lie; checked against what the file holds.

    Raises UserError when the file does not fit the kernel, or is too short for its maps.
    """
    if (result.grid, result.block) != (facts.grid, facts.block):
        raise result.wrong(
            f"byte 0: a launch of {_shape(result.grid, result.block)}, "
            f"the kernel's is {_shape(facts.grid, facts.block)}"
        )
    if len(result.sections) != len(facts.maps):
        raise result.wrong(
            f"byte 28: {len(result.sections)} maps, the probe {facts.probe} has {len(facts.maps)}"
        )
    _check_size(result)
    shape = Shape(facts.grid, facts.block, facts.device.sm_count, len(facts.sites))
    counts = {}
    for number, map_ in enumerate(facts.maps):
        entry = result.entries[number] if result.entries is not None else None
        _check(result, number, map_, shape.slots(map_), entry)
        if map_.dynamic and entry is not None:
            counts[map_.name] = _rooms(result, result.sections[number], map_, entry)
    woven = Woven("", "", "", facts.maps, facts.sites, ())
    return lay_out(woven, facts.grid, facts.block, sm_count=facts.device.sm_count, counts=counts)


def _check_size(result: Result) -> None:
    blocks, threads = math.prod(result.grid), math.prod(result.block)
    if blocks * -(-threads // WARP) > MOST_WARPS:
        raise result.wrong(f"byte 0: a launch of {_shape(result.grid, result.block)} is too large")


def _check(result: Result, number: int, map_: Map, slots: int, entry: MapEntry | None) -> None:
    """Whether the file has as many slots, of the size that the map says."""
    section = result.sections[number]
    at = f"byte {32 + 16 * number}"
    size = map_.size if map_.dynamic else map_.slot_bytes
    if section.slot_bytes != size:
        raise result.wrong(
            f"{at}: a slot of map {map_.name} takes {section.slot_bytes} bytes, not {size}"
        )
    if map_.dynamic and (entry is None or entry.offsets_at < 0):
        raise result.wrong(f"{at}: nothing says where the records of map {map_.name} lie")
    if entry is not None and (entry.name, entry.slots) != (map_.name, slots):
        raise result.wrong(
            f"{at}: map {entry.name} has {entry.slots:,} slots, "
            f"{map_.name} of this launch has {slots:,}"
        )
    if not map_.dynamic:
        result.piece(section.offset, slots * size, f"map {map_.name}, of {slots:,} slots,")


def _rooms(result: Result, section: Section, map_: Map, entry: MapEntry) -> NDArray[np.uint32]:
    """Records that each slot of a dynamic map has room for."""
    what = f"the offsets of map {map_.name}"
    raw = result.piece(entry.offsets_at, (entry.slots + 1) * 8, what)
    offsets = raw.copy().view("<u8")
    rooms = np.diff(offsets)
    if offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any() or (rooms >> np.uint64(32)).any():
        raise result.wrong(f"byte {entry.offsets_at}: {what} do not ascend from 0")
    result.piece(section.offset, int(offsets[-1]) * map_.size, f"map {map_.name}")
    return rooms.astype(np.uint32)


class ResultBuffers:
    """Reads a launch's map buffers by their numbers, as a loaded kernel does.

    `layout` must come from `layout_of_result` of this result. In a file without an extension a
    record that is all zeros counts as one that never arrived.
    """

    def __init__(self, result: Result, layout: MapLayout) -> None:
        self._result = result
        self._layout = layout

    def check_sms(self, names: Sequence[str]) -> None:
        """Raises UserError for an SM number, in a field of one of these names, that no GPU has."""
        for number, place in enumerate(self._layout.places):
            for field in place.map.fields:
                if field.name in names and place.map.type == "array":
                    records = self._records(number, place).view(record_dtype(place.map))
                    wrong = np.flatnonzero(records[field.name].astype(np.uint64) >= MOST_SMS)
                    if len(wrong):
                        raise self._result.wrong(
                            f"record {wrong[0]} of map {place.map.name}: "
                            f"no GPU has an SM {records[field.name][wrong[0]]}"
                        )

    def read_map(self, index: int) -> NDArray[np.uint8]:
        """Raises UserError where the file does not have it."""
        for number, place in enumerate(self._layout.places):
            if index == place.records:
                return self._records(number, place)
            if index == place.counts:
                return self._counts(number, place).view(np.uint8)
        return self._layout.fixed[index]

    def _records(self, number: int, place: MapPlace) -> NDArray[np.uint8]:
        section = self._result.sections[number]
        size = self._layout.buffers[place.records]
        if place.map.copies > 1:  # a file has them added up
            size = place.slots * place.map.slot_bytes
        return self._result.piece(section.offset, size, f"map {place.map.name}")

    def _counts(self, number: int, place: MapPlace) -> NDArray[np.uint32]:
        if self._result.entries is None:
            return self._arrived(number, place)
        entry = self._result.entries[number]
        length = self._layout.buffers[place.counts] // 4
        if entry.counts_at < 0:
            return np.full(length, entry.count, np.uint32)
        what = f"the save counts of map {place.map.name}"
        return self._result.piece(entry.counts_at, length * 4, what).copy().view(np.uint32)

    def _arrived(self, number: int, place: MapPlace) -> NDArray[np.uint32]:
        """Records of each slot up to its last one that is not all zeros."""
        map_ = place.map
        shape = (place.slots, map_.cap, map_.size)
        filled = np.asarray(self._records(number, place).reshape(shape).any(axis=2))
        last = map_.cap - np.argmax(filled[:, ::-1], axis=1)
        return np.where(filled.any(axis=1), last, 0).astype(np.uint32)


def _shape(grid: Dim3, block: Dim3) -> str:
    return " x ".join("x".join(map(str, size)) for size in (grid, block))
