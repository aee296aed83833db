"""What the commands that run a program have in common."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpuwatch.cli.arguments import above_zero, count, launch_range, memory_bytes
from gpuwatch.engine.frame import LogEntry
from gpuwatch.engine.program_session import EVER, ProgramOptions, ProgramSession, whole_command
from gpuwatch.errors import UserError
from gpuwatch.instrument.memory import DEFAULT_LIMIT

_POLL_SECONDS = 0.05


def add_program(parser: argparse.ArgumentParser, *, probing: bool = True) -> None:
    """The arguments of every command that runs a program; the program comes behind --."""
    add = parser.add_argument
    parser.usage = f"{parser.prog} [options] -- CMD ARGS..."
    add("-k", "--kernel", default="", help="kernels whose name has this in it")
    add("--cuda-home", metavar="DIR", help="a CUDA toolkit to take ptxas and CUPTI from")
    parser.set_defaults(probe="block_sched", max_rate=None, plain_every=None)
    parser.set_defaults(map_limit=DEFAULT_LIMIT, range=None)
    if probing:
        _add_probing(parser)


def _add_probing(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-p", "--probe", default="block_sched", help="presets or probe files, joined by commas")
    add(
        "--max-rate",
        type=above_zero,
        default=None,
        metavar="N",
        help="most probed launches a second (default: 60 on the screen, else all)",
    )
    add(
        "--plain-every",
        type=count,
        default=None,
        metavar="N",
        help="leave a launch plain after every N probed ones, 0 for none (default: 16 on the "
        "screen, else none)",
    )
    add(
        "--range",
        type=launch_range,
        metavar="A:B",
        help="only launches A to B of a kernel, counted from 0; either may be left out",
    )
    add(
        "--map-limit",
        type=memory_bytes,
        default=DEFAULT_LIMIT,
        metavar="BYTES",
        help="most memory for a probe's maps: 512M, 4G (default 1G)",
    )


def program_options(given: argparse.Namespace, *, live: bool) -> ProgramOptions:
    """On the screen launches go on while a probe is prepared and records are read; without it
    they wait. Raises UserError without a program."""
    rate, plain = given.max_rate, given.plain_every
    first, last = given.range or (0, None)
    return ProgramOptions(
        command=whole_command(given.arguments),
        kernel=given.kernel,
        probe=given.probe,
        cuda_home=given.cuda_home,
        map_limit=given.map_limit,
        hold=bool(given.kernel),
        wait=not live and bool(given.kernel) and rate is None,
        pace=rate if rate is not None else (60.0 if live else 0.0),
        plain_every=plain if plain is not None else (16 if live else 0),
        first=first,
        last=EVER if last is None else last,
    )


def run_to_end(session: ProgramSession, each: Callable[[], None] = lambda: None) -> int:
    """Starts the program and listens until it has ended, calling `each` after every turn; its exit
    status, negative for a signal.

    An interruption reaches the program, which is in the same group, and is its own affair. After
    SIGTERM or SIGHUP it goes on unprobed, which is said, and the signal is what is given. After a
    UserError it goes on so, too, and that is raised once it has ended.
    """
    with interruptions_ignored(), _endings_noted() as noted:
        session.start()
        try:
            while not session.idle and not noted:
                session.poll(_POLL_SECONDS)
                each()
        except UserError:
            session.close()
            session.wait()
            raise
        if not noted:
            return session.wait()
    goes_on(session.options.command, session.pid)
    return -noted[0]


def goes_on(command: Sequence[str], pid: int, where: str = "") -> None:
    """Says that the program runs without probes from now on."""
    words = f"gpuwatch: no probes any more, {shlex.join(command)} goes on as process {pid}"
    print(words + where, file=sys.stderr, flush=True)


@contextmanager
def interruptions_ignored() -> Iterator[None]:
    """They reach the program too, which is in the same group; how it ends is how we do."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _endings_noted() -> Iterator[list[int]]:
    """The numbers of the signals that are to end us, as they come."""
    noted: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(one, lambda number, _frame: noted.append(number)) for one in numbers]
    try:
        yield noted
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def exit_status(status: int) -> int:
    """As a shell gives it: 128 and the number of the signal that ended the program."""
    return status if status >= 0 else 128 - status


class Complaints:
    """Prints what goes wrong, beside the program's own output, each thing once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, entry: LogEntry) -> None:
        if entry.who == "error" and entry.text not in self._said:
            self._said.add(entry.text)
            print(f"gpuwatch: {entry.text}", file=sys.stderr, flush=True)


def require_room(target: Path) -> None:
    """Raises UserError where a file or folder of this name cannot be made."""
    place = next(one for one in (target, *target.absolute().parents) if one.exists())
    if not os.access(place, os.W_OK):
        raise UserError(
            f"{target} cannot be written: {place} may not be written to",
            hint="name a place on a disk with room, that you may write to",
        )


def follow(path: Path, wait: Callable[[], bool]) -> None:
    """Copies what comes into a file to standard output, until `wait` says that nothing more
    comes."""
    with path.open("rb") as file:
        going = True
        while going:
            going = wait()
            while piece := file.read(1 << 16):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
