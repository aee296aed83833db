"""Callbacks: programs of the user's that analyse a result file, run as a child process."""

from __future__ import annotations

import atexit
import importlib.util
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.reader_script import NAME, reader_script
from gpuwatch.trace.values import harmless

SECONDS = 60.0
"""Time limit of a callback."""
MOST_OUTPUT = 1 << 20
"""Bytes of its output that are kept: the first ones."""

_LATE = "late"
_NEUTRINO = '''"""What callbacks written for Neutrino import from it."""

from read import TraceHeader, TraceSection

__all__ = ["TraceHeader", "TraceSection"]
'''


@dataclass(frozen=True, slots=True)
class CallbackRun:
    """How a callback ended. `problem` is "" where it went well; `output` is what it printed."""

    file: str
    result: str
    seconds: float
    output: str
    problem: str = ""


def check_callback(callback: Path) -> None:
    """Raises UserError when there is no such file."""
    if not callback.is_file():
        raise UserError(
            f"there is no callback {callback}",
            hint="name a Python file with --callback, or pass --no-callback",
        )


def run_callback(
    callback: Path, result: Path, kernel: KernelFacts, timeout: float = SECONDS
) -> CallbackRun:
    """Runs `python callback result`, for so many seconds at most.

    It can `from read import parse, read`: a reader of this probe's maps that is made for the run,
    so nothing of the trace's own is executed. A failure is told in the run. Raises UserError when
    there is no such file.
    """
    check_callback(callback)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as name:
        folder = Path(name)
        (folder / NAME).write_text(reader_script(kernel.probe, kernel.maps), encoding="utf-8")
        if importlib.util.find_spec("neutrino") is None:
            (folder / "neutrino.py").write_text(_NEUTRINO, encoding="utf-8")
        command = [sys.executable, str(callback.resolve()), str(result.resolve())]
        output, problem = _run(command, folder, begun + timeout)
    if problem == _LATE:
        problem = f"it took longer than {timeout:g} s and was ended"
    text = harmless(output.decode("utf-8", "replace"), lines=True)
    if len(output) == MOST_OUTPUT:
        text += f"\n(what it printed beyond {MOST_OUTPUT:,} bytes is left out)\n"
    return CallbackRun(str(callback), str(result), time.monotonic() - begun, text, problem)


def _run(command: list[str], folder: Path, deadline: float) -> tuple[bytes, str]:
    """What the command printed, MOST_OUTPUT bytes at most, and what went wrong or ""."""
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    end = partial(_end, child)
    atexit.register(end)  # a thread that runs it may be gone before it is
    try:
        output = _printed(child, deadline)
        status = child.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired as late:
        return late.output or b"", _LATE
    finally:
        end()
        atexit.unregister(end)
    if status < 0:
        return output, f"it was ended by {signal.Signals(-status).name}"
    return output, f"it ended with status {status}" if status else ""


def _printed(child: subprocess.Popen[bytes], deadline: float) -> bytes:
    """All that the child prints until it closes its output; what is too much is passed over.
    Raises TimeoutExpired, with the output until then, at the deadline."""
    assert child.stdout is not None
    kept = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([child.stdout], [], [], left)[0]:
            raise subprocess.TimeoutExpired(child.args, left, kept)
        chunk = os.read(child.stdout.fileno(), 1 << 16)
        if not chunk:
            return kept
        kept += chunk[: MOST_OUTPUT - len(kept)]


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends what is left of the child and its own children."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        child.wait()
        if child.stdout is not None:
            child.stdout.close()
