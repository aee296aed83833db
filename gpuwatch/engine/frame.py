"""A Frame: everything that a screen or a report shows of the newest launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from gpuwatch.analysis.maps import MapFigures
from gpuwatch.analysis.occupancy import SmColumns
from gpuwatch.analysis.spread import Spread as Spread
from gpuwatch.analysis.time_axis import TimeAxis as TimeAxis
from gpuwatch.analysis.warps import WarpColumns
from gpuwatch.device.base import DeviceInfo
from gpuwatch.device.base import Reduced as Reduced
from gpuwatch.engine.marked_lines import MarkedLine as MarkedLine
from gpuwatch.errors import UserError
from gpuwatch.launch import LaunchForm as LaunchForm
from gpuwatch.launch.model import Dim3 as Dim3


@dataclass(frozen=True, slots=True)
class Attached:
    """A kernel of a running program since the probe was attached: launches that were seen, those
    with the probe, and those without it."""

    process: int
    seen: int
    probed: int
    skipped: int


@dataclass(slots=True)
class Frame:
    """`serial` grows by one a frame. `warps_table` and `sms` are None when the probe records
    no start/elapsed (or no SM). Seconds are modelled when `device.modelled`."""

    serial: int
    kernel: str
    """Demangled."""
    mangled: str
    probe: str
    device: DeviceInfo
    grid: Dim3
    block: Dim3
    shared_bytes: int
    launches: int
    launches_per_second: float
    blocks: int
    warps: int
    records: int
    missing: int
    dropped: int
    outputs_identical: bool | None
    """Probed against plain, bit for bit; None until compared."""
    registers_plain: int
    registers_probed: int
    seconds_plain: float
    """Kernel time of the plain build, median."""
    seconds_probed: float
    wall_seconds_per_launch: float
    resident_blocks: int
    running_cycles_mean: float | None
    idle_cycles_mean: float | None
    elapsed: Spread | None
    warps_table: WarpColumns | None
    sms: SmColumns | None
    ratio_spread: float | None = None
    """Half the interquartile range of probed over plain, of launches made in turn."""
    spills_plain: int = 0
    """Bytes of spill stores."""
    spills_probed: int = 0
    resident_plain: int = 0
    """Resident blocks per SM of the plain build."""
    reduced: Reduced | None = None
    """Sums over every launch since the last reset, where the device makes them."""
    maps: tuple[MapFigures, ...] = ()
    """Every map of the probe."""
    thread_instructions: int | None = None
    time_axis: TimeAxis | None = None
    """Where the SMs' clocks lie on one axis, if that is known of all that ran a warp."""
    notes: tuple[str, ...] = ()
    printed: str = ""
    """What the newest launch printed, where the device gathers it."""
    source: str = ""
    """Path of the source that it was compiled from."""
    build: int = 0
    """Grows by one whenever another source, or another text of it, is watched."""
    recorded: tuple[int, int] | None = None
    """Of a recorded launch its place, from 1, and how many there are."""
    marked: tuple[MarkedLine, ...] = ()
    """Lines whose accesses ptxas has changed, in a report."""
    attached: Attached | None = None
    """Of a kernel that a running program launches; its outputs are compared with nothing."""

    @property
    def launch(self) -> int:
        """Which launch this is of."""
        return self.launches if self.recorded is None else self.recorded[0]

    @property
    def ratio(self) -> float | None:
        """Probed kernel time over plain; None where a trace does not say."""
        return self.seconds_probed / self.seconds_plain if self.seconds_plain > 0 else None

    @property
    def tasks(self) -> int:
        """Warps, or their records where one may leave several."""
        return self.warps if self.warps_table is None else len(self.warps_table)


@dataclass(frozen=True, slots=True)
class LaunchChoice:
    """Launches of one kernel and one shape: the index of the first, and how many there were."""

    index: int
    grid: Dim3
    block: Dim3
    shared_bytes: int
    times: int


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A kernel of the source, for the picker; grid is None when the program never launched it."""

    mangled: str
    demangled: str
    parameters: tuple[str, ...]
    grid: Dim3 | None
    block: Dim3 | None
    launches: int
    shapes: tuple[LaunchChoice, ...] = ()
    """The shapes in which the program launched it, in order of the first."""
    form: LaunchForm | None = None
    """How it is launched, as editable texts, where the user says it and not the program; a guess
    unless `ready`."""
    ready: bool = True
    """Whether it can be launched as it is."""


@dataclass(frozen=True, slots=True)
class ProbeChoice:
    """A probe preset; `key` is its digit 1..9, 0 for a file that the user named."""

    name: str
    title: str
    key: int
    problem: str = ""
    """Why it cannot attach to the kernel that is watched, as far as that is known."""


@dataclass(frozen=True, slots=True)
class Status:
    """What the worker does now. `detail` is one line ("compiling gemm.cu with nvcc 13.0"),
    `aside` one of what goes on beside the launches. `error` while running: what was saved last
    cannot run, and the former build goes on."""

    state: Literal["starting", "preparing", "waiting", "running", "failed", "stopped"]
    detail: str = ""
    error: UserError | None = None
    aside: str = ""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Something that was said. `at` is time.time()."""

    at: float
    who: str
    """worker, toolchain, weaver, device or error."""
    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The texts behind the frames of `build`, `kernel` (mangled) and `probe`.

    `ptx` is the probed module, `inserted` are its woven lines, `lines[k]` is the source line that
    PTX line k + 1 comes from, 0 for none; lines count from 1. `sites` are the source lines and
    opcodes of the probed instructions, `marked` the lines whose accesses ptxas has changed, once
    that is known.
    """

    build: int
    kernel: str
    probe: str
    source: str
    """Text of the source file."""
    ptx: str
    inserted: tuple[int, ...]
    lines: tuple[int, ...]
    sites: tuple[tuple[int, str], ...]
    marked: tuple[MarkedLine, ...] = ()
    unmarked: str = ""
    """Why they cannot be known."""


def launch_text(grid: Dim3, block: Dim3, shared_bytes: int = 0) -> str:
    """<<<32x43, 32x24>>>, with a third size where it is above 1"""
    sizes = [size if size[2] > 1 else size[:2] for size in (grid, block)]
    parts = ["x".join(map(str, size)) for size in sizes]
    if shared_bytes:
        parts.append(str(shared_bytes))
    return f"<<<{', '.join(parts)}>>>"


class Watch(Protocol):
    """What a screen talks to; implemented by the worker's client and by fakes in tests.

    No method blocks longer than a pipe write; answers arrive through the properties.
    """

    def kernels(self) -> list[KernelChoice]: ...

    def probes(self) -> list[ProbeChoice]: ...

    def source(self) -> str:
        """Path of the source being watched."""

    def sources(self) -> tuple[str, ...]:
        """Paths of all sources that can be watched, in a fixed order."""

    def log(self) -> Sequence[LogEntry]:
        """What toolchain, weaver and device said, oldest first."""

    def listing(self) -> Listing | None:
        """The texts behind the newest selection, None until they are known."""

    def device(self) -> DeviceInfo | None: ...

    def status(self) -> Status: ...

    def latest(self) -> Frame | None:
        """The newest frame of the current selection, None until the first."""

    def select(
        self,
        kernel: str | None = None,
        probe: str | None = None,
        launch: int | None = None,
        source: str | None = None,
    ) -> None:
        """Switches kernel (mangled name), probe (preset name) and/or source (one of `sources`),
        and to a launch of the program by its index; None keeps."""

    def give(self, kernel: str, form: LaunchForm, probe: str | None = None) -> None:
        """Says how a kernel (mangled name) is launched, and selects it."""

    def reset(self) -> None:
        """Forgets accumulated figures."""

    def record(self, launches: int) -> str:
        """Writes so many launches of what is watched to a trace folder; gives its path, or "" where
        there is nothing to record. The log tells when it is done."""

    def restart(self) -> None:
        """Starts a fresh worker with the same selection."""

    def close(self) -> None:
        """Ends the worker; returns once it is gone (at most 0.5 s, then it is killed)."""
