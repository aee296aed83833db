"""The binary form of one launch's maps: how it is written. README.md describes it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gpuwatch.instrument.model import Dim3, MapLayout, MapPlace
from gpuwatch.trace.decode import folding
from gpuwatch.trace.facts import LaunchFacts

HEADER = struct.Struct("<8i")
"""Grid x y z, block x y z, dynamic shared bytes, number of maps."""
SECTION = struct.Struct("<IIQ")
"""Bytes per slot, threads per slot, offset of the first slot."""
EXTENSION = struct.Struct("<8sQ")
"""Magic and bytes of the JSON text behind it, which tells what the sections cannot."""
MAGIC = b"gpuwatch"
VERSION = 1
ALIGN = 16

ReadMap = Callable[[int], NDArray[np.uint8]]
"""Bytes of a map buffer by its number."""


def divisor_of(place: MapPlace) -> int:
    """Threads per slot as the section says it; 0 where slots do not follow from grid and block:
    in maps per SM, site or kernel, in thinned ones and in those of dynamic capacity."""
    return 0 if place.map.dynamic or place.map.thinned else place.divisor


def write_result(
    file: BinaryIO,
    grid: Dim3,
    block: Dim3,
    shared_bytes: int,
    layout: MapLayout,
    read_map: ReadMap,
    facts: LaunchFacts,
) -> None:
    """Writes one launch: header, sections, extension, then every map's slots.

    The slots come last, those of the last map up to the end of the file, so that a reader which
    knows only header and sections reads on from a section's offset.
    """
    places = layout.places
    read_map = folding(places, read_map)
    start = HEADER.size + SECTION.size * len(places) + EXTENSION.size
    side = [_side_data(layout, place, read_map) for place in places]
    text, arrays = _extension(start, places, side, facts)
    end = start + len(text) + sum(_padded(len(array)) for array in arrays)
    sections, at = [], _padded(end)
    for place in places:
        size = place.map.size if place.map.dynamic else place.map.slot_bytes
        sections.append(SECTION.pack(size, divisor_of(place), at))
        at += _padded(_used(layout, place))
    file.write(HEADER.pack(*grid, *block, shared_bytes, len(places)))
    file.write(b"".join(sections))
    file.write(EXTENSION.pack(MAGIC, len(text)))
    file.write(text)
    for array in arrays:
        _write_padded(file, array)
    file.write(bytes(_padded(end) - end))
    for number, place in enumerate(places):
        slots = read_map(place.records)[: _used(layout, place)]
        last = number == len(places) - 1
        file.write(slots.data) if last else _write_padded(file, slots)


def _used(layout: MapLayout, place: MapPlace) -> int:
    """Bytes of the map's records."""
    if place.map.dynamic:
        return int(layout.fixed[place.offsets].view(np.uint64)[-1]) * place.map.size
    return place.slots * place.map.slot_bytes


def _side_data(
    layout: MapLayout, place: MapPlace, read_map: ReadMap
) -> tuple[NDArray[np.uint32], NDArray[np.uint64] | None]:
    """Save counts and, of a dynamic map, its offsets."""
    counts = read_map(place.counts).view(np.uint32)
    offsets = layout.fixed.get(place.offsets)
    return counts, None if offsets is None else offsets.view(np.uint64)


def _extension(
    start: int,
    places: Sequence[MapPlace],
    side: Sequence[tuple[NDArray[np.uint32], NDArray[np.uint64] | None]],
    facts: LaunchFacts,
) -> tuple[bytes, list[bytes]]:
    """The JSON text, a multiple of ALIGN long, and the arrays behind it that it points to.

    Where the arrays lie depends on how long the text is, so it is padded to a length that holds
    it with the widest offsets."""
    room = _padded(len(_json(places, side, facts, 1 << 62)[0]) + start) - start
    text, arrays = _json(places, side, facts, start + room)
    return text.ljust(room), arrays


def _json(
    places: Sequence[MapPlace],
    side: Sequence[tuple[NDArray[np.uint32], NDArray[np.uint64] | None]],
    facts: LaunchFacts,
    at: int,
) -> tuple[bytes, list[bytes]]:
    maps: list[dict[str, Any]] = []
    arrays: list[bytes] = []
    for place, (counts, offsets) in zip(places, side, strict=True):
        entry: dict[str, Any] = {"name": place.map.name, "slots": place.slots}
        if len(counts) and (counts == counts[0]).all():
            entry["count"] = int(counts[0])
        else:
            entry["counts_at"] = at
            arrays.append(counts.astype("<u4").tobytes())
            at += _padded(len(arrays[-1]))
        if offsets is not None:
            entry["offsets_at"] = at
            arrays.append(offsets.astype("<u8").tobytes())
            at += _padded(len(arrays[-1]))
        maps.append(entry)
    values = {"version": VERSION, **asdict(facts), "maps": maps}
    return json.dumps(values).encode(), arrays


def _padded(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def _write_padded(file: BinaryIO, content: bytes | NDArray[np.uint8]) -> None:
    file.write(content if isinstance(content, bytes) else content.data)
    file.write(bytes(_padded(len(content)) - len(content)))
