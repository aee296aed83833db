"""A probe woven for a kernel that a running program launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import DeviceInfo
from gpuwatch.engine.readings import MapReader
from gpuwatch.engine.residency import resident
from gpuwatch.errors import UserError
from gpuwatch.inject.protocol import MOST_CONSTANTS, DeviceWords, Shape
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.memory import check_memory
from gpuwatch.instrument.model import MapLayout, Woven
from gpuwatch.instrument.unmatched import UnmatchedError
from gpuwatch.launch import Launch
from gpuwatch.probe.model import Program
from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Module
from gpuwatch.ptx.placed import constant_variables, place_variables, unplaceable
from gpuwatch.toolchain import Assembled, Toolchain, assemble

_ALIGNED = 256
"""Each buffer of a slot begins at a multiple of so many bytes."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a probed build is for: a kernel of a module, launched in one shape on one GPU.

    `addresses` are where the program's own module has its variables, by name; `brief` as in
    `weave`; `counts` are those of an earlier launch, for maps of dynamic capacity.
    """

    module: Module
    target: str
    """What to assemble for."""
    entry: str
    shape: Shape
    info: DeviceInfo
    device: DeviceWords
    program: Program
    addresses: Mapping[str, int]
    brief: bool = False
    counts: Mapping[str, NDArray[np.uint32]] | None = None


@dataclass(slots=True)
class AttachedBuild:
    """A probed build and what its records are read by."""

    wanted: Wanted
    woven: Woven
    assembled: Assembled
    plain: Assembled
    layout: MapLayout
    reader: MapReader
    constants: tuple[str, ...]
    held: int = 0
    """Bytes that its maps take on the GPU, of all launches under way."""
    counted: bool = False
    """Whether it was dropped, what its maps need being counted."""
    observed: int = 0
    """Launches whose records were read."""
    row: int = 0
    """Of the process's table: that of its shape."""
    seconds: float = 0.0
    """Of the launch whose records were read last."""
    resident_plain: int = 0
    resident_probed: int = 0

    @property
    def counting(self) -> bool:
        """Whether its maps of dynamic capacity have no room yet: a launch only counts."""
        dynamic = any(place.map.dynamic for place in self.layout.places)
        return dynamic and self.wanted.counts is None

    def counts(self, slot: SlotBytes) -> dict[str, NDArray[np.uint32]]:
        """What a launch counted for each map of dynamic capacity."""
        return {
            place.map.name: slot.read_map(place.counts).view(np.uint32).copy()
            for place in self.layout.places
            if place.map.dynamic
        }


def slot_bytes(sizes: Sequence[int]) -> int:
    """Bytes of a slot whose buffers have these sizes."""
    return max(_ALIGNED, sum(map(_aligned, sizes)))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


class SlotBytes:
    """The map buffers of one launch, one behind the other; a `MapSource`."""

    def __init__(self, content: NDArray[np.uint8], sizes: Sequence[int]) -> None:
        starts = np.cumsum([0, *map(_aligned, sizes)])
        self._parts = [
            content[start : start + size]
            for start, size in zip(starts[:-1].tolist(), sizes, strict=True)
        ]

    def read_map(self, index: int) -> NDArray[np.uint8]:
        """Bytes of map buffer `index`."""
        return self._parts[index]


def build_attached(wanted: Wanted, toolchain: Toolchain, map_limit: int) -> AttachedBuild:
    """Weaves and assembles. Raises UserError when the probe cannot attach: no place for it, a
    refusal of ptxas, maps of more than `map_limit` bytes, textures that another module cannot
    have."""
    entry, shape = wanted.entry, wanted.shape
    _refuse(wanted.module, entry)
    module = wanted.module
    if wanted.addresses:
        module = parse(place_variables(module, entry, wanted.addresses), module.source)
    plain = assemble(toolchain, wanted.module.text, wanted.target, entry)
    woven, assembled = _woven(wanted, module, toolchain, plain)
    layout = lay_out(
        woven, shape.grid, shape.block, sm_count=wanted.info.sm_count, counts=wanted.counts
    )
    check_memory(layout, map_limit)
    launch = Launch(entry, shape.grid, shape.block, shape.dynamic_shared, (), b"", (), [])
    reader = MapReader(wanted.program, layout, woven.sites, launch, wanted.info)
    constants = constant_variables(wanted.module, entry)
    return AttachedBuild(wanted, woven, assembled, plain, layout, reader, constants)


def _woven(
    wanted: Wanted, module: Module, toolchain: Toolchain, plain: Assembled
) -> tuple[Woven, Assembled]:
    """With as many blocks on an SM as the plain kernel has, if ptxas can do with so few registers
    without spilling more."""
    woven = _weave(wanted, module)
    assembled = assemble(toolchain, woven.text, wanted.target, woven.entry)
    most = _resident(wanted, plain)
    if not most or (_resident(wanted, assembled) or 0) >= most:
        return woven, assembled
    bounded = _weave(wanted, module, most)
    again = assemble(toolchain, bounded.text, wanted.target, bounded.entry)
    if again.spill_store_bytes > plain.spill_store_bytes:
        return woven, assembled
    return bounded, again


def _resident(wanted: Wanted, assembled: Assembled) -> int | None:
    bx, by, bz = wanted.shape.block
    shared = assembled.shared_bytes + wanted.shape.dynamic_shared
    return resident(wanted.device, bx * by * bz, assembled.registers, shared)


def _weave(wanted: Wanted, module: Module, residents: int = 0) -> Woven:
    shape = wanted.shape.grid, wanted.shape.block
    try:
        return weave(
            module, wanted.entry, wanted.program, shape, residents=residents, brief=wanted.brief
        )
    except UnmatchedError as missing:
        raise UserError(
            f"{wanted.entry} has no {missing.wanted}", hint=missing.hint, at=missing.at
        ) from missing


def _refuse(module: Module, entry: str) -> None:
    unknown = unplaceable(module, entry)
    if unknown:
        raise UserError(
            f"{entry} uses the texture or surface reference {unknown[0]}, which only the "
            "program's own module has",
            hint="texture objects, which are parameters, can be probed",
        )
    if len(constant_variables(module, entry)) > MOST_CONSTANTS:
        raise UserError(
            f"{entry} uses more than {MOST_CONSTANTS} variables in constant memory",
            hint="watch another kernel of the program",
        )
