"""Programs that are run leave nothing behind."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from gpuwatch.errors import UserError
from gpuwatch.toolchain.process import run


def _runs(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in "XZ"


def test_a_program_that_ended_in_time_did_not_time_out() -> None:
    """Though what it leaves running holds its output open."""
    done = run(["sh", "-c", "sleep 600 & echo hi"], timeout=2)
    assert (done.status, done.output, done.timed_out) == (0, "hi\n", False)


def test_a_program_is_ended_at_its_time_limit() -> None:
    done = run(["sh", "-c", "echo hi; sleep 600"], timeout=1)
    assert (done.status, done.output, done.timed_out) == (-signal.SIGKILL, "hi\n", True)


def test_a_program_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"no program")
    with pytest.raises(UserError, match="program: Permission denied"):
        run([program], timeout=1)
    program.chmod(0o755)
    with pytest.raises(UserError, match="program: Exec format error") as told:
        run([program], timeout=1, hint="build it")
    assert told.value.hint == "build it"


def test_what_a_program_leaves_running_is_ended_with_it() -> None:
    done = run(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"], timeout=60)
    assert done.status == 0
    left = int(done.output)
    until = time.monotonic() + 60
    while _runs(left) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _runs(left)
