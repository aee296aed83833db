"""A recorded trace as something that a screen can watch: played, stopped, sought."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from gpuwatch.device.base import DeviceInfo
from gpuwatch.engine.background import guarded
from gpuwatch.engine.callbacks import log_of
from gpuwatch.engine.frame import (
    Frame,
    KernelChoice,
    Listing,
    LogEntry,
    ProbeChoice,
    Status,
)
from gpuwatch.engine.replay import ReplaySession
from gpuwatch.engine.replay_texts import listing_of_trace, log_of_trace
from gpuwatch.launch import LaunchForm
from gpuwatch.trace.callback import SECONDS

SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Launches a second."""


class ReplayWatch:
    """Implements `frame.Watch`, and what plays a trace besides. A thread of its own reads the
    trace: there is no kernel that could crash this process.

    `callback` is the file that the user names, "" for the one that ships with the preset, None
    for none; it runs beside the replay for the last launch, so many seconds at most, and what it
    prints is in the log.
    Raises UserError for a folder that is no trace.
    """

    def __init__(
        self,
        path: Path,
        kernel: str = "",
        callback: str | None = "",
        callback_seconds: float = SECONDS,
    ) -> None:
        self._path, self._wanted = path, kernel
        self._callback, self._callback_seconds = callback, callback_seconds
        self._requests: queue.Queue[Callable[[], None]] = queue.Queue()
        self._log: list[LogEntry] = []
        self._closed = False
        self._speed = SPEEDS.index(2.0)
        self._session = self._opened()
        self._begin()
        self._thread = threading.Thread(target=self._run, name="gpuwatch-replay", daemon=True)
        self._thread.start()

    def _opened(self) -> ReplaySession:
        session = ReplaySession(self._path, self._wanted)
        session.prepare()
        return session

    def _reopen(self) -> None:
        former, self._session = self._session, self._opened()
        former.close()
        self._begin()

    def _begin(self) -> None:
        self._kernels = self._session.kernels()
        self._playing = self._session.count > 1
        self._log = log_of_trace(self._session.trace.path)
        self._look()
        self._tell()
        if self._callback is not None:
            threading.Thread(target=self._call_back, name="gpuwatch-callback", daemon=True).start()

    # ---- Watch

    def kernels(self) -> list[KernelChoice]:
        return list(self._kernels)

    def probes(self) -> list[ProbeChoice]:
        return [ProbeChoice(self._session.facts.probe, self._session.facts.title, 0)]

    def source(self) -> str:
        return str(self._session.trace.path)

    def sources(self) -> tuple[str, ...]:
        return (self.source(),)

    def log(self) -> Sequence[LogEntry]:
        return self._log

    def listing(self) -> Listing | None:
        return self._listing

    def device(self) -> DeviceInfo | None:
        return self._session.info

    def status(self) -> Status:
        return self._status

    def latest(self) -> Frame | None:
        return self._frame

    def select(
        self,
        kernel: str | None = None,
        probe: str | None = None,  # noqa: ARG002 - a trace has the one that it was recorded with
        launch: int | None = None,
        source: str | None = None,  # noqa: ARG002 - and is the one source
    ) -> None:
        self._requests.put(lambda: self._choose(kernel, launch))

    def give(self, kernel: str, form: LaunchForm, probe: str | None = None) -> None:
        """Does nothing: what was recorded was launched as it was."""

    def reset(self) -> None:
        self._requests.put(lambda: self._session.reset())

    def record(self, launches: int) -> str:  # noqa: ARG002
        """Nothing: it is recorded already."""
        return ""

    def restart(self) -> None:
        self._requests.put(self._reopen)

    def close(self) -> None:
        self._closed = True
        self._requests.put(lambda: None)
        self._thread.join(0.5)

    # ---- playing

    def play_or_stop(self) -> None:
        """Plays on, from the first launch after the last one; stops when it plays."""
        self._requests.put(self._toggle)

    def move(self, launches: int) -> None:
        """Stops, so many launches further or, below 0, back."""
        self._requests.put(lambda: self._stop_at(self._session.position + launches))

    def faster(self, steps: int) -> None:
        """Plays at the next higher speed or, below 0, a lower one."""
        self._requests.put(lambda: self._set_speed(self._speed + steps))

    # ---- the thread

    def _run(self) -> None:
        due = time.monotonic()
        while not self._closed:
            wait = max(due - time.monotonic(), 0) if self._playing else None
            try:
                request = self._requests.get(timeout=wait)
            except queue.Empty:
                request = self._play
                due = time.monotonic() + 1 / SPEEDS[self._speed]
            _, problem = guarded(partial(self._do, request), "replay")
            if problem is not None:
                self._playing = False
                self._status = Status("failed", problem.message, problem)
        self._session.close()

    def _do(self, request: Callable[[], None]) -> None:
        request()
        self._look()
        self._tell()

    def _play(self) -> None:
        self._session.step()
        self._playing = self._session.position + 1 < self._session.count

    def _toggle(self) -> None:
        self._playing = not self._playing
        if self._playing and self._session.position + 1 == self._session.count:
            self._session.seek(0)

    def _stop_at(self, position: int) -> None:
        self._playing = False
        if position == self._session.position + 1 < self._session.count:
            self._session.step()
        else:
            self._session.seek(position)

    def _set_speed(self, step: int) -> None:
        self._speed = min(max(step, 0), len(SPEEDS) - 1)

    def _choose(self, kernel: str | None, launch: int | None) -> None:
        if kernel is not None and kernel != self._session.facts.mangled:
            self._session.select(kernel)
        if launch is not None:
            self._stop_at(launch)

    def _look(self) -> None:
        self._frame: Frame | None = self._session.frame()
        facts = self._session.facts
        self._listing: Listing | None = listing_of_trace(self._session.trace.path, facts)

    def _tell(self) -> None:
        where = f"launch {self._session.position + 1} of {self._session.count}"
        speed = f"{SPEEDS[self._speed]:g} launches a second"
        how = f"playing, {speed}" if self._playing else f"stopped at {where}"
        self._status = Status("running", aside=how)

    def _call_back(self) -> None:
        """Beside the replay; what comes of it is appended to the log."""
        trace = self._session.trace
        self._log = [*self._log, *log_of(self._callback, trace, self._callback_seconds)]
