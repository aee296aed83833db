"""A program that runs as it always does, with a library injected, and the probes on its kernels."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from gpuwatch.engine.attached import AttachedBuild, SlotBytes, slot_bytes
from gpuwatch.engine.background import guarded
from gpuwatch.engine.frame import LogEntry
from gpuwatch.engine.program_attachment import Attachment, Records, Stored
from gpuwatch.engine.program_process import (
    KernelSeen,
    Process,
    ended_words,
    key_of,
)
from gpuwatch.engine.program_weaver import Weaver
from gpuwatch.errors import UserError
from gpuwatch.inject.library import build_library
from gpuwatch.inject.protocol import INJECTION, RUN, Shape
from gpuwatch.inject.ptx_caches import PtxCaches
from gpuwatch.inject.server import Link, Server, Wishes
from gpuwatch.instrument.memory import DEFAULT_LIMIT
from gpuwatch.probe import load
from gpuwatch.ptx.placed import constant_variables, global_variables
from gpuwatch.toolchain import Toolchain, find

EVER = (1 << 63) - 1
_LIKES_PTX = {"CUPY_COMPILE_WITH_PTX": "1"}
"""What makes libraries load PTX rather than machine code, unless the user has said otherwise
(CuPy documentation, "Environment variables")."""


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """`command` is run as it is; `output` takes what it prints, None leaves it where ours goes.

    `pace`: at most so many probed launches a second, 0 for every one. `plain_every`: so many
    probed launches to a plain one. `first` and `last` are the launches of a kernel, from 0, that
    are probed. With `hold` a launch of a wanted kernel waits until the probe is there.
    """

    command: tuple[str, ...]
    kernel: str = ""
    probe: str = "block_sched"
    cuda_home: str | None = None
    map_limit: int = DEFAULT_LIMIT
    output: Path | None = None
    hold: bool = False
    wait: bool = False
    pace: float = 60.0
    plain_every: int = 16
    first: int = 0
    last: int = EVER


Took = Callable[[Records], None]


class ProgramSession:
    """Not thread-safe: one thread calls `poll` again and again, and everything else.

    Weaving goes on beside it; nothing here touches a GPU.
    """

    EVERY = "*"
    """As `wanted`: every kernel."""

    def __init__(
        self, options: ProgramOptions, took: Took = lambda _one: None,
        log: Callable[[LogEntry], None] = lambda _entry: None,
    ) -> None:  # fmt: skip
        _refuse_another_tool()
        self.options = options
        self._took, self._log = took, log
        self.toolchain: Toolchain = find(options.cuda_home)
        load(options.probe)
        self._library = build_library(self.toolchain)
        pace = int(1e6 / options.pace) if options.pace else 0
        wishes = Wishes(options.hold, options.wait, pace, options.plain_every)
        self._server = Server(wishes, self._heard)
        self.processes: dict[int, Process] = {}
        self.attachments: dict[str, Attachment] = {}
        self.status: int | None = None
        self.stored: Stored | None = None
        self.storing: int | None = None
        """Which launch of the wanted kernels is stored, instead of probing them."""
        self.wanted = options.kernel
        """A part of the name of the kernels to attach to as they come."""
        self._weaver = Weaver(self.toolchain, options.map_limit, self._say)
        self._child: subprocess.Popen[bytes] | None = None
        self._caches = PtxCaches(self._environment())

    @property
    def folder(self) -> Path:
        """The run's own, there until `remove`."""
        return self._server.folder

    @property
    def pid(self) -> int:
        return self._child.pid if self._child is not None else 0

    def start(self) -> None:
        """Starts the program. Raises UserError when it cannot be."""
        output = self.options.output
        target = None if output is None else output.open("wb")
        try:
            self._child = subprocess.Popen(
                self.options.command,
                env=self._environment(),
                stdin=None if output is None else subprocess.DEVNULL,
                stdout=target,
                stderr=None if output is None else subprocess.STDOUT,
            )
        except OSError as problem:
            raise UserError(
                f"cannot run {self.options.command[0]}: {problem.strerror}",
                hint="what follows -- is the program and its arguments: run -- python train.py",
            ) from problem
        finally:
            if target is not None:
                target.close()

    def _environment(self) -> dict[str, str]:
        own = {INJECTION: str(self._library), RUN: str(self._server.folder)}
        return {**_LIKES_PTX, **os.environ, **own}

    def poll(self, seconds: float) -> None:
        """Hears what the program tells, for at most so long, and takes over what was woven."""
        self._server.poll(seconds)
        self._weaver.check()
        if self.status is None and self.poll_status() is not None and self.pid in self.processes:
            self.processes[self.pid].status = ended_words(self.status)

    @property
    def idle(self) -> bool:
        """Whether the program has ended and all that its processes told is heard."""
        return self.status is not None and all(link.gone for link in self._server.links)

    def poll_status(self) -> int | None:
        """The program's exit status, None while it runs."""
        if self.status is None and self._child is not None:
            self.status = self._child.poll()
        return self.status

    def wait(self) -> int:
        """Waits for the program to end; its exit status, negative for a signal."""
        assert self._child is not None
        self.status = self._child.wait()
        return self.status

    def close(self) -> None:
        """The program goes on unprobed."""
        self._weaver.close()
        self._server.close()

    def remove(self) -> None:
        """Removes the run's folder."""
        self._server.remove()

    # ---- probes

    def attach(self, key: str, probe: str) -> Attachment:
        """Puts a probe on a kernel, in place of the one it has. Raises UserError when it has no
        PTX or the probe cannot be read."""
        process, kernel = self._find(key)
        load(probe)
        process.module(kernel, process.arch)
        attachment = Attachment(process, kernel, probe, before=process.launches_of(kernel))
        before = self.attachments.get(key)
        if before is not None:
            before.end()
        self.attachments[key] = attachment
        first, last = self.options.first, self.options.last
        process.link.send(f"watch {kernel.number} {first} {last}")
        self._say("worker", f"{probe} on {kernel.name} of process {process.pid}")
        return attachment

    def detach(self, key: str) -> None:
        """Takes the probe off a kernel, if it has one."""
        attachment = self.attachments.pop(key, None)
        if attachment is not None:
            attachment.end()
            attachment.process.link.send(f"ignore {attachment.kernel.number}")

    def _find(self, key: str) -> tuple[Process, KernelSeen]:
        pid, _, number = key.partition(":")
        process = self.processes[int(pid)]
        return process, process.kernels[int(number)]

    # ---- what processes tell

    def _heard(self, link: Link, verb: str, words: list[str]) -> None:
        if verb == "hello":
            self.processes[link.pid] = Process(link, self._caches)
            self._say("worker", f"process {link.pid} uses CUDA: {link.command}")
            return
        process = self.processes.get(link.pid)
        if process is None:
            return
        process.hear(verb, words)
        handler = self._HANDLERS.get(verb)
        if handler is not None:
            handler(self, process, words)

    def _kernel(self, process: Process, words: list[str]) -> None:
        process.undecided.append(int(words[0]))
        self._decide(process, words)

    def _decide(self, process: Process, _words: list[str]) -> None:
        """Says which of the kernels that have come are wanted, once their GPU is known."""
        numbers = process.undecided if process.devices else []
        process.undecided = [] if process.devices else process.undecided
        for number in numbers:
            kernel = process.kernels[number]
            if not self.is_wanted(kernel.name, kernel.mangled):
                if self.options.hold:
                    process.link.send(f"ignore {number}")
                continue
            take = self._store if self.storing is not None else self._attach
            _, problem = guarded(partial(take, process, kernel))
            if problem is not None:
                kernel.problem = problem.message
                process.link.send(f"ignore {number}")
                self._say("error", problem.render())

    def is_wanted(self, *names: str) -> bool:
        """Whether a kernel of these names is one to attach to as it comes."""
        part = self.wanted
        return part == self.EVERY or (bool(part) and any(part in name for name in names))

    def _attach(self, process: Process, kernel: KernelSeen) -> None:
        self.attach(key_of(process, kernel), self.options.probe)

    def _store(self, process: Process, kernel: KernelSeen) -> None:
        """Has the library store the launch that is wanted, with its memory, unless another kernel
        is stored first; `stored` tells. Raises UserError when the kernel has no PTX."""
        if self.stored is not None:
            process.link.send(f"ignore {kernel.number}")
            return
        module, _ = process.module(kernel, process.arch)
        names = (
            *global_variables(module, kernel.mangled),
            *constant_variables(module, kernel.mangled),
        )
        process.link.send(" ".join(["store", str(kernel.number), str(self.storing), *names]))
        process.link.send(f"ignore {kernel.number}")

    def _problem(self, process: Process, _words: list[str]) -> None:
        self._say("error", f"process {process.pid}: {process.problem}")

    def _bye(self, process: Process, _words: list[str]) -> None:
        process.said_bye = True

    def _gone(self, process: Process, _words: list[str]) -> None:
        if process.status is None:
            process.status = ""
        self._say("worker", f"process {process.pid} has ended")

    def _want(self, process: Process, words: list[str]) -> None:
        """Weaves for a shape in which a watched kernel is launched."""
        number, kernel, device = int(words[0]), process.kernels[int(words[1])], int(words[2])
        attachment = self.attachments.get(key_of(process, kernel))
        if attachment is None:
            process.link.send(f"none {number}")
            return
        self._weaver.weave(attachment, number, device, Shape.of(words[3:10]))

    def _build(self, process: Process, number: int) -> tuple[Attachment, AttachedBuild] | None:
        for attachment in self.attachments.values():
            if attachment.process is process and number in attachment.builds:
                return attachment, attachment.builds[number]
        return None

    def _loaded(self, process: Process, words: list[str]) -> None:
        found = self._build(process, int(words[0]))
        if found is None:
            return
        attachment, build = found
        build.resident_plain, build.resident_probed = int(words[1]), int(words[2])
        attachment.kernel.registers, attachment.kernel.static_shared = int(words[3]), int(words[4])

    def _counted(self, attachment: Attachment, number: int, slot: SlotBytes) -> None:
        """A launch has counted what its maps of dynamic capacity need: has the kernel woven once
        more for this shape, with so much room."""
        build = attachment.builds[number]
        place = build.wanted.device.ordinal, build.wanted.shape
        if build.counted:
            return  # an earlier launch has counted already
        build.counted = True
        if attachment.shapes[place].counts is None:  # else another context's launch was first
            attachment.shapes[place] = replace(build.wanted, counts=build.counts(slot))
        attachment.hold(build, 0)
        attachment.send(f"drop {number}")

    def _freed(self, process: Process, words: list[str]) -> None:
        """The memory of its maps is the program's again; all its records were read before."""
        found = self._build(process, int(words[0]))
        if found is not None:
            found[0].hold(found[1], 0)
        (process.link.folder / f"slots-{words[0]}").unlink(missing_ok=True)

    def _refused(self, process: Process, words: list[str]) -> None:
        found = self._build(process, int(words[0]))
        if found is None:
            return
        attachment, _ = found
        attachment.problem = UserError(
            f"the probed kernel {attachment.kernel.name} did not run in process {process.pid}: "
            f"{' '.join(words[2:])}",
            hint="the program's own kernel runs; another preset may do",
            status=1,
        )
        self._say("error", attachment.problem.render())

    def _records(self, process: Process, words: list[str]) -> None:
        number, index, launch, row, ns = map(int, words[:5])
        found = self._build(process, number)
        if found is not None:
            attachment, build = found
            slot = self._slot(process, number, index, build)
            if build.counting:
                self._counted(attachment, number, slot)
            else:
                self._take(Records(attachment, build, slot, launch, ns / 1e9), row)
        process.link.send(f"free {number} {index}")

    def _take(self, records: Records, row: int) -> None:
        attachment, build = records.attachment, records.build
        build.observed += 1
        build.row, build.seconds = row, records.seconds
        attachment.taken += 1
        build.reader.observe(records.slot)
        self._took(records)

    @staticmethod
    def _slot(process: Process, number: int, index: int, build: AttachedBuild) -> SlotBytes:
        """A copy of what a launch left."""
        sizes = build.layout.buffers
        size = slot_bytes(sizes)
        path = process.link.folder / f"slots-{number}"
        content = np.fromfile(path, np.uint8, count=size, offset=index * size)
        return SlotBytes(content, sizes)

    def _lost(self, process: Process, words: list[str]) -> None:
        self._say("error", f"process {process.pid}: the records of a launch were lost ({words[0]})")

    def _stored(self, process: Process, words: list[str]) -> None:
        self.stored = Stored(process, process.kernels[int(words[0])], " ".join(words[2:]))

    def _say(self, who: str, text: str) -> None:
        self._log(LogEntry(time.time(), who, text))

    _HANDLERS: Mapping[str, Callable[[ProgramSession, Process, list[str]], None]] = {
        "kernel": _kernel,
        "device": _decide,
        "problem": _problem,
        "bye": _bye,
        "gone": _gone,
        "want": _want,
        "loaded": _loaded,
        "freed": _freed,
        "refused": _refused,
        "records": _records,
        "lost": _lost,
        "stored": _stored,
    }


def _refuse_another_tool() -> None:
    if os.environ.get(INJECTION):
        raise UserError(
            f"{INJECTION} is set: another tool injects a library already",
            hint=f"unset {INJECTION}",
        )


def whole_command(words: Sequence[str]) -> tuple[str, ...]:
    """What follows `--`. Raises UserError when that is nothing."""
    if not words:
        raise UserError(
            "there is no program to run", hint="name it behind --: gpuwatch run -- python train.py"
        )
    return tuple(words)
