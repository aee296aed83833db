"""`gpuwatch report`: what some launches showed, of a source or of a trace."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from gpuwatch.cli.arguments import options_of
from gpuwatch.cli.printed import KeptOutput
from gpuwatch.cli.sessions import prepared_session
from gpuwatch.engine import callbacks, picture, report
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.options import Options
from gpuwatch.engine.recording import record
from gpuwatch.engine.replay import ReplaySession
from gpuwatch.trace import Trace, is_trace
from gpuwatch.trace.callback import CallbackRun

_FILE_COLUMNS = 200
"""Columns of a report that goes to a file or a pipe: tables are then never cut."""


def run(given: argparse.Namespace) -> int:
    """Reports a source or a trace."""
    if given.picture:
        picture.check(Path(given.picture))
    if is_trace(Path(given.source)):
        return run_trace(given)
    with KeptOutput() as kept:
        frame, runs = _launched(options_of(given), given)
    _print(given, frame, frame.printed or kept.text, runs)
    return 0


def run_trace(given: argparse.Namespace) -> int:
    """Reports a trace. Raises UserError when it is none."""
    frame, runs = _replayed(given)
    _print(given, frame, frame.printed, runs)
    return 0


def _print(given: argparse.Namespace, frame: Frame, printed: str, runs: list[CallbackRun]) -> None:
    if given.picture:
        picture.save(frame, Path(given.picture))
        print(f"saved {given.picture}", file=sys.stderr)
    if given.json:
        ran = [callbacks.as_json(one) for one in runs]
        print(json.dumps({**report.as_json(frame), "printed": printed, "callbacks": ran}, indent=2))
        return
    width = None if sys.stdout.isatty() else _FILE_COLUMNS
    console = Console(highlight=False, soft_wrap=True, width=width)
    report.render(frame, console)
    if printed:
        print(f"\nThe kernel printed:\n{printed.rstrip()}")
    for one in runs:
        callbacks.render(one, console)


def _replayed(given: argparse.Namespace) -> tuple[Frame, list[CallbackRun]]:
    """The frame of a trace's last launch, or of the one that is asked for."""
    session = ReplaySession(Path(given.source), given.kernel)
    try:
        session.prepare()
        if given.launch is not None:
            session.seek(given.launch)
        else:
            for _ in range(session.count - 1):
                session.step()
        runs = []
        if not given.no_callback:
            runs = callbacks.run_callbacks(
                given.callback, session.facts, session.result, given.callback_timeout
            )
        return session.frame(), runs
    finally:
        session.close()


def _launched(options: Options, given: argparse.Namespace) -> tuple[Frame, list[CallbackRun]]:
    """The frame of the last of so many launches; with --callback one more is recorded for it."""
    with prepared_session(options, given.launches) as (session, told):
        told(session.launches)
        while session.launches < given.launches:
            session.step()
            told(session.launches)
        frame = session.frame()
        if not given.callback:
            return frame, []
        with tempfile.TemporaryDirectory(prefix="gpuwatch-") as name:
            trace = Trace(record(session, Path(name) / "trace", 1))
            launch = trace.launch(0)
            runs = callbacks.run_callbacks(
                given.callback, launch.kernel, launch.result.path, given.callback_timeout
            )
        return frame, runs
