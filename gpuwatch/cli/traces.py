"""Which trace a name on the command line means."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.probe.catalogue import folder
from gpuwatch.trace import is_trace


def find_trace(name: str) -> Path:
    """`name`, or the shipped trace that it names from any folder: h200/gemm."""
    shipped = folder("kernels") / name.removeprefix("kernels/")
    return shipped if not Path(name).exists() and is_trace(shipped) else Path(name)


def names_trace(name: str) -> bool:
    """Whether it is to be read as a trace: any folder is, so that a damaged one is told as such."""
    path = find_trace(name)
    return is_trace(path) or path.is_dir()
