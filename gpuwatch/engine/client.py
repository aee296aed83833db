"""The screen's side of the worker process."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType

from gpuwatch.device.base import DeviceInfo
from gpuwatch.engine.choices import probe_choices
from gpuwatch.engine.frame import Frame, KernelChoice, Listing, LogEntry, ProbeChoice, Status
from gpuwatch.engine.mailbox import Envelope, Mailbox, MemoryLog
from gpuwatch.engine.messages import (
    Answer,
    Aside,
    Give,
    Known,
    Problems,
    Record,
    Request,
    Reset,
    Select,
    Stop,
    Taken,
)
from gpuwatch.engine.options import Options
from gpuwatch.engine.recording import default_folder
from gpuwatch.engine.worker import serve
from gpuwatch.errors import UserError
from gpuwatch.launch import LaunchForm

_ASK_SECONDS = 0.15
"""How long a worker has to stop by itself; then it is told to by SIGTERM, then killed."""
_TERM_SECONDS = 0.2
_LOG_ENTRIES = 2000


class WorkerClient:
    """Implements `frame.Watch`. Starts the worker at once; create it before Textual runs.

    Raises UserError for a probe that cannot be read.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._known: Known | None = None
        self._sources = options.sources
        self._probes = probe_choices(options.probe)
        self._entries: deque[LogEntry] = deque(maxlen=_LOG_ENTRIES)
        self._listing: Listing | None = None
        self._aside = ""
        self._status = Status("starting", "starting the worker")
        self._frame: Frame | None = None
        self._ticket = 0
        self._closed = False
        self._mailbox = Mailbox()
        self._log = MemoryLog()
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def __enter__(self) -> WorkerClient:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def kernels(self) -> list[KernelChoice]:
        return list(self._known.kernels) if self._known else []

    def probes(self) -> list[ProbeChoice]:
        return list(self._probes)

    def source(self) -> str:
        return self._options.source

    def sources(self) -> tuple[str, ...]:
        return self._sources

    def log(self) -> Sequence[LogEntry]:
        return tuple(self._entries)

    def listing(self) -> Listing | None:
        return self._listing

    def device(self) -> DeviceInfo | None:
        return self._known.device if self._known else None

    def status(self) -> Status:
        return replace(self._status, aside=self._aside) if self._aside else self._status

    def latest(self) -> Frame | None:
        return self._frame

    @property
    def process_id(self) -> int | None:
        """Of the worker."""
        return self._process.pid

    def select(
        self,
        kernel: str | None = None,
        probe: str | None = None,
        launch: int | None = None,
        source: str | None = None,
    ) -> None:
        with self._lock:
            self._ticket += 1
            self._frame = None
            self._options = replace(
                self._options,
                kernel=self._options.kernel if kernel is None else kernel,
                probe=self._options.probe if probe is None else probe,
                launch=self._options.launch if launch is None else launch,
            )
            if source is not None:
                others = tuple(one for one in self._sources if one != source)
                self._options = replace(
                    self._options, source=source, others=others, launch=None, kernel=kernel or ""
                )
            self._request(Select(kernel, probe, self._ticket, launch, source))

    def give(self, kernel: str, form: LaunchForm, probe: str | None = None) -> None:
        with self._lock:
            self._ticket += 1
            self._frame = None
            self._options = replace(
                self._options, kernel=kernel, probe=self._options.probe if probe is None else probe
            )
            self._request(Give(kernel, form, probe, self._ticket))

    def reset(self) -> None:
        with self._lock:
            self._request(Reset())

    def record(self, launches: int) -> str:
        target = str(default_folder())
        with self._lock:
            self._request(Record(target, launches))
        return target

    def restart(self) -> None:
        self._end_process()
        with self._lock:
            self._frame = None
            self._ticket = 0
            self._aside = ""
            self._accept_aside(Problems(()))
            self._status = Status("starting", "starting the worker again")
        self._start()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._end_process()
            self._mailbox.close()
            self._log.close()

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        self._connection: Connection = ours
        self._process: SpawnProcess = self._context.Process(
            target=serve,
            args=(self._options, theirs, self._mailbox.path, self._log.path),
            daemon=True,
        )
        self._process.start()
        theirs.close()
        self._ending = False
        self._reader = threading.Thread(
            target=self._read, args=(ours, self._process), name="gpuwatch-reader", daemon=True
        )
        self._reader.start()

    def _end_process(self) -> None:
        self._ending = True
        with self._lock:
            self._request(Stop())
        self._process.join(_ASK_SECONDS)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(_TERM_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._reader.join()
        self._connection.close()

    def _request(self, request: Request) -> None:
        """Sends to the worker; a worker that is gone is told of by the reader."""
        if self._process.is_alive():
            try:
                self._connection.send(request)
            except (BrokenPipeError, ConnectionResetError):
                self._status = self._death(self._process)

    def _read(self, connection: Connection, process: SpawnProcess) -> None:
        while True:
            try:
                answer: Answer = connection.recv()
            except (EOFError, OSError):
                break
            self._accept(answer)
        process.join()
        told = self._status.error is not None and self._status.error.fatal
        if not self._ending and not told:
            self._status = self._death(process)

    def _accept(self, answer: Answer) -> None:
        if isinstance(answer, Known):
            self._known = answer
        elif isinstance(answer, Status):
            self._status = answer
        elif isinstance(answer, Envelope):
            self._take(answer)
        else:
            self._accept_aside(answer)

    def _accept_aside(self, answer: Aside | Problems | LogEntry | Listing) -> None:
        match answer:
            case Aside():
                self._aside = answer.text
            case Problems():
                found = dict(answer.found)
                self._probes = [
                    replace(probe, problem=found.get(probe.name, "")) for probe in self._probes
                ]
            case LogEntry():
                self._entries.append(answer)
            case Listing():
                self._listing = answer

    def _take(self, envelope: Envelope) -> None:
        frame = self._mailbox.take(envelope)
        with self._lock:
            if envelope.ticket == self._ticket:
                self._frame = frame
            self._request(Taken())

    def _death(self, process: SpawnProcess) -> Status:
        code = process.exitcode
        how = f"with status {code}"
        if code is not None and code < 0:
            how = f"by {signal.Signals(-code).name}"
        return Status(
            "failed",
            f"the worker process ended {how}",
            UserError(
                f"the worker process ended {how}",
                detail=self._log.tail(),
                hint="ctrl+r starts it again with the same kernel and probe",
                status=1,
                fatal=True,
            ),
        )
