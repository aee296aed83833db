"""`gpuwatch record`: launches written to a trace folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli.arguments import options_of
from gpuwatch.cli.printed import KeptOutput
from gpuwatch.cli.report_console import report_console
from gpuwatch.cli.sessions import prepared_session
from gpuwatch.engine import callbacks
from gpuwatch.engine.recording import default_folder, record
from gpuwatch.trace import Trace
from gpuwatch.trace.callback import CallbackRun, check_callback


def run(given: argparse.Namespace) -> int:
    if given.callback:
        check_callback(Path(given.callback))
    target = Path(given.output) if given.output else default_folder()
    was_there = target.exists()
    try:
        with KeptOutput(), prepared_session(options_of(given), given.launches) as (session, told):
            folder = record(session, target, given.launches, told)
    except BaseException:
        if target.is_dir() and not was_there:
            print(f"gpuwatch: {target} holds the launches until then", file=sys.stderr)
        raise
    runs = _callbacks(given, folder)
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    print(f"{folder}: {given.launches} launches, {size:,} bytes")
    for run in runs:
        callbacks.render(run, report_console())
    return 0


def _callbacks(given: argparse.Namespace, folder: Path) -> list[CallbackRun]:
    """Runs the callbacks for the last launch."""
    if given.no_callback:
        return []
    trace = Trace(folder)
    last = trace.launch(len(trace.results) - 1)
    return callbacks.run_callbacks(
        given.callback, last.kernel, last.result.path, given.callback_timeout
    )
