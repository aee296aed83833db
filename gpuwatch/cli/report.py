"""`gpuwatch report`: what some launches showed, of a source or of a trace."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from gpuwatch.cli.arguments import callback_of, options_of
from gpuwatch.cli.printed import KeptOutput
from gpuwatch.cli.report_console import report_console
from gpuwatch.cli.sessions import prepared_session
from gpuwatch.cli.traces import (
    names_trace,
    refuse_flags_of_launching,
    require_launch,
    require_source_or_trace,
    require_trace,
)
from gpuwatch.engine import callbacks, hardware_counters, picture, report
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.hardware_counters import Counters
from gpuwatch.engine.machine_code import with_marks
from gpuwatch.engine.options import Options
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.engine.recording import record
from gpuwatch.engine.replay import ReplaySession
from gpuwatch.errors import UserError
from gpuwatch.trace import Trace
from gpuwatch.trace.callback import CallbackRun


def run(given: argparse.Namespace) -> int:
    """Reports a source or a trace."""
    if given.picture:
        picture.check(Path(given.picture))
    if names_trace(given.source):
        if given.ncu:
            raise UserError(
                "ncu runs the program, and a trace has none",
                hint="name the source that was recorded, or leave out --ncu",
            )
        refuse_flags_of_launching(given)
        return run_trace(given)
    require_source_or_trace(given.source)
    with KeptOutput() as kept:
        frame, runs, watched = _launched(options_of(given), given)
    counted = _counted(watched, frame) if given.ncu else None
    _print(given, frame, frame.printed or kept.text, runs, counted)
    if isinstance(counted, UserError):
        raise counted
    return 0


def _counted(watched: WatchedProgram, frame: Frame) -> Counters | UserError:
    """What ncu counts, or why it does not: the report itself is printed all the same."""
    try:
        return hardware_counters.count(watched, frame)
    except UserError as problem:
        return problem


def run_trace(given: argparse.Namespace) -> int:
    """Reports a trace. Raises UserError when it is none."""
    frame, runs = _replayed(given)
    _print(given, frame, frame.printed, runs)
    return 0


def _print(
    given: argparse.Namespace,
    frame: Frame,
    printed: str,
    runs: list[CallbackRun],
    counted: Counters | UserError | None = None,
) -> None:
    if given.picture:
        picture.save(frame, Path(given.picture))
        print(f"saved {given.picture}", file=sys.stderr)
    if given.json:
        ran = [callbacks.as_json(one) for one in runs]
        values = {**report.as_json(frame), "printed": printed, "callbacks": ran}
        print(json.dumps(values | hardware_counters.as_json(counted), indent=2))
        return
    console = report_console()
    report.render(frame, console, lines=given.lines)
    if isinstance(counted, Counters):
        hardware_counters.render(counted, console)
    if printed:
        print(f"\nThe kernel printed:\n{printed.rstrip()}")
    for one in runs:
        callbacks.render(one, console)


def _replayed(given: argparse.Namespace) -> tuple[Frame, list[CallbackRun]]:
    """The frame of a trace's last launch, or of the one that is asked for."""
    callback, session = callback_of(given), ReplaySession(require_trace(given.source), given.kernel)
    try:
        session.prepare()
        if given.launch is not None:
            require_launch(session, given.launch)
            session.seek(given.launch)
        else:
            for _ in range(session.count - 1):
                session.step()
        runs = callbacks.run_callbacks(
            callback, session.facts, session.result, given.callback_timeout
        )
        return session.frame(), runs
    finally:
        session.close()


def _launched(
    options: Options, given: argparse.Namespace
) -> tuple[Frame, list[CallbackRun], WatchedProgram]:
    """The frame of the last of so many launches; with --callback one more is recorded for it."""
    with prepared_session(options, given.launches) as (session, told):
        told(session.launches)
        while session.launches < given.launches:
            session.step()
            told(session.launches)
        frame = with_marks(session, session.frame())
        if not given.callback:
            return frame, [], session.program
        with tempfile.TemporaryDirectory(prefix="gpuwatch-") as name:
            trace = Trace(record(session, Path(name) / "trace", 1))
            launch = trace.launch(0)
            runs = callbacks.run_callbacks(
                given.callback, launch.kernel, launch.result.path, given.callback_timeout
            )
        return frame, runs, session.program
