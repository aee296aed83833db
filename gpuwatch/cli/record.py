"""`gpuwatch record`: launches written to a trace folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli.arguments import callback_of, options_of
from gpuwatch.cli.printed import KeptOutput
from gpuwatch.cli.report_console import report_console
from gpuwatch.cli.sessions import prepared_session
from gpuwatch.engine import callbacks
from gpuwatch.engine.recording import default_folder, record
from gpuwatch.trace import Trace


def run(given: argparse.Namespace) -> int:
    callback = callback_of(given)
    target = Path(given.output) if given.output else default_folder()
    was_there = target.exists()
    try:
        with KeptOutput(), prepared_session(options_of(given), given.launches) as (session, told):
            folder = record(session, target, given.launches, told)
    except BaseException:
        if target.is_dir() and not was_there:
            print(f"gpuwatch: {target} holds the launches until then", file=sys.stderr)
        raise
    tell_recorded(folder, given.launches, callback, given.callback_timeout)
    return 0


def tell_recorded(
    folder: Path, launches: int, callback: str | None, seconds: float, *, errors: bool = False
) -> None:
    """Prints what was written, and what the callbacks say of the last launch; on standard error
    with `errors`."""
    trace = Trace(folder)
    last = trace.launch(len(trace.results) - 1)
    runs = callbacks.run_callbacks(callback, last.kernel, last.result.path, seconds)
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    console = report_console(errors=errors)
    console.print(f"{folder}: {launches} launches, {size:,} bytes")
    for one in runs:
        callbacks.render(one, console)
