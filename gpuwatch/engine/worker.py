"""The worker process: owns the device, launches, and publishes the newest frame."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from gpuwatch.engine import callbacks
from gpuwatch.engine.background import Rebuilt, guarded, internal_error
from gpuwatch.engine.beside import Beside
from gpuwatch.engine.frame import Listing, LogEntry, Status
from gpuwatch.engine.listing import listing_of
from gpuwatch.engine.mailbox import MailboxWriter, redirect_output
from gpuwatch.engine.messages import (
    Answer,
    Aside,
    Give,
    Known,
    Record,
    Request,
    Reset,
    Select,
    Stop,
    Taken,
)
from gpuwatch.engine.options import Options
from gpuwatch.engine.recording import record
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.trace import Trace

_FRAME_SECONDS = 1 / 60
_SHARE_LEFT = 4.0
"""While a saved source is compiled, a simulated launch is followed by a pause of so many of its
own lengths: both take all processors."""
_LEAST_PAUSE = 2.0
"""The least of it, in seconds: most sources are compiled by then."""
_LOOK_SECONDS = 0.005
"""Between two looks whether what is waited for is there."""
_IDLE_SECONDS = 0.05
"""How long a worker that launches nothing waits before it looks at what goes on beside it."""


def serve(options: Options, connection: Connection, mailbox_path: str, log_path: str) -> None:
    """Runs until told to stop or until the screen's process is gone.

    What libraries print goes to the log at `log_path`, not over the screen.
    SIGINT is the screen's to decide; SIGTERM unwinds, so that temporary files and running
    compilers are cleaned up.
    """
    redirect_output(log_path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    worker = _Worker(options, connection, mailbox_path)
    try:
        worker.run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the screen's process is gone, and with it everybody to tell
    finally:
        worker.close()


class _Worker:
    def __init__(self, options: Options, connection: Connection, mailbox_path: str) -> None:
        self._options = options
        self._connection = connection
        self._sending = threading.Lock()
        self._mailbox = MailboxWriter(mailbox_path)
        self._session: Session | None = None
        self._beside: Beside | None = None
        self._requests: deque[Request] = deque()
        """Taken from the connection, and not handled yet."""
        self._ticket = 0
        self._may_write = True
        self._running = False
        self._stopping = False
        self._published = 0.0
        self._listing: Listing | None = None
        """Of what is watched."""
        self._saved_problem: UserError | None = None
        """Why what was saved last cannot run, while the former build goes on."""

    def run(self) -> None:
        self._send(Status("starting", "opening the device"))
        self._attempt(self._open)
        if self._session is not None:
            self._attempt(self._prepare)
        while not self._stopping:
            self._handle_requests()
            self._attempt(self._look_beside)
            if self._running and not self._stopping:
                self._attempt(self._launch)

    def close(self) -> None:
        if self._beside is not None:
            self._beside.end()
        if self._session is not None:
            self._session.close()

    def _open(self) -> None:
        self._session = Session(self._options, self._tell_progress)
        self._beside = Beside(self._session, self._options, self._send)

    def _prepare(self) -> None:
        session = self._ready()
        kernels = session.kernels()
        self._send(Known(session.info, tuple(kernels)))
        if any(kernel.ready for kernel in kernels):
            session.prepare()
            self._go_on()
        else:
            self._send(Status("waiting", "no launch is known: say how to launch a kernel"))

    def _launch(self) -> None:
        session = self._ready()
        begun = time.monotonic()
        session.step(self._is_asked)
        if session.has_frame:
            self._publish(session)
        if self._beside is not None and self._beside.busy:
            self._make_way(max(_LEAST_PAUSE, _SHARE_LEFT * (time.monotonic() - begun)))

    def _make_way(self, seconds: float) -> None:
        """Launches nothing for so long, or until a request or another build is there."""
        end = time.monotonic() + seconds
        while (
            self._beside is not None
            and self._beside.busy
            and time.monotonic() < end
            and not self._is_asked()
        ):
            self._connection.poll(_LOOK_SECONDS)

    def _publish(self, session: Session) -> None:
        now = time.monotonic()
        if self._may_write and now - self._published >= _FRAME_SECONDS:
            self._published = now
            self._may_write = False
            self._send(self._mailbox.put(session.frame(), self._ticket))

    def _handle_requests(self) -> None:
        """Takes all requests that wait; waits a moment when there is nothing to launch."""
        while not self._stopping and (
            self._requests or self._connection.poll(0 if self._running else _IDLE_SECONDS)
        ):
            request = self._requests.popleft() if self._requests else self._connection.recv()
            self._attempt(partial(self._handle, request))

    def _is_asked(self) -> bool:
        """Whether the launch under way should give way: to requests, to another build, or to the
        compiler of one."""
        while self._connection.poll():
            request = self._connection.recv()
            if isinstance(request, Taken):
                self._handle(request)
            else:
                self._requests.append(request)
        if self._requests or self._beside is None:
            return bool(self._requests)
        return self._beside.has_rebuilt or self._beside.has_begun()

    def _handle(self, request: Request) -> None:
        match request:
            case Taken():
                self._may_write = True
            case Stop():
                self._stopping = True
            case Reset():
                if self._session is not None:
                    self._session.reset()
            case Record():
                self._record(request)
            case Select() | Give():
                self._select(request)

    def _record(self, request: Record) -> None:
        """The launches go on whether or not it can be written."""

        def told(count: int) -> None:
            self._send(Aside(f"recorded {count} of {request.launches} launches"))

        try:
            told(0)
            path = record(self._ready(), Path(request.target), request.launches, told)
        except UserError as problem:
            if problem.fatal:
                self._fail(problem)
            self._send(LogEntry(time.time(), "error", problem.render()))
            return
        finally:
            self._send(Aside(""))
        text = f"recorded {request.launches} launches in {path}"
        self._send(LogEntry(time.time(), "worker", text))
        if self._options.callback is not None:
            threading.Thread(target=self._call_back, args=(path,), daemon=True).start()

    def _call_back(self, folder: Path) -> None:
        """Beside the launches; what the callbacks print goes to the log."""
        named, seconds = self._options.callback or "", self._options.callback_timeout
        entries, problem = guarded(lambda: callbacks.log_of(named, Trace(folder), seconds))
        if problem is not None:
            entries = [LogEntry(time.time(), "error", problem.render())]
        with contextlib.suppress(OSError):  # the screen is gone
            for entry in entries or ():
                self._send(entry)

    def _select(self, request: Select | Give) -> None:
        """A selection that fails leaves the former one running, under the new ticket."""
        self._ticket = request.ticket
        self._published = 0.0
        was_running = self._running
        self._attempt(lambda: self._switch(request))
        self._running = self._running or was_running

    def _switch(self, request: Select | Give) -> None:
        session = self._ready()
        if isinstance(request, Give):
            session.give(request.kernel, request.form, request.probe)
        elif request.launch is not None:
            session.choose_launch(request.launch, request.probe)
        else:
            session.select(request.kernel, request.probe, request.source)
        if isinstance(request, Give) or request.source is not None:
            self._send(Known(session.info, tuple(session.kernels())))
        self._go_on()

    def _look_beside(self) -> None:
        """Takes over what was compiled or prepared meanwhile."""
        if self._beside is None:
            return
        rebuilt = self._beside.rebuilt()
        if rebuilt is not None:
            self._adopt(rebuilt)
        elif self._running:
            self._beside.take_prepared()
            listing = self._beside.marked(self._listing) if self._listing is not None else None
            if listing is not None:
                self._send(listing)

    def _adopt(self, rebuilt: Rebuilt) -> None:
        """What was saved takes over, or it is told why it cannot and the former build goes on."""
        session, problem = self._ready(), rebuilt.problem
        had = session.selected[0] != ""
        if rebuilt.build is not None:
            try:
                session.adopt(rebuilt.build)
            except UserError as refused:
                if refused.fatal:
                    raise
                problem = refused
        self._saved_problem = problem
        if problem is not None and not self._running:
            raise problem
        if problem is not None or rebuilt.source != session.source:
            self._tell_running()
        elif not had:
            self._prepare()
        else:
            self._published = 0.0
            self._send(Known(session.info, tuple(session.kernels())))
            self._go_on()

    def _tell_running(self) -> None:
        if self._running:
            self._send(Status("running", error=self._saved_problem))

    def _go_on(self) -> None:
        """Shows the launch that attaching made, if it made one, and goes on launching."""
        self._running = True
        self._tell_running()
        session = self._ready()
        if session.has_frame:
            self._publish(session)
        if self._beside is not None:
            self._beside.now_watching()
        self._listing = listing_of(session.build, *session.selected)
        self._send(self._listing)

    def _ready(self) -> Session:
        if self._session is None:
            raise UserError("the worker has no device", hint="restart it with ctrl+r", status=1)
        return self._session

    def _attempt(self, action: Callable[[], None]) -> None:
        try:
            action()
        except UserError as problem:
            self._fail(problem)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except Exception as problem:  # noqa: BLE001 - told to the user, with its trace as detail
            hint = "please report this; ctrl+r restarts the worker"
            self._fail(internal_error(problem, hint=hint))

    def _fail(self, problem: UserError) -> None:
        self._running = False
        self._send(Status("failed", problem.message, problem))
        if problem.fatal:
            self._session = None  # freeing what it holds would wait for ever, or fail again
            self._connection.close()
            os._exit(problem.status)

    def _tell_progress(self, text: str) -> None:
        self._send(Status("preparing", text))
        self._send(LogEntry(time.time(), "worker", text))

    def _send(self, answer: Answer) -> None:
        with self._sending:
            self._connection.send(answer)
