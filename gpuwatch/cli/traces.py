"""Which trace a name on the command line means, and which flags say nothing to one."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuwatch.cli.arguments import find_source, said_flags
from gpuwatch.engine.replay import ReplaySession
from gpuwatch.errors import UserError
from gpuwatch.launch.stored import stored_source
from gpuwatch.probe.catalogue import folder
from gpuwatch.toolchain.compile import near
from gpuwatch.trace import is_trace

_OF_LAUNCHING = (
    "probe",
    "device",
    "launches",
    "link",
    "no_run",
    "grid",
    "block",
    "shared",
    "arg",
    "cuda_home",
    "nvcc_flags",
    "timeout",
    "plain_every",
    "max_rate",
    "map_limit",
)
"""Destinations of the flags that only what launches kernels can follow."""


def shipped_traces() -> list[str]:
    """Names by which `find_trace` knows what ships with gpuwatch."""
    home = folder("kernels")
    found = [path for path in home.glob("*/*") if is_trace(path)]
    return sorted(path.relative_to(home).as_posix() for path in found)


def find_trace(name: str) -> Path:
    """`name`, or the shipped trace that it names from any folder: h200/gemm."""
    shipped = folder("kernels") / name.removeprefix("kernels/")
    return shipped if not Path(name).exists() and is_trace(shipped) else Path(name)


def require_trace(name: str) -> Path:
    """As `find_trace`. Raises UserError when there is nothing of that name."""
    path = find_trace(name)
    if not path.exists():
        raise UserError(
            f"{name} does not exist",
            hint=f"name a folder that `gpuwatch record` wrote; {_shipped()}",
        )
    return path


def names_trace(name: str) -> bool:
    """Whether it is to be read as a trace: any folder is, so that a damaged one is told as such."""
    path = find_trace(name)
    return is_trace(path) or (path.is_dir() and stored_source(path) is None)


def require_source_or_trace(name: str) -> None:
    """Raises UserError when there is neither."""
    source = Path(find_source(name))
    if not source.exists() and not names_trace(name):
        forms = "name a CUDA source (.cu), a PTX file (.ptx) or a trace folder"
        hint = near(source) or f"{forms}; {_shipped()}"
        raise UserError(f"{name}: no such file", hint=hint)


def refuse_flags_of_launching(given: argparse.Namespace, *more: str) -> None:
    """Raises UserError for flags that a trace cannot follow, `more` of them by destination."""
    found = said_flags(given, (*_OF_LAUNCHING, *more))
    if given.arguments:
        found.append("arguments behind --")
    if found:
        raise UserError(
            f"a trace is of launches that are over, it cannot follow {', '.join(found)}",
            hint="leave that out, or name the source that was recorded",
        )


def require_launch(session: ReplaySession, number: int) -> None:
    """Raises UserError when the kernel has no recorded launch of that number, from 0."""
    if number >= session.count:
        raise UserError(
            f"there is no launch {number}, the trace has {session.count} of this kernel",
            hint=f"launches count from 0: the last is {session.count - 1}",
        )


def _shipped() -> str:
    return f"traces that ship with gpuwatch: {', '.join(shipped_traces())}"
