"""A session in this process, with its progress on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from gpuwatch.cli.traces import names_trace
from gpuwatch.device import check_device
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.probe import load

Told = Callable[[int], None]
"""Hears how many launches are done."""


def check(options: Options) -> None:
    """Raises UserError for names that a session would fail on at once."""
    for source in options.sources:
        if names_trace(source):
            hint = f"a trace is shown with: gpuwatch replay {source}"
            raise UserError(f"'{source}' is a folder, not a source", hint=hint)
        if not Path(source).exists():
            raise UserError(f"there is no source '{source}'", hint="check the path")
    check_device(options.device)
    load(options.probe)


@contextmanager
def prepared_session(options: Options, launches: int) -> Iterator[tuple[Session, Told]]:
    """A session with kernel and probe attached, and what to call as its launches go on.

    After an error that leaves the device useless the process ends at once.
    """
    shown = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as bar:
        task = bar.add_task("starting", total=launches)
        session = Session(options, lambda text: bar.update(task, description=text))
        try:
            session.prepare()
            bar.update(task, description="launching")
            yield session, lambda count: bar.update(task, completed=min(count, launches))
        except UserError as problem:
            if problem.fatal:
                bar.stop()
                _abandon(problem)
            raise
        finally:
            session.close()


def _abandon(problem: UserError) -> NoReturn:
    """Ends the process at once: freeing what it holds on a lost device would wait for ever."""
    print(f"gpuwatch: {problem.render()}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(problem.status)
