"""gpuwatch as a user runs it: a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What it printed and its status, run in `folder`, here without one."""
    return subprocess.run(
        [sys.executable, "-m", "gpuwatch", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=180,
        cwd=folder,
        check=False,
    )
