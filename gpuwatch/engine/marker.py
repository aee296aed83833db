"""Marked lines of what is watched, found beside the launches."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from gpuwatch.engine.attach import PlainKernel
from gpuwatch.engine.background import JOIN_SECONDS, NICE, guarded
from gpuwatch.engine.machine_code import marks_of
from gpuwatch.engine.marked_lines import MarkedLine
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.errors import UserError


@dataclass(frozen=True, slots=True)
class Marked:
    """The marked lines for the selection of that number, or why they are not known."""

    number: int
    lines: tuple[MarkedLine, ...]
    problem: UserError | None


@dataclass(frozen=True, slots=True)
class _Job:
    number: int
    program: WatchedProgram
    plain: PlainKernel
    maps: Collection[str]


class Marker:
    """A thread of low priority that disassembles the plain build of what was selected last."""

    def __init__(self) -> None:
        self.outcomes: queue.SimpleQueue[Marked] = queue.SimpleQueue()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._newest = 0
        self._thread = threading.Thread(target=self._run, name="gpuwatch-mark", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def want(self, program: WatchedProgram, plain: PlainKernel, maps: Collection[str]) -> None:
        """Marks for a new selection, in place of what was wanted before."""
        self._newest += 1
        if maps:
            self._jobs.put(_Job(self._newest, program, plain, maps))

    def take(self) -> Marked | None:
        """What was found for the newest selection, once."""
        while not self.outcomes.empty():
            found = self.outcomes.get()
            if found.number == self._newest:
                return found
        return None

    def end(self) -> None:
        self._newest += 1
        self._jobs.put(None)

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while (job := self._jobs.get()) is not None:
            if job.number == self._newest:
                find = partial(marks_of, job.program, job.plain, job.maps)
                lines, problem = guarded(find, "search for marked lines")
                self.outcomes.put(Marked(job.number, lines or (), problem))
