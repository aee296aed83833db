"""What travels through the pipe between the screen's process and the worker."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwatch.device.base import DeviceInfo
from gpuwatch.engine.frame import KernelChoice, Listing, LogEntry, Status
from gpuwatch.engine.mailbox import Envelope
from gpuwatch.launch import LaunchForm

# ---- to the worker


@dataclass(frozen=True, slots=True)
class Select:
    """Another kernel, probe and/or launch of the program; frames of it carry `ticket`."""

    kernel: str | None
    probe: str | None
    ticket: int
    launch: int | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Give:
    """How a kernel is launched from now on; selects it."""

    kernel: str
    form: LaunchForm
    probe: str | None
    ticket: int


@dataclass(frozen=True, slots=True)
class Reset:
    pass


@dataclass(frozen=True, slots=True)
class Record:
    """Writes so many launches of what is watched to the folder `target`."""

    target: str
    launches: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The last frame was taken; the next may be written."""


@dataclass(frozen=True, slots=True)
class Stop:
    pass


Request = Select | Give | Reset | Record | Taken | Stop

# ---- from the worker


@dataclass(frozen=True, slots=True)
class Known:
    """What can be chosen, sent once the program was compiled and captured."""

    device: DeviceInfo
    kernels: tuple[KernelChoice, ...]


@dataclass(frozen=True, slots=True)
class Aside:
    """What goes on beside the launches, "" for nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class Problems:
    """Why probes (by name) cannot attach to the kernel that is watched."""

    found: tuple[tuple[str, str], ...]


Answer = Known | Status | Envelope | Aside | Problems | LogEntry | Listing
