"""Frames from the worker to the screen through shared memory.

The screen's process owns an anonymous memory file and the worker opens it through the owner's
file table, so the memory is gone when the owner is, however it ends. The worker writes a frame
only after the last one was taken: one slot is enough, and a slow screen delays no launch.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass

from gpuwatch.engine.frame import Frame

_ALIGN = 64


@dataclass(frozen=True, slots=True)
class Envelope:
    """Travels through the pipe: the small parts of a frame, and where its arrays lie (offset
    and size in bytes). `ticket` tells which selection the frame belongs to."""

    ticket: int
    small: bytes
    places: tuple[tuple[int, int], ...]


class Mailbox:
    """The owner's side."""

    def __init__(self) -> None:
        self._file = os.memfd_create("gpuwatch-frame")
        self.path = f"/proc/{os.getpid()}/fd/{self._file}"

    def take(self, envelope: Envelope) -> Frame:
        """The frame that `envelope` announces, copied out."""
        buffers = [bytearray(os.pread(self._file, size, at)) for at, size in envelope.places]
        frame = pickle.loads(envelope.small, buffers=buffers)
        if not isinstance(frame, Frame):
            raise TypeError(f"the worker sent a {type(frame).__name__}")
        return frame

    def close(self) -> None:
        os.close(self._file)


class MailboxWriter:
    """The worker's side of the mailbox at `path`."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR)

    def put(self, frame: Frame, ticket: int) -> Envelope:
        """Writes the frame's arrays; the envelope must be sent before the next `put`."""
        arrays: list[pickle.PickleBuffer] = []
        small = pickle.dumps(frame, protocol=5, buffer_callback=arrays.append)
        places, at = [], 0
        for array in arrays:
            with array.raw() as raw:
                _write_all(self._file, raw, at)
                places.append((at, raw.nbytes))
                at += -(-raw.nbytes // _ALIGN) * _ALIGN
        return Envelope(ticket, small, tuple(places))


class MemoryLog:
    """What the worker's libraries print, kept by the owner for when the worker dies."""

    def __init__(self) -> None:
        self._file = os.memfd_create("gpuwatch-log")
        self.path = f"/proc/{os.getpid()}/fd/{self._file}"

    def tail(self, most: int = 2000) -> str:
        """Its last `most` bytes as text."""
        size = os.fstat(self._file).st_size
        return os.pread(self._file, most, max(0, size - most)).decode(errors="replace")

    def close(self) -> None:
        os.close(self._file)


def redirect_output(path: str) -> None:
    """Sends this process's stdout and stderr to the log at `path`."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def _write_all(file: int, raw: memoryview, at: int) -> None:
    while raw.nbytes:
        written = os.pwrite(file, raw, at)
        raw, at = raw[written:], at + written
