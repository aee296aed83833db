"""The worker process: owns the device, launches, and publishes the newest frame."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection

from gpuwatch.engine.frame import Status
from gpuwatch.engine.mailbox import MailboxWriter, redirect_output
from gpuwatch.engine.messages import Answer, Give, Known, Request, Reset, Select, Stop, Taken
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError

_FRAME_SECONDS = 1 / 60


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
        self._mailbox = MailboxWriter(mailbox_path)
        self._session: Session | None = None
        self._ticket = 0
        self._may_write = True
        self._running = False
        self._stopping = False
        self._published = 0.0

    def run(self) -> None:
        self._send(Status("starting", "opening the device"))
        self._attempt(self._prepare)
        while not self._stopping:
            self._handle_requests()
            if self._running and not self._stopping:
                self._attempt(self._launch)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def _prepare(self) -> None:
        session = Session(self._options, self._tell_progress)
        self._session = session
        kernels = session.kernels()
        self._send(Known(session.info, tuple(kernels)))
        if any(kernel.ready for kernel in kernels):
            session.prepare()
            self._go_on()
        else:
            self._send(Status("waiting", "no launch is known: say how to launch a kernel"))

    def _launch(self) -> None:
        session = self._ready()
        session.step()
        self._publish(session)

    def _publish(self, session: Session) -> None:
        now = time.monotonic()
        if self._may_write and now - self._published >= _FRAME_SECONDS:
            self._published = now
            self._may_write = False
            self._send(self._mailbox.put(session.frame(), self._ticket))

    def _handle_requests(self) -> None:
        """Takes all requests that wait; waits for one when there is nothing to launch."""
        while not self._stopping and self._connection.poll(0 if self._running else None):
            self._handle(self._connection.recv())

    def _handle(self, request: Request) -> None:
        match request:
            case Taken():
                self._may_write = True
            case Stop():
                self._stopping = True
            case Reset():
                self._ready().reset()
            case Select() | Give():
                self._select(request)

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
            session.give(request.kernel, request.form)
            self._send(Known(session.info, tuple(session.kernels())))
        elif request.launch is not None:
            session.choose_launch(request.launch)
        session.select(request.kernel, request.probe)
        self._go_on()

    def _go_on(self) -> None:
        """Shows the launch that attaching made, if it made one, and goes on launching."""
        self._running = True
        self._send(Status("running"))
        session = self._ready()
        if session.launches:
            self._publish(session)

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
            self._fail(
                UserError(
                    f"internal error in the worker: {type(problem).__name__}: {problem}",
                    detail=traceback.format_exc(),
                    hint="please report this; ctrl+r restarts the worker",
                    status=1,
                )
            )

    def _fail(self, problem: UserError) -> None:
        self._running = False
        self._send(Status("failed", problem.message, problem))
        if problem.fatal:
            self._session = None  # freeing what it holds would wait for ever, or fail again
            self._connection.close()
            os._exit(problem.status)

    def _tell_progress(self, text: str) -> None:
        self._send(Status("preparing", text))

    def _send(self, answer: Answer) -> None:
        self._connection.send(answer)
