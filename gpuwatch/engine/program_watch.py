"""A running program as something that a screen can watch."""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gpuwatch.device.base import DeviceInfo
from gpuwatch.engine.background import guarded
from gpuwatch.engine.choices import probe_choices
from gpuwatch.engine.frame import Frame, KernelChoice, Listing, LogEntry, ProbeChoice, Status
from gpuwatch.engine.program_attachment import Records
from gpuwatch.engine.program_frames import FrameMaker
from gpuwatch.engine.program_kernels import ProgramKernel, ProgramProcess, ProgramState
from gpuwatch.engine.program_recording import ProgramRecorder
from gpuwatch.engine.program_session import ProgramOptions, ProgramSession
from gpuwatch.engine.recording import default_folder
from gpuwatch.errors import UserError
from gpuwatch.launch import LaunchForm

_POLL_SECONDS = 0.02
_LIST_SECONDS = 0.1
"""Between two looks at all figures."""
_FRAME_SECONDS = 1 / 30
"""Between two frames: no screen shows more."""
_LOG_ENTRIES = 2000


class RunningProgram:
    """Implements `program_kernels.ProgramWatch`. Starts the program at once; a thread of its own
    listens to it. `close` leaves the program running, unprobed.

    Raises UserError when it cannot be started or watched.
    """

    def __init__(self, options: ProgramOptions) -> None:
        self._probes = probe_choices(options.probe)
        self._entries: deque[LogEntry] = deque(maxlen=_LOG_ENTRIES)
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._session = ProgramSession(options, self._took, self._entries.append)
        output = Path(tempfile.gettempdir()) / f"{self._session.folder.name}.output"
        self._session.options = replace(options, output=output)
        self._probe = options.probe
        self._makers: dict[str, FrameMaker] = {}
        self._watched: str | None = None
        self._recorder: ProgramRecorder | None = None
        self._kernels: tuple[ProgramKernel, ...] = ()
        self._processes: tuple[ProgramProcess, ...] = ()
        self._state = ProgramState("starting", options.command, 0, str(output))
        self._frame: Frame | None = None
        self._listing: Listing | None = None
        self._status = Status("waiting", _waited_for(options))
        self._said = 0
        self._looked = self._published = 0.0
        self._closed = False
        try:
            self._session.start()
        except UserError:
            self._session.close()
            self._session.remove()
            raise
        self._thread = threading.Thread(target=self._run, name="gpuwatch-program", daemon=True)
        self._thread.start()

    # ---- ProgramWatch

    def program(self) -> ProgramState:
        return self._state

    def program_kernels(self) -> Sequence[ProgramKernel]:
        return self._kernels

    def processes(self) -> Sequence[ProgramProcess]:
        return self._processes

    def watched(self) -> str | None:
        return self._watched

    def detach(self) -> None:
        self._requests.put(self._detach)

    def kernels(self) -> list[KernelChoice]:
        return [
            KernelChoice(one.key, one.name, (), one.grid, one.block, one.launches)
            for one in self._kernels
            if one.probeable
        ]

    def probes(self) -> list[ProbeChoice]:
        return list(self._probes)

    def source(self) -> str:
        return " ".join(self._state.command)

    def sources(self) -> tuple[str, ...]:
        return (self.source(),)

    def log(self) -> Sequence[LogEntry]:
        return tuple(self._entries)

    def listing(self) -> Listing | None:
        return self._listing

    def device(self) -> DeviceInfo | None:
        for process in tuple(self._session.processes.values()):
            for ordinal in tuple(process.devices):
                return process.info(ordinal)
        return None

    def status(self) -> Status:
        return self._status

    def latest(self) -> Frame | None:
        return self._frame

    def select(
        self,
        kernel: str | None = None,
        probe: str | None = None,
        launch: int | None = None,  # noqa: ARG002 - launches are the program's own
        source: str | None = None,  # noqa: ARG002
    ) -> None:
        self._frame = None
        self._watched = kernel or self._watched
        self._requests.put(partial(self._select, kernel, probe))

    def give(self, kernel: str, form: LaunchForm, probe: str | None = None) -> None:
        """Does nothing: launches are the program's own."""

    def reset(self) -> None:
        self._requests.put(self._reset)

    def record(self, launches: int) -> str:
        target = default_folder()
        self._requests.put(partial(self._record, target, launches))
        return str(target)

    def restart(self) -> None:
        """Tries the selection once more: the program itself is not started again."""
        self.select()

    def close(self) -> None:
        """The program goes on unprobed; a recording under way keeps what it has."""
        self._closed = True
        self._thread.join(0.5)
        if self._recorder is not None:
            self._recorder.abandon()
        self._session.close()

    def poll_status(self) -> int | None:
        """The program's exit status, None while it runs; after `close`."""
        return self._session.poll_status()

    def wait(self) -> int:
        """Waits for the program to end, after `close`; its exit status."""
        return self._session.wait()

    def remove(self) -> None:
        """Removes what the run has left, its output too."""
        self._session.remove()
        Path(self._state.output).unlink(missing_ok=True)

    # ---- the thread

    def _run(self) -> None:
        while not self._closed:
            _, problem = guarded(self._turn, "program's listener")
            if problem is not None:
                self._status = Status("failed", problem.message, problem)

    def _turn(self) -> None:
        self._session.poll(_POLL_SECONDS)
        while not self._requests.empty():
            request = self._requests.get()
            _, problem = guarded(request, "program's listener")
            if problem is not None:
                self._status = Status("failed", problem.message, problem)
        now = time.monotonic()
        if now - self._looked >= _LIST_SECONDS:
            self._looked = now
            self._look()
        if self._watched is None and self._session.wanted and self._session.attachments:
            self._adopt()
        if now - self._published >= _FRAME_SECONDS:
            self._published = now
            self._publish()

    def _adopt(self) -> None:
        """Watches the kernel that was named, now that it has come; further ones run plain."""
        self._session.wanted = ""
        for key in list(self._session.attachments)[1:]:
            self._session.detach(key)
        for key, attachment in self._session.attachments.items():
            self._makers[key] = FrameMaker(attachment)
            self._watched = key

    def _look(self) -> None:
        session = self._session
        processes = tuple(session.processes.values())
        self._kernels = tuple(one for process in processes for one in process.listed())
        self._processes = tuple(process.shown() for process in processes)
        tables = [process.link.table for process in processes]
        launches = sum(table.launches for table in tables if table is not None)
        ended = session.status is not None
        self._state = replace(
            self._state,
            state="ended" if ended else "running",
            pid=session.pid,
            status=session.status,
            launches=launches,
        )

    def _publish(self) -> None:
        maker = self._makers.get(self._watched or "")
        if maker is None:
            return
        attachment = maker.attachment
        build = maker.build()
        if build is not None and build.observed != self._said:
            self._said = build.observed
            if self._frame is None:
                self._listing = maker.listing(build)
            self._frame = maker.frame()
        if attachment.problem is not None:
            self._status = Status("failed", attachment.problem.message, attachment.problem)
        elif build is None:
            gone = attachment.process.status is not None
            words = "its process has ended" if gone else "waiting for the program to launch it"
            self._status = Status("waiting", words)
        else:
            ended = self._state.state == "ended"
            self._status = Status("running", aside="the program has ended" if ended else "")

    def _took(self, records: Records) -> None:
        maker = self._makers.get(records.attachment.key)
        if maker is not None and maker.attachment is records.attachment:
            maker.observed()
        if self._recorder is not None and self._recorder.take(records):
            text = f"recorded {self._recorder.launches} launches in {self._recorder.finish()}"
            self._entries.append(LogEntry(time.time(), "worker", text))
            self._recorder = None

    def _select(self, kernel: str | None, probe: str | None) -> None:
        before = self._watched if kernel is None else kernel
        self._probe = probe or self._probe
        if before is None:
            return
        for key in tuple(self._session.attachments):
            if key != before:
                self._session.detach(key)
                self._makers.pop(key, None)
        self._status = Status("preparing", f"weaving {self._probe}")
        self._frame, self._listing, self._said = None, None, 0
        self._makers[before] = FrameMaker(self._session.attach(before, self._probe))
        self._watched = before

    def _detach(self) -> None:
        for key in tuple(self._session.attachments):
            self._session.detach(key)
        self._makers.clear()
        self._watched, self._frame, self._listing = None, None, None
        self._status = Status("waiting", "no probe is attached")

    def _reset(self) -> None:
        for maker in self._makers.values():
            maker.reset()

    def _record(self, target: Path, launches: int) -> None:
        if self._recorder is not None:
            self._recorder.abandon()
        self._recorder = ProgramRecorder(target, launches)


def _waited_for(options: ProgramOptions) -> str:
    if options.kernel:
        return f"waiting for a kernel with {options.kernel!r} in its name"
    return "waiting for the program's first kernel"
