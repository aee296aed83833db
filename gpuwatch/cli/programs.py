"""What the commands that run a program have in common."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpuwatch.cli.arguments import above_zero, count, launch_range, memory_bytes
from gpuwatch.engine.frame import LogEntry
from gpuwatch.engine.program_session import ProgramOptions, ProgramSession, whole_command
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
    options = ProgramOptions(
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
    )
    return options if last is None else options.until(last)


def run_to_end(session: ProgramSession, each: Callable[[], bool] = lambda: True) -> int:
    """Starts the program and listens until it has ended; its exit status, negative for a signal.

    `each` is asked after every turn whether to go on listening; the program then ends by itself.
    An interruption reaches the program, which is in the same group, and is its own affair.
    """
    with interruptions_ignored():
        session.start()
        while not session.idle and each():
            session.poll(_POLL_SECONDS)
        return session.wait()


@contextmanager
def interruptions_ignored() -> Iterator[None]:
    """They reach the program too, which is in the same group; how it ends is how we do."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def exit_status(status: int) -> int:
    """As a shell gives it: 128 and the number of the signal that ended the program."""
    return status if status >= 0 else 128 - status


def complain(entry: LogEntry) -> None:
    """Prints what went wrong, beside the program's own output."""
    if entry.who == "error":
        print(f"gpuwatch: {entry.text}", file=sys.stderr, flush=True)


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
