"""What a trace says of a recorded kernel, apart from its records."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuwatch.instrument.model import Dim3, Site
from gpuwatch.probe.model import Map


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The device that the launches ran on; `modelled` when its cycles are a model's."""

    name: str
    kind: str
    profile: str
    arch: str
    sm_count: int
    warps_per_sm: int
    clock_hz: float
    modelled: bool


UNKNOWN_DEVICE = DeviceFacts("unknown device", "cuda", "", "", 0, 0, 0.0, False)
"""Of a trace that does not say."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was known of the kernel when it was recorded; 0 and None where a trace does not say.

    Seconds are kernel times (median), `spills` bytes of spill stores, `resident` blocks per SM.
    """

    registers_plain: int = 0
    registers_probed: int = 0
    spills_plain: int = 0
    spills_probed: int = 0
    resident_plain: int = 0
    resident_probed: int = 0
    shared_bytes: int = 0
    """Static and dynamic shared memory of a block."""
    seconds_plain: float = 0.0
    seconds_probed: float = 0.0
    outputs_identical: bool | None = None


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One recorded kernel: its shape, the probe's maps and where the probe was woven in.

    `always` names the maps in which every slot gets a record; `folder` is the kernel's own in
    the trace ("" in a trace of other tools with several).
    """

    name: str
    """Demangled."""
    mangled: str
    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int
    probe: str
    maps: tuple[Map, ...]
    title: str = ""
    always: frozenset[str] = frozenset()
    sites: tuple[Site, ...] = ()
    device: DeviceFacts = UNKNOWN_DEVICE
    figures: Figures = field(default_factory=Figures)
    notes: tuple[str, ...] = ()
    folder: str = ""


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """What a result file says of its launch. `number` counts the recorded launches from 0;
    `thread_instructions` and `printed` where the device tells them; `modelled` where times and
    cycles are a model's."""

    kernel: str = ""
    """Name of the kernel's folder."""
    number: int = 0
    kernel_seconds: float = 0.0
    thread_instructions: int | None = None
    printed: str = ""
    modelled: bool = False
