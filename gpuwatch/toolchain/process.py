"""Running an external program so that nothing of it outlives the call."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.errors import UserError


@dataclass(frozen=True, slots=True)
class Finished:
    """`output` is standard output and standard error in the order written; `status` is negative
    for the signal that ended the program; `timed_out` when the time limit ended it."""

    status: int
    output: str
    timed_out: bool = False


_running: set[subprocess.Popen[bytes]] = set()


def run(
    command: Sequence[str | Path],
    *,
    timeout: float,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    hint: str = "",
) -> Finished:
    """Runs `command` in a process group of its own, for at most `timeout` seconds.

    The whole group is killed at the time limit, when this call is interrupted, and with what the
    program leaves running when it ends; as long as that holds the output, this waits for more of
    it. Raises UserError, with `hint`, when the program cannot be started.
    """
    try:
        started = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C", **(environment or {})},
            start_new_session=True,
        )
    except OSError as problem:
        raise UserError(f"cannot run {command[0]}: {problem.strerror}", hint=hint) from problem
    with started as child:
        _running.add(child)
        try:
            output, _ = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            timed_out = child.poll() is None
            _kill_group(child)
            output, _ = child.communicate()
            return Finished(child.returncode, output.decode(errors="replace"), timed_out)
        finally:
            _running.discard(child)
            _kill_group(child)
    return Finished(child.returncode, output.decode(errors="replace"))


def end_all() -> None:
    """Kills every program that runs now, in whichever thread; their calls return at once."""
    for child in tuple(_running):
        _kill_group(child)


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
