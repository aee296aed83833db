"""What a worker does beside its launches: compiling what was saved, and preparing presets."""

from __future__ import annotations

import os
import queue
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from gpuwatch.device.base import GaveWay
from gpuwatch.engine.build import Build
from gpuwatch.engine.session import Session
from gpuwatch.engine.watching import Saves
from gpuwatch.errors import UserError
from gpuwatch.toolchain.process import end_all

T = TypeVar("T")

POLL_SECONDS = 0.02
"""Between two looks at the files."""
NICE = 10
JOIN_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A source after a save, or why it cannot run."""

    source: str
    build: Build | None
    problem: UserError | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A preset that can be shown at once now, or why it cannot attach."""

    build: Build
    kernel: str
    probe: str
    problem: UserError | None


_Made: TypeAlias = tuple[Build, str, str]
"""What is made ready of a build: its kernel and probe."""
_Outcomes: TypeAlias = "queue.SimpleQueue[Prepared]"
_Job: TypeAlias = tuple[_Outcomes, Build, str, str]


def guarded(action: Callable[[], T], where: str = "worker") -> tuple[T | None, UserError | None]:
    """What `action` gives, or what went wrong: a thread has nobody else to tell."""
    try:
        return action(), None
    except UserError as problem:
        return None, problem
    except Exception as problem:  # noqa: BLE001 - told to the user, with its trace as detail
        return None, internal_error(problem, where)


def internal_error(
    problem: Exception, where: str = "worker", hint: str = "please report this"
) -> UserError:
    """A fault that the user cannot mend, with its trace."""
    return UserError(
        f"internal error in the {where}: {type(problem).__name__}: {problem}",
        detail="".join(traceback.format_exception(problem)),
        hint=hint,
        status=1,
    )


class Recompiler:
    """A thread that compiles a source again when one of its files is saved, and makes ready what
    is watched of it; the launch loop takes what has become of it from `outcomes`."""

    def __init__(
        self, session: Session, sources: Sequence[str], link: Sequence[str],
        progress: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.outcomes: queue.SimpleQueue[Rebuilt] = queue.SimpleQueue()
        self._session = session
        linked = [Path(name) for name in link]
        self._saves = {source: Saves([Path(source), *linked]) for source in sources}
        self._progress = progress
        self._missing = False
        self._unbuilt: set[str] = set()
        """Sources that were saved since they were compiled last."""
        self._newest: dict[str, Build] = {}
        """Of each source that has not been saved since."""
        self._unchecked: set[Build] = set()
        """Those that are shown before the plain kernel has run."""
        self._confirmed: queue.SimpleQueue[tuple[str, Build, bool, UserError | None]]
        self._confirmed = queue.SimpleQueue()
        """Whether the launches that a build assumed are others; or why that, or how its outputs
        compare, cannot be known."""
        self.busy = False
        """Whether something is compiled that is waited for."""
        self.rebuilds = 0
        """How often that has begun."""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpuwatch-compile", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def compile_missing(self) -> None:
        """Compiles the sources that were not compiled yet."""
        self._missing = True

    @property
    def occupied(self) -> bool:
        """Whether it does what matters more than presets and further launches."""
        return self.busy or bool(self._unchecked)

    def end(self) -> None:
        self._ending.set()

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        while not self._ending.wait(POLL_SECONDS):
            for source in self._saves:
                if self._is_saved(source) or (self._missing and not self._session.has(source)):
                    self._let_settle(source)
                    self._rebuild(source)
            self._missing = False
            while not self._confirmed.empty():
                self._take_confirmed(*self._confirmed.get())

    def _is_saved(self, source: str) -> bool:
        """Whether it was saved since it was compiled last."""
        if self._saves[source].changed():
            self._unbuilt.add(source)
        return source in self._unbuilt

    def _let_settle(self, source: str) -> None:
        """Waits while files of it still change: a save may empty a file before it fills it."""
        while not self._ending.wait(POLL_SECONDS) and self._saves[source].changed():
            self._unbuilt.add(source)

    def _rebuild(self, source: str, again: Build | None = None) -> None:
        """A save that comes meanwhile makes the result worthless: it begins anew."""
        self._newest.pop(source, None)
        self.rebuilds += 1
        self.busy = True
        made, problem = guarded(partial(self._made, source, again))
        while self._is_saved(source) and not self._ending.is_set():
            if made is not None:
                made[0].close()
            made, problem = guarded(partial(self._made, source))
        if self._ending.is_set():
            return
        if made is not None:
            self._newest[source] = made[0]
            self._unchecked.add(made[0])
        self.busy = False
        self._hand_over(source, made and made[0], problem)
        if made is not None:
            check = partial(self._check, source, made)
            threading.Thread(target=check, name="gpuwatch-check", daemon=True).start()

    def _hand_over(self, source: str, build: Build | None, problem: UserError | None) -> None:
        self._progress("")
        self.outcomes.put(Rebuilt(source, build, problem))

    def _check(self, source: str, made: _Made) -> None:
        """Compares what is shown with the plain kernel, and then the launches that the build
        assumed with the program's. A thread that the next save does not wait for."""
        build = made[0]
        _, problem = guarded(partial(self._compare, source, made))
        self._unchecked.discard(build)
        if problem is not None:
            self._confirmed.put((source, build, False, problem))
        elif build.program.assumed and self._newest.get(source) is build:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
            found, problem = guarded(build.program.confirm)
            self._confirmed.put((source, build, found is not None, problem))

    def _compare(self, source: str, made: _Made) -> None:
        """Gives way to what is compiled, and gives up at the next save of the source."""
        while not self._ending.is_set() and self._newest.get(source) is made[0]:
            if not self.busy and self._compared(source, *made):
                return
            time.sleep(POLL_SECONDS)

    def _compared(self, source: str, build: Build, kernel: str, probe: str) -> bool:
        """False when it gave way."""

        def gives_way() -> bool:
            return self.busy or self._ending.is_set() or self._newest.get(source) is not build

        try:
            build.compare(kernel, probe, gives_way)
        except GaveWay:
            return False
        return True

    def _take_confirmed(
        self, source: str, build: Build, differs: bool, problem: UserError | None
    ) -> None:
        """Makes a build again whose launches are others, unless its source was saved since."""
        if self._newest.get(source) is not build:
            self._progress("")
        elif differs:
            self._rebuild(source, build)
        elif problem is not None:
            self._hand_over(source, None, problem)
        else:
            self._progress("")

    def _made(self, source: str, again: Build | None = None) -> _Made | None:
        """With the kernel that stands for the one that is watched, and the probe, empty for none.
        None when it was saved meanwhile."""
        if again is None:
            self._unbuilt.discard(source)
        session = self._session
        build = session.compile(source, self._progress, again=again)
        kernel, probe = session.selected
        if self._is_saved(source):
            return None
        if kernel:
            kernel = build.alike(kernel, session.program) or build.first()
            try:
                gives_way = partial(self._is_saved, source)
                build.prepare(kernel, probe, self._progress, gives_way, compared=False)
            except GaveWay:
                build.close()
                return None
            except UserError:
                build.close()
                raise
        return build, kernel, probe


class Preparer:
    """A thread that makes presets ready for the kernel that is watched; of low priority unless
    `loads`, because what a kernel is launched by inherits that of the thread that loads it."""

    def __init__(self, *, loads: bool, busy: Callable[[], bool]) -> None:
        """`busy` says whether something is compiled that matters more."""
        self._loads = loads
        self._busy = busy
        self.outcomes: _Outcomes = queue.SimpleQueue()
        """Of what is wanted now."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="gpuwatch-prepare", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def want(self, build: Build, kernel: str, probes: Sequence[str]) -> None:
        """Prepares these, in this order, in place of what was wanted before."""
        self.outcomes = queue.SimpleQueue()
        for probe in probes:
            self._jobs.put((self.outcomes, build, kernel, probe))

    def end(self) -> None:
        self.outcomes = queue.SimpleQueue()
        self._jobs.put(None)

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        if not self._loads:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while (job := self._jobs.get()) is not None:
            self._do(*job)

    def _do(self, outcomes: _Outcomes, build: Build, kernel: str, probe: str) -> None:
        """Prepares one preset; begins again as often as something else mattered more."""
        done: bool | None = False
        problem = None
        while done is False and self.outcomes is outcomes:
            if self._busy():
                time.sleep(POLL_SECONDS)
                continue
            done, problem = guarded(partial(self._prepared, outcomes, build, kernel, probe))
        if done is not False:
            outcomes.put(Prepared(build, kernel, probe, problem))

    def _prepared(self, outcomes: _Outcomes, build: Build, kernel: str, probe: str) -> bool:
        def gives_way() -> bool:
            return self._busy() or self.outcomes is not outcomes

        try:
            build.prepare(kernel, probe, _say_nothing, gives_way)
        except GaveWay:
            return False
        return True


def _say_nothing(_text: str) -> None:
    """Progress of what nobody waits for."""


class Ending(Protocol):
    """A thread that can be told to end."""

    def end(self) -> None: ...

    def join(self) -> None: ...


def end_together(*threads: Ending) -> None:
    """Ends the threads and the compilers that they run."""
    for thread in threads:
        thread.end()
    end_all()
    for thread in threads:
        thread.join()
