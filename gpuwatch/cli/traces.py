"""Where a trace is that the command line names."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.probe.catalogue import folder

SHIPPED = "traces"
"""Folder of the recordings that ship beside the kernels."""


def trace_at(name: str) -> Path:
    """`name` as a path, or the shipped recording that it names from any folder."""
    shipped = folder("kernels") / SHIPPED / Path(name).name
    if name == Path(name).name and not Path(name).exists() and shipped.is_dir():
        return shipped
    return Path(name)
