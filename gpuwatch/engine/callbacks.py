"""Which callback runs: the one that the user names, or the one that ships with a preset."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from gpuwatch.engine.frame import LogEntry
from gpuwatch.errors import UserError
from gpuwatch.probe import load
from gpuwatch.probe.catalogue import folder, presets
from gpuwatch.trace import Trace
from gpuwatch.trace.callback import CallbackRun, run_callback
from gpuwatch.trace.facts import KernelFacts

_EDGE_LINES = 15
"""Lines of a long output that are shown from its beginning and from its end."""


def callbacks_of(named: str | None, probe: str) -> list[Path]:
    """The file `named` by the user; for "" those that ship with the presets of which `probe` is
    made: what a trace or a probe file names is not executed. None for None."""
    if named is None:
        return []
    if named:
        return [Path(named)]
    shipped = {name for _, name, _ in presets()}
    callbacks = [load(part).callback for part in probe.split(",") if part in shipped]
    return [folder("probes") / callback for callback in callbacks if callback]


def run_callbacks(
    named: str | None, kernel: KernelFacts, result: Path, timeout: float
) -> list[CallbackRun]:
    """Runs the callbacks for one result file, each for so many seconds at most. Raises UserError
    when the user names a file that does not exist."""
    callbacks = callbacks_of(named, kernel.probe)
    return [run_callback(callback, result, kernel, timeout) for callback in callbacks]


def log_of(named: str | None, trace: Trace, timeout: float) -> list[LogEntry]:
    """Runs the callbacks for a trace's last launch; what they printed and how they failed."""
    last = trace.launch(len(trace.results) - 1)
    try:
        runs = run_callbacks(named, last.kernel, last.result.path, timeout)
    except UserError as problem:
        return [LogEntry(time.time(), "error", problem.render())]
    return [entry for run in runs for entry in _entries(run)]


def _entries(run: CallbackRun) -> list[LogEntry]:
    name = Path(run.file).name
    entries = [LogEntry(time.time(), "worker", f"callback {name}:\n{run.output.rstrip()}")]
    if run.problem:
        text = f"the callback {name} failed: {run.problem}"
        entries.append(LogEntry(time.time(), "error", text))
    return entries


def render(run: CallbackRun, console: Console) -> None:
    """Prints what the callback printed, and how it failed if it did."""
    console.print()
    name = Path(run.file).name
    console.print(f"callback {name} of {Path(run.result).name}, {run.seconds:.1f} s", style="bold")
    console.print(shortened(run.output), markup=False)
    if run.problem:
        console.print(f"the callback {name} failed: {run.problem}", style="red")


def shortened(output: str) -> str:
    """Its first and last lines, with a word of how many were left out in between."""
    lines = output.rstrip().split("\n")
    over = len(lines) - 2 * _EDGE_LINES
    if over <= 1:
        return "\n".join(lines)
    left_out = f"... {over:,} lines; gpuwatch report --json has them"
    return "\n".join((*lines[:_EDGE_LINES], left_out, *lines[-_EDGE_LINES:]))


def as_json(run: CallbackRun) -> dict[str, Any]:
    return asdict(run)
