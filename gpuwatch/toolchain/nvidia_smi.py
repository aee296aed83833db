"""What nvidia-smi tells of the driver and of modes that CUDA itself keeps to itself."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from gpuwatch.errors import UserError
from gpuwatch.toolchain.process import run

_FIELDS = "index,name,driver_version,mig.mode.current"
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class SmiGpu:
    """One GPU of the machine, whether or not CUDA shows it. `release` is the driver's."""

    index: int
    name: str
    release: str
    mig: bool


def ask() -> list[SmiGpu]:
    """The GPUs of the machine; none where there is no nvidia-smi or it cannot tell."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        done = run([tool, f"--query-gpu={_FIELDS}", "--format=csv,noheader"], timeout=_SECONDS)
    except UserError:
        return []
    return parse(done.output) if done.status == 0 else []


def parse(output: str) -> list[SmiGpu]:
    """Lines of `--query-gpu` in the order of fields asked for; other lines are left out."""
    rows = [[cell.strip() for cell in line.split(",")] for line in output.splitlines()]
    return [
        SmiGpu(int(row[0]), row[1], row[2], row[3] == "Enabled")
        for row in rows
        if len(row) == 4 and row[0].isdecimal()
    ]
