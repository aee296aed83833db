"""A probe on a kernel of a running program, and what comes of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from gpuwatch.engine.attached import AttachedBuild, SlotBytes, Wanted
from gpuwatch.engine.program_process import KernelSeen, Process, key_of
from gpuwatch.errors import UserError
from gpuwatch.inject.protocol import Shape


@dataclass(slots=True)
class Attachment:
    """A probe on a kernel, with the builds of the shapes in which it is launched."""

    process: Process
    kernel: KernelSeen
    probe: str
    builds: dict[int, AttachedBuild] = field(default_factory=dict)
    shapes: dict[tuple[int, Shape], Wanted] = field(default_factory=dict)
    """By device and shape, what was woven last."""
    held: dict[int, int] = field(default_factory=dict)
    """By device, bytes of the maps of all builds."""
    problem: UserError | None = None
    taken: int = 0
    """Launches whose records were read."""
    before: int = 0
    """Launches of the kernel when the probe was attached."""
    _ended: bool = False
    _sending: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def held_on(self, device: int) -> int:
        with self._sending:
            return self.held.get(device, 0)

    def hold(self, build: AttachedBuild, size: int) -> None:
        """The maps of a build take so many bytes from now on; called by two threads."""
        with self._sending:
            device = build.wanted.device.ordinal
            self.held[device] = self.held.get(device, 0) + size - build.held
            build.held = size

    @property
    def key(self) -> str:
        return key_of(self.process, self.kernel)

    def send(self, line: str) -> None:
        """Sends what was woven for it, unless it has ended: the library would take that for the
        probe that has come in its place."""
        with self._sending:
            if not self._ended:
                self.process.link.send(line)

    def end(self) -> None:
        """Its probe is taken off, and no records of it are read any more."""
        with self._sending:
            self._ended = True
        for number in tuple(self.builds):
            (self.process.link.folder / f"slots-{number}").unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Stored:
    """A launch that the library has stored in the process's folder, or what was wrong with it."""

    process: Process
    kernel: KernelSeen
    problem: str


@dataclass(frozen=True, slots=True)
class Records:
    """One probed launch; `number` counts the kernel's launches from 0, `seconds` is 0 where the
    time is not known."""

    attachment: Attachment
    build: AttachedBuild
    slot: SlotBytes
    number: int
    seconds: float
