"""`gpuwatch record -- CMD`: launches of a program, as it is, written to a trace folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli.arguments import callback_of, said_flags
from gpuwatch.cli.programs import Complaints, exit_status, program_options, run_to_end
from gpuwatch.cli.record import tell_recorded
from gpuwatch.engine import program_report
from gpuwatch.engine.frame import LogEntry
from gpuwatch.engine.program_attachment import Records
from gpuwatch.engine.program_recording import ProgramRecorder
from gpuwatch.engine.program_session import ProgramSession
from gpuwatch.engine.recording import default_folder
from gpuwatch.errors import UserError

_OF_A_SOURCE = (
    "device", "link", "no_run", "grid", "block", "shared", "arg", "nvcc_flags", "timeout", "launch"
)  # fmt: skip
"""Destinations of the flags that only a source which gpuwatch launches can follow."""


def run(given: argparse.Namespace) -> int:
    """Gives the exit status of the program, 1 where nothing was recorded although it ended well."""
    unfit = said_flags(given, _OF_A_SOURCE)
    if unfit:
        raise UserError(
            f"a program's launches are its own: they cannot follow {', '.join(unfit)}",
            hint="choose launches with -k, --range, -n",
        )
    callback = callback_of(given)
    if "plain_every" not in given.said:
        given.plain_every = 0
    given.max_rate = given.max_rate or None
    recorder = ProgramRecorder(
        Path(given.output) if given.output else default_folder(),
        given.launches if "launches" in given.said else 0,
    )
    try:
        status, why = _recorded(given, recorder)
    except BaseException:
        recorder.abandon()
        raise
    if not recorder.launches:
        recorder.abandon()
        print(f"gpuwatch: no launch was recorded: {why}", file=sys.stderr)
        return exit_status(status) or 1
    folder = recorder.finish()
    tell_recorded(folder, recorder.launches, callback, given.callback_timeout, errors=True)
    return exit_status(status)


def _recorded(given: argparse.Namespace, recorder: ProgramRecorder) -> tuple[int, str]:
    """The program's exit status, and why nothing was recorded if nothing was."""
    full = [False]

    def took(records: Records) -> None:
        if not full[0] and recorder.take(records):
            full[0] = True
            for key in tuple(session.attachments):
                session.detach(key)
            session.wanted = ""

    complain = Complaints()

    def said(entry: LogEntry) -> None:
        complain(entry)
        recorder.event(f"{entry.who}: {entry.text}")

    given.kernel = given.kernel or ProgramSession.EVERY
    session = ProgramSession(program_options(given, live=False), took, said)
    try:
        status = run_to_end(session)
        for line in program_report.event_lines(session):
            recorder.event(line)
        return status, program_report.nothing_words(session)
    finally:
        session.close()
        session.remove()
