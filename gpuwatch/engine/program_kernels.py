"""The kernels that a running program launches, as a list shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from gpuwatch.engine.frame import Watch
from gpuwatch.launch.model import Dim3


@dataclass(frozen=True, slots=True)
class ProgramKernel:
    """One kernel of one process, with what was seen of all its launches so far.

    `grid`, `block` and `dynamic_shared` (bytes) are those of its most frequent shape, of `shapes`
    there were. Seconds are of the GPU, of every launch; None where nothing measures them.
    """

    key: str
    """Names it in `ProgramWatch.select`; the same for as long as the program runs."""
    name: str
    """Demangled."""
    mangled: str
    process: int
    device: int
    """Ordinal, in the process, of the GPU that most of its launches are on."""
    launches: int
    grid: Dim3
    block: Dim3
    dynamic_shared: int
    shapes: int
    total_seconds: float | None
    mean_seconds: float | None
    registers: int
    static_shared: int
    occupancy: float | None
    """Share of an SM's warps that such blocks can fill, by the occupancy calculator's rules."""
    origin: str
    """Where its PTX came from, like "in the program" or "Triton's cache"; "machine code only"
    where there is none."""
    why: str = ""
    """Why no probe can attach; "" when one can."""
    in_graphs: int = 0
    """Launches of those that a CUDA graph made, which are not probed."""
    probed: int = 0
    estimated: bool = False
    """Whether launches came so fast that some stand for others in `launches` and seconds."""
    skipped: int = 0
    """Launches of a watched kernel that ran without the probe: while it was prepared, faster than
    records are read, plain for comparison, or since the probed one was refused."""

    @property
    def probeable(self) -> bool:
        return not self.why


@dataclass(frozen=True, slots=True)
class ProgramProcess:
    """A process of the program that uses CUDA. `status` is None while it runs, "" where its exit
    status is not known (only that of the program itself is)."""

    pid: int
    command: str
    status: str | None = None
    problem: str = ""
    """What is not seen of it and why, such as another profiler that has subscribed."""


@dataclass(frozen=True, slots=True)
class ProgramState:
    """What the program itself does: `state` and, once it has ended, its exit status (negative for
    a signal). `output` is the file that its output goes to."""

    state: Literal["starting", "running", "ended"]
    command: tuple[str, ...]
    pid: int
    output: str
    status: int | None = None
    launches: int = 0
    """Of all kernels and processes."""


class ProgramWatch(Watch, Protocol):
    """A running program; `select(kernel=key)` attaches a probe, `detach` takes it off.

    `kernels()` gives those kernels that a probe can attach to, `mangled` being their key.
    """

    def program(self) -> ProgramState: ...

    def program_kernels(self) -> Sequence[ProgramKernel]:
        """Every kernel that was launched, in no order."""

    def processes(self) -> Sequence[ProgramProcess]: ...

    def watched(self) -> str | None:
        """Key of the kernel that has a probe, None for none."""

    def detach(self) -> None: ...
