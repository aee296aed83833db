"""A launch as data, free of any device's addresses."""

from __future__ import annotations

from collections.abc import Sequence
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
class SymbolRelocation:
    """At byte `offset` of the parameter block stands the address of the module variable of this
    PTX name plus `addend`."""

    offset: int
    variable: str
    addend: int


@dataclass(frozen=True, slots=True, eq=False)
class Pointers:
    """Addresses of buffers inside a piece of memory, as arrays (int64) of one length.

    At byte `offsets[i]`, a multiple of 8, stands the address of buffer `buffers[i]` plus
    `addends[i]`.
    """

    offsets: NDArray[np.int64]
    buffers: NDArray[np.int64]
    addends: NDArray[np.int64]

    def written(self, content: NDArray[np.uint8], addresses: Sequence[int]) -> NDArray[np.uint8]:
        """A copy of `content` with the addresses in it."""
        copy = content.copy()
        self.write(copy, addresses)
        return copy

    def write(self, memory: NDArray[np.uint8], addresses: Sequence[int]) -> None:
        """Puts the addresses into `memory`, which starts at a multiple of 8; `addresses` are
        those of the launch's buffers."""
        places = np.array(addresses, np.uint64)[self.buffers] + self.addends.astype(np.uint64)
        words = memory[: memory.size // 8 * 8].view(np.uint64)
        words[self.offsets // 8] = places


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
    contents (uint8), at the time of the launch, of every device allocation that the kernel can
    reach: from a parameter, a variable or another such buffer. `globals` holds module variables
    that the host set before the launch, by PTX name. Where contents hold addresses of buffers
    they are zero, and `buffer_relocations` (by buffer) and `global_relocations` (by PTX name)
    say which address belongs there.
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
    """Blocks per cluster where the launch asked for clusters or the kernel was compiled for one."""
    buffer_relocations: dict[int, Pointers] = field(default_factory=dict)
    global_relocations: dict[str, Pointers] = field(default_factory=dict)
    symbol_relocations: tuple[SymbolRelocation, ...] = ()
    """Parameters that hold the address of a module variable (`cudaGetSymbolAddress`)."""

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
    blocks_per_sm: int = 0
    """Most resident blocks; 0 for what the compute capability allows."""


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One launch as listed: what was asked for, without contents. `kernel` is the mangled name;
    `error` is "" or why there was no launch, like "cudaErrorInvalidConfiguration, block 2048
    threads > 1024"."""

    index: int
    kernel: str
    grid: Dim3
    block: Dim3
    shared_bytes: int
    cooperative: bool = False
    cluster: Dim3 | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Capture:
    """Every launch of a program's run.

    `launches` have contents: the first of each kernel, or, for its kernel, the one that was asked
    for. `counts` are successful launches by mangled kernel name; `output` and `status` (exit
    status, negative for a signal) are the program's. `listed` are the launches in order, failed
    ones too, up to the 65,536th; `total` counts all. `refused_calls` names the runtime functions
    that the program called in vain, each once. `timed_out` when the time limit ended it.
    """

    launches: tuple[Launch, ...]
    counts: dict[str, int]
    output: str
    status: int
    listed: tuple[LaunchRecord, ...] = ()
    total: int = 0
    refused_calls: tuple[str, ...] = ()
    timed_out: bool = False

    def failure(self, kernel: str) -> LaunchRecord | None:
        """The first launch of `kernel` that failed."""
        return next((one for one in self.listed if one.kernel == kernel and one.error), None)
