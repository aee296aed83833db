"""A launch as data, free of any device's addresses."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Relocation:
    """At byte `offset` of the parameter block stands the address of `buffer` plus `addend`."""

    offset: int
    buffer: int
    addend: int


@dataclass(frozen=True, slots=True)
class ParameterSlot:
    """One kernel parameter in the parameter block (offset and size in bytes)."""

    name: str
    type: str
    offset: int
    size: int


@dataclass(slots=True, eq=False)
class Launch:
    """One launch of one kernel.

    `parameters` is the packed parameter block, laid out by natural alignment as the PTX
    `.param` list says, with zeros where `relocations` put buffer addresses. `buffers` are the
    contents (uint8) of every device allocation at the time of the launch. `globals` holds
    module variables that the host set before the launch, by PTX name.
    """

    kernel: str
    """Mangled name."""
    grid: Dim3
    block: Dim3
    shared_bytes: int
    """Dynamic shared memory."""
    slots: tuple[ParameterSlot, ...]
    parameters: bytes
    relocations: tuple[Relocation, ...]
    buffers: list[NDArray[np.uint8]]
    globals: dict[str, bytes] = field(default_factory=dict)
    index: int = 0
    """Which launch of the program this was, from 0."""
    cooperative: bool = False
    """Whether all blocks must be resident at once, so that they can wait for each other."""
    cluster: Dim3 | None = None
    """Blocks per cluster where the launch asked for clusters."""

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        return -(-self.threads_per_block // 32)

    @property
    def warps(self) -> int:
        return self.blocks * self.warps_per_block


@dataclass(frozen=True, slots=True)
class DeviceAnswers:
    """What a captured program is told about the device it asks for."""

    name: str
    sm_count: int
    threads_per_sm: int
    warp_size: int = 32
    threads_per_block: int = 1024
    shared_per_block: int = 49152
    shared_per_sm: int = 102400
    registers_per_sm: int = 65536
    compute_major: int = 8
    compute_minor: int = 6
    memory_bytes: int = 24 << 30
    clock_khz: int = 1695000


@dataclass(frozen=True, slots=True)
class Capture:
    """Every launch of a program's run: `counts` by mangled kernel name, contents kept for the
    first launch of each kernel, output and exit status of the program."""

    launches: tuple[Launch, ...]
    counts: dict[str, int]
    output: str
    status: int
