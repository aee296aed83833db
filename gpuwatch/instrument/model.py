"""What weaving gives: the probed PTX, and where its maps lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuwatch.probe.model import Map

Dim3 = tuple[int, int, int]
"""x, y, z."""


@dataclass(frozen=True, slots=True)
class Site:
    """One place where probe code was woven in."""

    index: int
    probe: str
    opcode: str
    ptx_line: int
    source_line: int
    function: str = ""
    """The device function that it lies in; "" in the kernel itself."""
    before: bool = True
    source_file: str = ""
    """The file that `source_line` is in; "" for the kernel's own, in which a line counts as the
    innermost one that the code was inlined into."""

    mix: tuple[tuple[str, int], ...] = ()
    """Of a basic block: how many instructions of each class it has, and under "flop" how many
    floating-point operations a thread makes in it (`gpuwatch.ptx.classes`)."""
    lines: tuple[tuple[int, str, int], ...] = ()
    """The same by source line: (line, class, number); line 0 where that is not known."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Places in a called function that a probe means but cannot run at: it shares registers with
    probes at other places, and a function has registers of its own."""

    probe: str
    function: str
    sites: int


@dataclass(frozen=True, slots=True)
class Woven:
    """`text` is the probed module.

    `pointer_variable` names an array of u64, the kernel's last parameter with `takes_pointers`,
    else a module variable: the host fills it, before the launch, with the device address of each
    buffer of `MapLayout.buffers`, in order. Buffers must be zero at launch, but for those in
    `MapLayout.fixed`.
    """

    text: str
    entry: str
    pointer_variable: str
    maps: tuple[Map, ...]
    sites: tuple[Site, ...]
    inserted_lines: tuple[int, ...]
    """Line numbers (from 1) of `text` that the weaver added."""
    notes: tuple[str, ...] = ()
    """What the user should know of this weaving: code that no probe could reach, ..."""
    block_private_prefix: str = ""
    """Prefix of the woven registers when all maps have slots of one block each; else ""."""
    counts_departures: bool = False
    """Whether the last buffer counts, in a u32 per warp, the lanes that have ended."""
    takes_pointers: bool = False
    left_out: tuple[LeftOut, ...] = ()
    marks: Mapping[str, int] = field(default_factory=dict)
    """Maps whose counts are not kept: byte offset, in a record as it is stored, of the u64 that is
    0 only in a slot without a record."""
    stored: Mapping[str, Map] = field(default_factory=dict)
    """Maps whose records the kernel stores in another form; see `MapPlace.stored`."""


@dataclass(frozen=True, slots=True)
class MapPlace:
    """Where one map lies: its records in buffer `records`, a u32 save counter per slot in
    buffer `counts`, which stops at 2^31 (of maps that reduce or count: whether there was a
    save). Record k of slot s starts at byte `s * stored.slot_bytes + k * stored.size`."""

    map: Map
    slots: int
    divisor: int
    """Threads per slot: 1 for thread level, 32 for warp level, all of a block for block level."""
    records: int
    counts: int
    offsets: int = -1
    """Buffer of a dynamic map with the index of each slot's first record, u64, and one more that
    ends the last slot; -1 for a map with as many records in every slot."""
    sample: int = 1
    """A record stands for one in so many of the launch's warps or blocks: totals of what was
    saved are to be taken so many times. `index_of` tells what a slot stands for."""
    mark: int = -1
    """Where counts are not kept, their buffer is empty: byte offset, in a record, of the u64 that
    is 0 only where none arrived; -1 where they are."""
    absent: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), compare=False)
    """Slots that no thread of the launch has, so that nothing is missing in them."""
    packed: Map | None = None
    """The map in the form that the buffer has, where that is another one: fields that it lacks
    hold the number of their slot, the others may be narrower."""

    @property
    def stored(self) -> Map:
        """The map in the form that the buffer has."""
        return self.packed or self.map


@dataclass(frozen=True, slots=True)
class MapLayout:
    """`buffers` are the sizes in bytes, in the order of the pointer variable."""

    places: tuple[MapPlace, ...]
    buffers: tuple[int, ...]
    blocks: int
    warps_per_block: int
    fixed: dict[int, NDArray[np.uint8]] = field(default_factory=dict)
    """Contents of the buffers that the kernel only reads."""
    threads_per_block: int = 0

    @property
    def warps(self) -> int:
        return self.blocks * self.warps_per_block
