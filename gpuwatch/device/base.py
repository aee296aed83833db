"""What every device can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwatch.launch.model import DeviceAnswers, Launch


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """`kind` "sim" has modelled cycles; `clock_hz` is the SM clock; `arch` is like "sm_86"."""

    name: str
    kind: Literal["sim", "cuda", "replay"]
    profile: str
    arch: str
    sm_count: int
    warps_per_sm: int
    clock_hz: float
    modelled: bool


@dataclass(frozen=True, slots=True)
class KernelImage:
    """A kernel ready to load. The simulator executes `ptx`, CUDA loads `cubin`.

    `registers` (per thread) and `shared_bytes` (static) are what ptxas reported.
    `pointer_variable` names the module's u64 array that receives the map addresses, or is ""
    for a plain kernel.
    """

    entry: str
    ptx: str
    cubin: bytes
    registers: int
    shared_bytes: int
    pointer_variable: str = ""
    block_private_prefix: str = ""
    """Registers with this prefix address, in atomics, words that one block alone touches, so
    the order of blocks cannot show in them; "" when there are none."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """`kernel_seconds` is measured on CUDA and modelled on the simulator."""

    kernel_seconds: float
    thread_instructions: int | None = None
    output: str = ""
    """What the kernel printed, where the device gathers it (the simulator)."""


class LoadedKernel(Protocol):
    """A kernel bound to one launch and to map buffers of its own."""

    @property
    def resident_blocks(self) -> int:
        """Blocks that fit on one SM at a time."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What cannot be exact on this device, for the header; empty when all is."""

    def run(self) -> RunResult:
        """Launches once: buffers from the launch's own contents, maps zeroed; waits.

        Raises UserError (status 1) on a fault of the kernel.
        """

    def read_map(self, index: int) -> NDArray[np.uint8]:
        """Bytes of map buffer `index` after the last run; valid until the next run."""

    def read_buffers(self) -> list[NDArray[np.uint8]]:
        """Contents of the launch's buffers after the last run (copies)."""

    def close(self) -> None: ...


class Device(Protocol):
    @property
    def info(self) -> DeviceInfo: ...

    @property
    def answers(self) -> DeviceAnswers:
        """What a captured program is told when it asks for the device."""

    def load(
        self,
        image: KernelImage,
        launch: Launch,
        map_buffers: Sequence[int],
        fixed: Mapping[int, NDArray[np.uint8]] | None = None,
    ) -> LoadedKernel:
        """Prepares `image` for `launch` with map buffers of these sizes in bytes.

        A launch finds them zeroed, but for those in `fixed`, which hold these bytes and which
        the kernel only reads.
        """

    def close(self) -> None: ...
