"""Records of half the size where half of one follows from the rest.

What a record holds is told by its map; on the device a warp's record may leave out its warp ID,
which is the slot's number, and hold in 32 bits what is known to fit. Over the 25 kernels of
tests/benchmarks on an H200, two stores of 16 bytes took 2.2 to 2.7 % of the time, one 1.2 to 1.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpuwatch.instrument.clocks import CLOCK, entry_clocks
from gpuwatch.probe.language import KERNEL, record_bytes
from gpuwatch.probe.model import (
    Action,
    Assign,
    Binary,
    Expression,
    Helper,
    Map,
    Probe,
    Program,
    Read,
)
from gpuwatch.probe.walk import flat, saves

_SLOT = Helper("warpid")
_WIDE = ("u64", "s64")
_READ_BY_NAME = frozenset({"start", "elapsed", "cuid", "smid", "sm"})
"""Fields that figures are made of on the device: it must have them."""
_OF_32_BITS = frozenset({Helper("smid"), Helper("cuid"), Helper("laneid")})


@dataclass(frozen=True, slots=True)
class Packed:
    """The program as it is woven; `stored` are, by name, the maps whose records the device keeps
    in another form than the program has them."""

    program: Program
    stored: Mapping[str, Map]


def pack(program: Program) -> Packed:
    """For a launch in which no thread runs for 2^32 cycles."""
    stored, probes = {}, list(program.probes)
    for map_ in program.maps:
        for number, probe in enumerate(probes):
            packed = _packed(program, map_, probe)
            if packed is not None:
                stored[map_.name], probes[number] = packed
    maps = tuple(stored.get(map_.name, map_) for map_ in program.maps)
    return Packed(replace(program, maps=maps, probes=tuple(probes)), stored)


def _packed(program: Program, map_: Map, probe: Probe) -> tuple[Map, Probe] | None:
    """The map and the only probe that saves to it, if every warp saves one record as it ends and
    packing makes it smaller."""
    plain = map_.type == "array" and map_.level == "warp" and map_.cap == 1 and not map_.dynamic
    at_end = probe.position == KERNEL and probe.level == "warp" and not probe.before
    savers = [
        action for one in program.probes for action in saves(one.body) if action.map == map_.name
    ]
    if not (plain and at_end and probe.sample == 1) or len(savers) != 1:
        return None
    (save,) = savers
    if save not in probe.body:
        return None
    before = probe.body[: probe.body.index(save)]
    short = frozenset(_short(program, before))
    kept = [
        (replace(field, type="u32") if field.type in _WIDE and value in short else field, value)
        for field, value in zip(map_.fields, save.values, strict=True)
        if value != _SLOT or field.type not in _WIDE or field.name in _READ_BY_NAME
    ]
    fields = tuple(field for field, _ in kept)
    size = 1 << max(2, (record_bytes(fields) - 1).bit_length())
    if size >= map_.size or not fields:
        return None
    values = tuple(value for _, value in kept)
    body: tuple[Action, ...] = tuple(
        replace(one, values=values) if one is save else one for one in probe.body
    )
    return replace(map_, size=size, fields=fields), replace(probe, body=body)


def _short(program: Program, before: Sequence[Action]) -> Iterator[Expression]:
    """Values, none of them negative, of which 32 bits tell everything in a save behind `before`."""
    yield from _OF_32_BITS
    starts = entry_clocks(program)
    spans = [Binary("-", CLOCK, Read(name)) for name in starts]
    yield from spans
    wide = {register.name for register in program.registers if register.type in _WIDE}
    assigned = [
        action.target
        for one in program.probes
        for action in flat(one.body)
        if isinstance(action, Assign)
    ]
    for action in before:
        if not isinstance(action, Assign) or action.value not in spans:
            continue
        if action.target in wide and assigned.count(action.target) == 1:
            yield Read(action.target)
