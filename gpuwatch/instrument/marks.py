"""Fields by which a record shows that it arrived, so that no count of it needs to be kept."""

from __future__ import annotations

from collections.abc import Collection

from gpuwatch.instrument.clocks import CLOCK, entry_clocks
from gpuwatch.instrument.layout import field_offsets
from gpuwatch.probe.model import Expression, Map, Program, Read, Save
from gpuwatch.probe.walk import saves


def marks(program: Program, saved_once: Collection[str]) -> dict[str, int]:
    """Of the maps in `saved_once` that keep a single record in a slot: byte offset of a u64 in
    it that is a reading of the SM's clock, which is never 0. Buffers are, before a launch."""
    registers = entry_clocks(program)
    found = {}
    for map_ in program.maps:
        if map_.name not in saved_once or map_.type != "array" or map_.cap != 1 or map_.dynamic:
            continue
        (save,) = (
            one for probe in program.probes for one in saves(probe.body) if one.map == map_.name
        )
        offset = _mark(map_, save, registers)
        if offset is not None:
            found[map_.name] = offset
    return found


def _mark(map_: Map, save: Save, registers: Collection[str]) -> int | None:
    if map_.size % 8:
        return None
    places = zip(map_.fields, field_offsets(map_), save.values, strict=False)
    for field, offset, value in places:
        if field.type == "u64" and _is_clock(value, registers):
            return offset
    return None


def _is_clock(value: Expression, registers: Collection[str]) -> bool:
    return value == CLOCK or (isinstance(value, Read) and value.register in registers)
