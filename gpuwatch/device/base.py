"""What every device can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    `pointer_variable` names the u64 array that receives the map addresses, the kernel's last
    parameter or a variable of the module, or is "" for a plain kernel.
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
    takes_pointers: bool = False
    """Whether the map addresses are a parameter."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """`kernel_seconds` is measured on CUDA and modelled on the simulator."""

    kernel_seconds: float
    thread_instructions: int | None = None
    output: str = ""
    """What the kernel printed, where the device gathers it (the simulator)."""


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """Byte offset of a field in its record, and its bytes: 4 or 8, unsigned."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """Which records a GPU sums up by itself after every launch: those of one map.

    `records`, `counts` and `offsets` (-1 for none) are map buffers. `mark` is as in `MapPlace`.
    `start`, `elapsed` and `sm` are None where the records have no such field.
    """

    records: int
    counts: int
    offsets: int
    slots: int
    size: int
    capacity: int
    mark: int
    start: FieldPlace | None
    elapsed: FieldPlace | None
    sm: FieldPlace | None


@dataclass(slots=True)
class Reduced:
    """Sums over `launches` launches, made on the device; cycles are those of each SM's clock.

    `histogram` counts elapsed cycles in 1024 buckets: below 16 one for each value, above 16 to
    the octave. `sm_sum`, `sm_span`, `sm_records` and `sm_launches` are per SM: its records'
    elapsed cycles, its spans from first start to last end, its records, and the launches in
    which it had any.
    """

    launches: int
    records: int
    missing: int
    dropped: int
    elapsed_sum: int
    elapsed_min: int
    elapsed_max: int
    histogram: NDArray[np.int64]
    sm_sum: NDArray[np.int64]
    sm_span: NDArray[np.int64]
    sm_records: NDArray[np.int64]
    sm_launches: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Launches of a pipeline that have ended since the last batch.

    `probed` and `plain` are seconds of those that were timed. `fresh` says whether `read_map`
    now gives another launch's records.
    """

    launches: int
    probed: tuple[float, ...]
    plain: tuple[float, ...]
    fresh: bool


class Pipeline(Protocol):
    """Launches one after the other without waiting; each is reduced on the device."""

    def advance(self, until: float) -> Batch:
        """Launches until `time.monotonic()` reaches `until` and the newest records are there.

        Raises UserError (status 1) on a fault of the kernel, or when a launch does not end.
        """

    def reduced(self) -> Reduced:
        """The sums since the last reset, up to the launch whose records were copied last."""

    def reset(self) -> None:
        """Sums begin at zero again."""

    def settle(self) -> None:
        """Waits until every launch has ended, before other kernels use the same buffers."""

    def read_map(self, index: int) -> NDArray[np.uint8]:
        """Bytes of map buffer `index` of the launch last copied; valid until the next batch."""

    def close(self) -> None: ...


Interrupt = Callable[[], bool]


def never() -> bool:
    """An `Interrupt` that lets launches run to their end."""
    return False


class GaveWay(Exception):  # noqa: N818 - nothing is wrong
    """A launch was ended early, as asked; what it left is of no use."""


class LoadedKernel(Protocol):
    """A kernel bound to one launch and to map buffers of its own."""

    @property
    def resident_blocks(self) -> int:
        """Blocks that fit on one SM at a time."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What cannot be exact on this device, for the header; empty when all is."""

    def ready(self) -> None:
        """Does what the first launch would else have to do before it starts."""

    def run(self, interrupt: Interrupt = never, /) -> RunResult:
        """Launches once: buffers from the launch's own contents, maps zeroed; waits.

        Raises UserError (status 1) on a fault of the kernel, and GaveWay as soon as `interrupt`,
        which is asked while the launch runs, says so; a device that cannot end a launch runs it
        to its end.
        """

    def read_map(self, index: int) -> NDArray[np.uint8]:
        """Bytes of map buffer `index` after the last run; valid until the next run."""

    def read_buffers(self) -> list[NDArray[np.uint8]]:
        """Contents of the launch's buffers after the last run (copies)."""

    def read_variables(self) -> dict[str, NDArray[np.uint8]]:
        """Contents of the module's own global variables after the last run (copies), by name.
        A variable that the kernel never reads may be left out."""

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

    def pipeline(
        self,
        probed: LoadedKernel,
        plain: LoadedKernel,
        reduction: Reduction,
        cubin: bytes,
        seconds: float,
        *,
        plain_every: int,
        max_rate: float,
    ) -> Pipeline | None:
        """Launches `probed` back to back, reducing each launch on the device, with one plain
        launch in `plain_every`; None where a device is launched one by one.

        `cubin` is the compiled reduction kernel of a GPU; a launch takes about
        `seconds`; `max_rate` is in launches a second, 0 for no limit.
        """

    def close(self) -> None: ...
