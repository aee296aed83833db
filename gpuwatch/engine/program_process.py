"""One process of a running program: its images, kernels and GPUs, and what was seen of them."""

from __future__ import annotations

import statistics
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import DeviceInfo
from gpuwatch.engine.program_kernels import ProgramKernel, ProgramProcess
from gpuwatch.engine.residency import occupancy, resident
from gpuwatch.errors import UserError
from gpuwatch.inject.images import MACHINE_CODE, ImagePtx, image_ptx
from gpuwatch.inject.protocol import RECENT, DeviceWords, Shape
from gpuwatch.inject.ptx_caches import PtxCaches
from gpuwatch.inject.server import Link
from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Module
from gpuwatch.toolchain import demangle
from gpuwatch.trace.prune import prune

_LOCATE_SECONDS = 10.0


@dataclass(slots=True)
class KernelSeen:
    """A kernel of the process; `image` is what it was loaded from, 0 for unknown."""

    number: int
    image: int
    mangled: str
    name: str
    problem: str = ""
    """Why no probe can attach, as far as that was tried."""
    registers: int = 0
    static_shared: int = 0
    """Of the program's own code, where the driver was asked for them."""


@dataclass(slots=True)
class Process:
    """What its library told. Methods that look at images may be called from any thread."""

    link: Link
    caches: PtxCaches
    kernels: dict[int, KernelSeen] = field(default_factory=dict)
    images: dict[int, tuple[str, Path]] = field(default_factory=dict)
    """Kind and file of each."""
    devices: dict[int, DeviceWords] = field(default_factory=dict)
    undecided: list[int] = field(default_factory=list)
    """Kernels of which the library waits to hear whether they are wanted."""
    problem: str = ""
    status: str | None = None
    said_bye: bool = False
    """Whether it has told all before it ended."""
    _found: dict[tuple[int, str], ImagePtx] = field(default_factory=dict)
    _modules: dict[tuple[int, str], Module] = field(default_factory=dict)
    _addresses: dict[int, dict[str, int]] = field(default_factory=dict)
    _located: defaultdict[int, threading.Event] = field(
        default_factory=lambda: defaultdict(threading.Event)
    )

    @property
    def pid(self) -> int:
        return self.link.pid

    def shown(self) -> ProgramProcess:
        return ProgramProcess(self.pid, self.link.command, self.status, self.problem)

    # ---- what it tells

    def hear(self, verb: str, words: list[str]) -> None:
        """Takes what describes the process; other lines mean nothing here."""
        match verb:
            case "kernel":
                name = " ".join(words[2:])
                self.kernels[int(words[0])] = KernelSeen(
                    int(words[0]), int(words[1]), name, demangle([name])[name]
                )
            case "image":
                self.images[int(words[0])] = words[1], self.link.folder / words[2]
            case "device":
                device = DeviceWords.of(words)
                self.devices[device.ordinal] = device
            case "problem":
                self.problem = " ".join(words)
            case "at":
                if int(words[2]):
                    self._addresses.setdefault(int(words[0]), {})[words[1]] = int(words[2])
            case "located":
                self._located[int(words[0])].set()

    @property
    def arch(self) -> str:
        """That of the GPU that it told of first, "sm_90". Raises UserError before."""
        for device in self.devices.values():
            return device.arch
        raise UserError(
            f"process {self.pid} has not used a GPU yet", hint="wait for its first kernel", status=1
        )

    def info(self, ordinal: int) -> DeviceInfo:
        """The GPU. Raises KeyError for one that it has not told of."""
        device = self.devices[ordinal]
        return DeviceInfo(
            name=device.name,
            kind="cuda",
            profile=str(ordinal),
            arch=device.arch,
            sm_count=device.sm_count,
            warps_per_sm=device.threads_per_sm // 32,
            clock_hz=device.clock_khz * 1e3,
            modelled=False,
        )

    def locate(self, build: int, names: Sequence[str]) -> Mapping[str, int]:
        """Where the module of the launch that wants this build has these variables; waits for the
        answer. Raises UserError when there is none."""
        if not names:
            return {}
        answered = self._located[build]
        self.link.send(" ".join(["locate", str(build), *names]))
        if not answered.wait(_LOCATE_SECONDS):
            raise UserError(
                f"process {self.pid} did not tell where its variables lie",
                hint="it may be stopped; try again",
                status=1,
            )
        return self._addresses.get(build, {})

    # ---- images

    def module(self, kernel: KernelSeen, arch: str) -> tuple[Module, str]:
        """The PTX that the kernel came from, cut down to it, and what to assemble it for. Raises
        UserError when there is none, or it has no such kernel."""
        found = self.ptx(kernel, arch)
        if not found.text:
            raise UserError(
                f"{kernel.name} cannot be probed: {found.why}",
                hint="a probe needs PTX: build the program with `nvcc -arch=sm_NN`, which brings "
                "it along, or have it load PTX",
            )
        key = kernel.image, kernel.mangled
        if key not in self._modules:
            whole = parse(found.text, f"{kernel.name.partition('(')[0][:40]}.ptx")
            if kernel.mangled not in {entry.name for entry in whole.entries()}:
                raise UserError(
                    f"the PTX that was loaded has no kernel {kernel.mangled}",
                    hint="it was built in a way that is not known here: please report this",
                )
            self._modules[key] = parse(prune(whole, kernel.mangled), whole.source)
        return self._modules[key], found.target

    def ptx(self, kernel: KernelSeen, arch: str) -> ImagePtx:
        """The PTX of the kernel's image, or why there is none."""
        key = kernel.image, arch
        if key not in self._found and kernel.image in self.images:
            kind, path = self.images[kernel.image]
            self._found[key] = image_ptx(kind, path, arch, self.caches)
        return self._found.get(key, ImagePtx(why=MACHINE_CODE))

    # ---- figures

    def rows(self) -> NDArray[np.void] | None:
        """All figures so far; None where the process writes none."""
        return None if self.link.table is None else self.link.table.rows()

    def launches_of(self, kernel: KernelSeen) -> int:
        """All of them so far, in every shape."""
        rows = self.rows()
        if rows is None:
            return 0
        return int(rows["launches"][rows["kernel"] == kernel.number].sum())

    def listed(self) -> Iterator[ProgramKernel]:
        """Every kernel that was launched, on whichever GPU."""
        rows = self.rows()
        if rows is None:
            return
        groups: defaultdict[int, list[NDArray[np.void]]] = defaultdict(list)
        for row in rows:
            groups[int(row["kernel"])].append(row)
        for number, group in groups.items():
            kernel = self.kernels.get(number)
            if kernel is not None and any(row["launches"] or row["seen"] for row in group):
                yield self._listed(kernel, group)

    def _listed(self, kernel: KernelSeen, group: list[NDArray[np.void]]) -> ProgramKernel:
        most = max(group, key=lambda row: int(row["launches"]))
        device = int(most["device"])
        shape = Shape.of_row(most)
        words = self.devices.get(device)
        found = self.ptx(kernel, words.arch) if words is not None else ImagePtx()
        launches = _sum(group, "launches")
        total = (_sum(group, "total_ns") + _sum(group, "probed_ns")) / 1e9
        timed = self.link.timed
        registers = int(most["registers"]) or kernel.registers
        shared = int(most["static_shared"]) or kernel.static_shared
        bx, by, bz = shape.block
        threads, held = bx * by * bz, shared + shape.dynamic_shared
        blocks = None if words is None else resident(words, threads, registers, held)
        return ProgramKernel(
            key=key_of(self, kernel),
            name=kernel.name,
            mangled=kernel.mangled,
            process=self.pid,
            device=device,
            launches=launches,
            grid=shape.grid,
            block=shape.block,
            dynamic_shared=shape.dynamic_shared,
            shapes=len(group),
            total_seconds=total if timed else None,
            mean_seconds=total / launches if timed and launches else None,
            registers=registers,
            static_shared=shared,
            occupancy=None if words is None else occupancy(words, threads, blocks),
            origin=found.origin,
            why=kernel.problem or found.why,
            in_graphs=_sum(group, "in_graphs"),
            probed=_sum(group, "probed"),
            estimated=self.link.table is not None and self.link.table.sampled > 0,
            skipped=_sum(group, "skipped"),
        )


@dataclass(frozen=True, slots=True)
class Medians:
    """Of the newest launches of a row in seconds, 0 where there was none."""

    plain: float
    probed: float


def medians(row: NDArray[np.void]) -> Medians:
    return Medians(
        _median(row["recent"], int(row["recents"])),
        _median(row["recent_probed"], int(row["recents_probed"])),
    )


def key_of(process: Process, kernel: KernelSeen) -> str:
    """Names a kernel of a process."""
    return f"{process.pid}:{kernel.number}"


def ended_words(status: int | None) -> str:
    """How a child ended, in words; "" while that is not known."""
    if status is None:
        return ""
    return f"signal {-status}" if status < 0 else f"status {status}"


def _sum(group: Sequence[NDArray[np.void]], name: str) -> int:
    return sum(int(row[name]) for row in group)


def _median(ring: NDArray[np.uint32], used: int) -> float:
    values = ring[: min(used, RECENT)]
    return statistics.median(values.tolist()) / 1e9 if len(values) else 0.0
