"""What the live screen costs and how fast it answers, in a terminal of 160x48.

    python tests/benchmarks/tui.py [--seconds N] [--only NAME] [--minutes N]

A process of its own shows frames that were made before; a thread in it takes them out of the
same mailboxes through which a worker's frames come, so copying is part of the figures. The
terminal is a pseudo-terminal that this process reads: an update is what the screen brackets as
one (DEC mode 2026), and a key is answered when the text that it leads to has been read.

Targets, on two cores: 33 k rows at 60 launches/s: 28 updates/s or more, below 60 % of a core, loop
lag p99 below 35 ms, key to paint p95 below 50 ms; 1 M rows: 5 updates/s or more; `q` below 0.5 s.
`--minutes` adds a run that long, for how the memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from array import array
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tui"))
from fake_watch import A10, FakeWatch, make_frame, sm_columns, warp_columns

from gpuwatch.analysis.spread import spread
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.mailbox import Envelope, Mailbox, MailboxWriter
from gpuwatch.tui.app import GpuwatchApp

COLUMNS, LINES = 160, 48
WARPS_PER_BLOCK = 24
WARM_UP_SECONDS = 3.0
KEYS = 40
SORTS = ("avg", "n", "warp", "block", "SM", "start", "elapsed")
UPDATE = b"\x1b[?2026h"
PROBE_2026, ANSWER_2026 = b"\x1b[?2026$p", b"\x1b[?2026;2$y"


@dataclass(frozen=True)
class Load:
    name: str
    rows: int
    launches_per_second: float
    frames: int


LOADS = (Load("33 k rows", 33_024, 60.0, 6), Load("1 M rows", 1_000_008, 10.0, 2))


# ---- the process with the screen


def frames_of(load: Load) -> list[Frame]:
    """Launches of `load.rows` warps, each with other cycles."""
    made = []
    for serial in range(1, load.frames + 1):
        table = warp_columns(A10, load.rows // WARPS_PER_BLOCK, WARPS_PER_BLOCK, serial)
        made.append(
            replace(
                make_frame(serial=serial),
                warps=len(table),
                records=len(table),
                grid=(load.rows // WARPS_PER_BLOCK, 1, 1),
                warps_table=table,
                sms=sm_columns(table, A10, WARPS_PER_BLOCK),
                elapsed=spread(table.elapsed),
            )
        )
    return made


class FedWatch(FakeWatch):
    """A thread takes a frame out of its mailbox at every launch."""

    def __init__(self, load: Load) -> None:
        super().__init__()
        self.frame = None
        self._rate = load.launches_per_second
        self._boxes: list[tuple[Mailbox, Envelope]] = []
        for frame in frames_of(load):
            box = Mailbox()
            self._boxes.append((box, MailboxWriter(box.path).put(frame, 0)))
        self._end = threading.Event()
        threading.Thread(target=self._feed, daemon=True).start()

    def _feed(self) -> None:
        began, launch = time.monotonic(), 0
        while not self._end.is_set():
            box, envelope = self._boxes[launch % len(self._boxes)]
            frame = box.take(envelope)
            frame.serial = frame.launches = launch
            self.frame = frame
            launch += 1
            late = time.monotonic() - began - launch / self._rate
            if late < 0:
                self._end.wait(-late)
            else:
                launch += int(late * self._rate)  # launches that nobody waited for

    def close(self) -> None:
        self._end.set()


class MeasuredApp(GpuwatchApp):
    """Notes by how much a task that sleeps 5 ms wakes up late."""

    lags: array[float]

    def on_mount(self) -> None:
        self.lags = array("f")
        self._meter = asyncio.create_task(self._measure())

    async def _measure(self) -> None:
        while True:
            asleep = time.perf_counter()
            await asyncio.sleep(0.005)
            self.lags.append(time.perf_counter() - asleep - 0.005)


def show(load: Load, report: str) -> int:
    """Runs the screen; writes the lags of its loop to the file `report`."""
    watch = FedWatch(load)
    app = MeasuredApp(watch, picker=False, owns_process=True)
    app.run()
    watch.close()
    Path(report).write_text(json.dumps(app.lags.tolist()))
    return app.return_code or 0


# ---- the terminal


class Terminal:
    """The screen's process in a pseudo-terminal, and what it wrote."""

    def __init__(self, load: Load, report: Path) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        for name in ("NO_COLOR", "SSH_CONNECTION", "SSH_TTY"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--show", load.name, str(report)],
            stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.updates = 0
        self.bytes = 0

    def read(self, seconds: float, until: bytes = b"") -> bool:
        """Reads on for `seconds`, or until the text `until` has come; says whether it has."""
        end, tail = time.perf_counter() + seconds, b""
        while (left := end - time.perf_counter()) > 0:
            if not select.select([self._master], [], [], left)[0]:
                return False
            try:
                piece = os.read(self._master, 1 << 16)
            except OSError:  # Linux says so when the other side has closed
                return False
            self.bytes += len(piece)
            seen = tail + piece
            self.updates += seen.count(UPDATE) - tail.count(UPDATE)
            if PROBE_2026 in piece:
                os.write(self._master, ANSWER_2026)
            if until and until in seen:
                return True
            tail = seen[-256:]
        return False

    def press(self, key: str) -> None:
        os.write(self._master, key.encode())

    def cpu_seconds(self) -> float:
        """Of all threads of the screen's process."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def quit(self) -> float:
        """Seconds from `q` to the end of the process."""
        self.press("q")
        asked = time.perf_counter()
        while self.process.poll() is None and time.perf_counter() - asked < 10:
            self.read(0.01)
        return time.perf_counter() - asked


def answer_times(terminal: Terminal) -> list[float]:
    """Seconds from a key that sorts by the next column to the title that says so."""
    times = []
    for number in range(KEYS):
        title = SORTS[number % len(SORTS)]
        arrow = "▲" if title in ("warp", "block", "SM", "start") else "▼"
        pressed = time.perf_counter()
        terminal.press("s")
        if not terminal.read(5.0, f"{title} {arrow}".encode()):
            raise TimeoutError(f"no answer to key {number}")
        times.append(time.perf_counter() - pressed)
        terminal.read(0.05 + 0.013 * (number % 5))
    return times


def measure(load: Load, seconds: float, minutes: float, report: Path) -> dict[str, float]:
    """Figures of the screen under a load; its process writes the lags to the file `report`."""
    terminal = Terminal(load, report)
    if not terminal.read(60.0, b"Warps"):
        raise TimeoutError("the screen did not come")
    terminal.read(WARM_UP_SECONDS)
    updates, cpu, began = terminal.updates, terminal.cpu_seconds(), time.perf_counter()
    written, memory = terminal.bytes, terminal.resident_mib()
    terminal.read(seconds)
    took = time.perf_counter() - began
    figures = {
        "updates/s": (terminal.updates - updates) / took,
        "CPU %": 100 * (terminal.cpu_seconds() - cpu) / took,
        "CPU ms/update": 1e3 * (terminal.cpu_seconds() - cpu) / max(1, terminal.updates - updates),
        "kB/update": (terminal.bytes - written) / 1e3 / max(1, terminal.updates - updates),
    }
    answers = answer_times(terminal)
    figures["key to paint p50 ms"], figures["key to paint p95 ms"] = (
        1e3 * float(value) for value in np.percentile(answers, (50, 95))
    )
    if minutes:
        terminal.read(60 * minutes)
        figures["MiB grown"] = terminal.resident_mib() - memory
    figures["MiB"] = terminal.resident_mib()
    figures["quit s"] = terminal.quit()
    lags = np.array(json.loads(report.read_text()))
    figures["loop lag p99 ms"] = 1e3 * float(np.percentile(lags, 99))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.show:
        load = next(load for load in LOADS if load.name == arguments.show[0])
        sys.exit(show(load, arguments.show[1]))
    for load in LOADS:
        if arguments.only not in load.name:
            continue
        print(f"{load.name} at {load.launches_per_second:.0f} launches/s, {COLUMNS}x{LINES}")
        with tempfile.TemporaryDirectory() as home:
            report = Path(home) / "lags.json"
            figures = measure(load, arguments.seconds, arguments.minutes, report)
        for name, value in figures.items():
            print(f"  {name:<22}{value:>10.2f}")


if __name__ == "__main__":
    main()
