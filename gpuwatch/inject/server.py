"""The run's folder and socket, and the processes that join."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.inject.protocol import CONTROL, TABLE, VERSION, Table

_MEMORY = Path("/dev/shm")
"""Where it can be written, the folder lies in memory: records go through it."""
_PREFIX = "gpuwatch-run-"
_PIECE = 1 << 16
_UNREADABLE = "its figures cannot be read, as from another container: no kernel of it is seen"


@dataclass(slots=True)
class Link:
    """The connection to one process. `send` never blocks for long: the library reads always."""

    connection: socket.socket
    folder: Path = Path()
    pid: int = 0
    parent: int = 0
    command: str = ""
    timed: bool = False
    table: Table | None = None
    gone: bool = False
    _unread: bytes = field(default=b"", repr=False)
    _sending: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def send(self, line: str) -> None:
        """Sends a line, from any thread; nothing to a process that is gone."""
        with self._sending:
            if self.gone:
                return
            try:
                self.connection.sendall(line.encode() + b"\n")
            except OSError:  # half a line may have gone: the reader finds that this is the end
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)

    def lines(self) -> Iterator[str]:
        """The lines that have arrived; afterwards `gone` tells whether the process is."""
        try:
            piece = self.connection.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        self.gone = self.gone or not piece
        *whole, self._unread = (self._unread + piece).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What every process is told first.

    `hold`: kernels are announced before they are launched, and a launch of a watched one waits
    until its probe is there; `wait`: a launch waits until there is room for its records. `pace` is
    the least time between two probed launches in us, and one launch in `plain_every` + 1 is left
    plain, 0 for none.
    """

    hold: bool = False
    wait: bool = False
    pace: int = 0
    plain_every: int = 0

    def line(self) -> str:
        return f"options {int(self.hold)} {int(self.wait)} {self.pace} {self.plain_every}"


Heard = Callable[[Link, str, list[str]], None]
"""Told each line of a process: its first word, and the others. "gone" comes last."""


class Server:
    """Listens in a folder of its own until it is closed."""

    def __init__(self, wishes: Wishes, heard: Heard) -> None:
        self._wishes, self._heard = wishes, heard
        try:
            home = _MEMORY if os.access(_MEMORY, os.W_OK) else None
            _sweep(Path(home or tempfile.gettempdir()))
            self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=home))
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(str(self.folder / CONTROL))
            self._listener.listen()
        except OSError as problem:
            raise UserError(
                f"the program cannot be listened to: {problem.strerror}",
                hint="TMPDIR names a folder that may be written to, with a short path",
                status=1,
            ) from problem
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self.links: list[Link] = []

    def poll(self, seconds: float) -> None:
        """Hears what has arrived, waiting for at most so long."""
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                self._accept()
            else:
                self._hear(key.data)

    def close(self) -> None:
        """The programs go on unprobed."""
        for link in self.links:
            with contextlib.suppress(OSError):
                link.connection.close()
        self._listener.close()
        self._selector.close()

    def remove(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(5.0)
        link = Link(connection)
        self.links.append(link)
        self._selector.register(connection, selectors.EVENT_READ, link)

    def _hear(self, link: Link) -> None:
        for line in link.lines():
            verb, *words = line.split(" ")
            if verb == "hello":
                self._welcome(link, words)
            self._heard(link, verb, words)
            if verb == "hello" and link.table is None:
                self._heard(link, "problem", [_UNREADABLE])
        if link.gone:
            self._selector.unregister(link.connection)
            link.connection.close()
            self._heard(link, "gone", [])

    def _welcome(self, link: Link, words: list[str]) -> None:
        version, pid, parent, timed = map(int, words[:4])
        link.pid, link.parent, link.timed = pid, parent, timed == 1
        link.command = " ".join(words[5:])
        link.folder = self.folder / str(pid)
        with contextlib.suppress(OSError, ValueError):  # of another mount or process namespace
            link.table = Table(link.folder / TABLE) if version == VERSION else None
        link.send("no" if link.table is None else self._wishes.line())


def _sweep(home: Path) -> None:
    """Removes the folders of runs that were killed, once none of their processes is left."""
    for folder in home.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):  # another user's, no run's, or going
            owner = int(folder.name.removeprefix(_PREFIX).partition("-")[0] or 0)
            joined = [int(one.name) for one in folder.iterdir() if one.name.isdecimal()]
            alive = any(map(_is_alive, [owner, *joined])) or _is_listened_to(folder)
            if folder.stat().st_uid == os.getuid() and not alive:
                shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _is_listened_to(folder: Path) -> bool:
    """Whether a run goes on in it: a container may share memory with us, and no process numbers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(1.0)
        answer = asking.connect_ex(str(folder / CONTROL))
        return answer not in (errno.ECONNREFUSED, errno.ENOENT)
