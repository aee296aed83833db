"""Programs that are run leave nothing behind."""

from __future__ import annotations

import time
from pathlib import Path

from gpuwatch.toolchain.process import run


def _runs(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in "XZ"


def test_what_a_program_leaves_running_is_ended_with_it() -> None:
    done = run(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"], timeout=60)
    assert done.status == 0
    left = int(done.output)
    until = time.monotonic() + 60
    while _runs(left) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _runs(left)
