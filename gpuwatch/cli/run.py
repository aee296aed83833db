"""`gpuwatch run`: a program as it is, its kernels live."""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

from gpuwatch.cli.arguments import base_parser, said_flags
from gpuwatch.cli.programs import (
    Complaints,
    add_program,
    exit_status,
    follow,
    goes_on,
    interruptions_ignored,
    program_options,
    require_room,
    run_to_end,
)
from gpuwatch.cli.report_console import report_console
from gpuwatch.cli.user_keys import user_keymap
from gpuwatch.engine import program_report, report
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.program_attachment import Records
from gpuwatch.engine.program_frames import FrameMaker
from gpuwatch.engine.program_session import ProgramSession
from gpuwatch.engine.program_watch import RunningProgram
from gpuwatch.errors import UserError
from gpuwatch.tui.app import can_draw, run_app
from gpuwatch.tui.program_screen import ProgramScreen

_WAIT_SECONDS = 0.05
_SIGNALLED = 128
"""Exit status above which the screen was ended by a signal: the program goes on without us."""


def parser(command: str) -> argparse.ArgumentParser:
    result = base_parser(command)
    add_program(result)
    add = result.add_argument
    add("--no-screen", action="store_true", help="list the kernels when the program has ended")
    add("--json", metavar="FILE", default="", help="the same as JSON into a file; no screen")
    add("--ascii", action="store_true", help="draw with ASCII characters only")
    add("--screenshots", default="screenshots", metavar="DIR", help="where c saves (screenshots/)")
    return result


def run(given: argparse.Namespace) -> int:
    """Gives the exit status of the program."""
    if given.no_screen or given.json or not can_draw():
        _check(given)
        return _without_screen(given)
    keymap = user_keymap()
    watch = RunningProgram(program_options(given, live=True))
    status = run_app(
        watch,
        ascii_only=given.ascii,
        shots=Path(given.screenshots),
        keymap=keymap,
        first=partial(ProgramScreen, given.probe, straight=bool(given.kernel)),
    )
    if status > _SIGNALLED:
        return _left(watch, status)
    return _go_on(watch)


def _check(given: argparse.Namespace) -> None:
    """Raises UserError for what has no meaning without a screen, before the program runs."""
    unfit = said_flags(given, ("probe", "range", "max_rate", "plain_every"))
    if unfit and not given.kernel:
        raise UserError(
            f"without a screen no kernel is chosen to be probed, which {', '.join(unfit)} asks for",
            hint="name one with -k; `gpuwatch run --no-screen -- CMD` lists them",
        )
    if given.json:
        target = Path(given.json)
        if target.is_dir() or not target.parent.is_dir():
            what = "is a folder" if target.is_dir() else "is in no folder that exists"
            raise UserError(f"{target} {what}", hint="name a file for --json")
        require_room(target)


def _left(watch: RunningProgram, status: int) -> int:
    """A signal has ended the screen: what the program has printed so far is printed."""
    output = Path(watch.program().output)
    follow(output, lambda: False)
    if watch.poll_status() is None:
        goes_on(watch.program().command, watch.program().pid, f"; its output goes to {output}")
    else:
        watch.remove()
    return status


def _go_on(watch: RunningProgram) -> int:
    """The program goes on unprobed, printing here; its end is ours."""

    def waits() -> bool:
        time.sleep(_WAIT_SECONDS)
        return watch.poll_status() is None

    if watch.poll_status() is None:
        goes_on(watch.program().command, watch.program().pid)
    with interruptions_ignored():
        try:
            follow(Path(watch.program().output), waits)
            return exit_status(watch.wait())
        finally:
            watch.remove()


def _without_screen(given: argparse.Namespace) -> int:
    """What the program prints goes where it always does, the list to standard error."""
    makers: dict[str, FrameMaker] = {}

    def took(records: Records) -> None:
        key = records.attachment.key
        makers.setdefault(key, FrameMaker(records.attachment)).observed()

    session = ProgramSession(program_options(given, live=False), took, Complaints())
    try:
        status = run_to_end(session)
        found = (maker.frame() for maker in makers.values())
        _print(given, session, [frame for frame in found if frame is not None])
    finally:
        session.close()
        session.remove()
    return exit_status(status)


def _print(given: argparse.Namespace, session: ProgramSession, frames: list[Frame]) -> None:
    if given.json:
        values = program_report.as_json(session)
        values["frames"] = [report.as_json(frame) for frame in frames]
        try:
            Path(given.json).write_text(json.dumps(values, indent=2) + "\n")
        except OSError as problem:
            print(f"gpuwatch: cannot write {given.json}: {problem.strerror}", file=sys.stderr)
        else:
            return
    console = report_console(errors=True)
    program_report.render(session, console)
    for frame in frames:
        report.render(frame, console)
