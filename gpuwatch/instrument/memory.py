"""Whether a launch's maps are too big, and what would make them smaller."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwatch.errors import UserError
from gpuwatch.instrument.layout import COUNT_BYTES
from gpuwatch.instrument.model import MapLayout, MapPlace

DEFAULT_LIMIT = 1 << 30
"""Bytes that the maps of a launch may take together."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MOST_SAMPLED = 1 << 20
_LETTERS = {30: "G", 20: "M", 10: "k"}


def check_memory(layout: MapLayout, limit: int = DEFAULT_LIMIT) -> None:
    """Raises UserError when the buffers of a launch take more than `limit` bytes. It names the
    biggest map, and what sampling and reducing would make of it."""
    total = sum(layout.buffers)
    if total <= limit or not layout.places:
        return
    place = max(layout.places, key=lambda one: map_bytes(layout, one))
    ways = [*_ways(layout, place, total - limit), f"raise the limit: --map-limit {_flag(total)}"]
    map_, taken = place.map, shown(map_bytes(layout, place))
    raise UserError(
        f"the maps of this launch take {_exactly(total)}, the limit is "
        f"{shown(limit)}: map {map_.name} has {place.slots:,} slots and takes {taken}",
        hint="; or ".join(ways),
        at=map_.at,
    )


def map_bytes(layout: MapLayout, place: MapPlace) -> int:
    """Bytes of a map's records, counts and offsets."""
    numbers = [number for number in (place.records, place.counts, place.offsets) if number >= 0]
    return sum(layout.buffers[number] for number in numbers)


def shown(size: int) -> str:
    """Bytes in the unit that gives a number from 1 to 1024, with two decimals."""
    number, unit = float(size), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{size} bytes" if unit == 0 else f"{number:.2f} {_UNITS[unit]}"


def _exactly(size: int) -> str:
    return shown(size) if size < 1024 else f"{shown(size)} ({size:,} bytes)"


def _flag(size: int) -> str:
    """At least `size` bytes as the value of --map-limit."""
    unit = next((bits for bits in (30, 20) if size >> bits), 10)
    return f"{-(-size >> unit)}{_LETTERS[unit]}"


def _ways(layout: MapLayout, place: MapPlace, excess: int) -> Iterator[str]:
    size = map_bytes(layout, place)
    map_ = place.map
    if map_.level in ("thread", "warp", "block") and excess < size:
        factor = 2
        while size - size // factor < excess and factor < _MOST_SAMPLED:
            factor *= 2
        sample = map_.sample * factor
        unit = ', sample_unit="block"' if map_.level == "block" else ""
        yield f"sample={sample}{unit} in @probe takes about {shown(size // factor)} for this map"
    record = map_.size if map_.type != "hist" else map_.slot_bytes
    for level, slots in (
        ("warp", layout.warps),
        ("block", layout.blocks),
        ("kernel", 1),
    ):
        smaller = slots * (record + COUNT_BYTES)
        if size - smaller >= excess:
            yield f'type="reduce", level="{level}" takes {shown(smaller)}'
            if level != "kernel":
                yield f'level="kernel" {shown(record + COUNT_BYTES)}'
            break
