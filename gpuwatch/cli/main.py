"""The commands, and how each ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from gpuwatch.cli import (
    arguments,
    capture,
    compare,
    export,
    kernels,
    keys,
    probes,
    ptx,
    record,
    record_program,
    replay,
    report,
    run,
    serve,
)
from gpuwatch.cli.arguments import options_of, split_program
from gpuwatch.cli.sessions import check
from gpuwatch.cli.user_keys import user_keymap
from gpuwatch.doctor import doctor
from gpuwatch.engine.client import WorkerClient
from gpuwatch.errors import UserError
from gpuwatch.tui.app import can_draw, run_app


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, 2 for bad input, 1 for a fault while running."""
    given = list(sys.argv[1:] if words is None else words)
    given, program = split_program(given)
    command = given[0] if given and given[0] in _COMMANDS else "watch"
    rest = given if command == "watch" else given[1:]
    parse, run = _COMMANDS[command]
    parser = parse(command)
    # Options may stand between sources; a command with actions of its own cannot take that.
    options = parser.parse_args(rest) if command == "probes" else parser.parse_intermixed_args(rest)
    options.arguments, options.words = program, rest
    options.said = _said(parser, rest, options) if command != "probes" else frozenset()
    try:
        return run(options)
    except UserError as problem:
        print(f"gpuwatch: {problem.render()}", file=sys.stderr)
        return problem.status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1


def _said(
    parser: argparse.ArgumentParser, words: Sequence[str], parsed: argparse.Namespace
) -> frozenset[str]:
    """Destinations of what the words themselves say; all others have their defaults."""
    blank = argparse.Namespace(**dict.fromkeys(vars(parsed)))
    seen = vars(parser.parse_intermixed_args(words, blank))
    return frozenset(name for name, value in seen.items() if value is not None)


def _watch(given: argparse.Namespace) -> int:
    options = options_of(given)
    if not can_draw():
        return report.run(given)
    check(options)
    keymap = user_keymap()
    with WorkerClient(options) as watch:
        return run_app(
            watch,
            ascii_only=given.ascii,
            picker=not (given.no_picker or given.kiosk),
            shots=Path(given.screenshots),
            kiosk=given.kiosk_seconds if given.kiosk else None,
            keymap=keymap,
        )


def _record(given: argparse.Namespace) -> int:
    return record.run(given) if given.source is not None else record_program.run(given)


def _doctor(_given: argparse.Namespace) -> int:
    return doctor(Console(highlight=False, soft_wrap=True))


_Command = tuple[Callable[[str], argparse.ArgumentParser], Callable[[argparse.Namespace], int]]
_COMMANDS: dict[str, _Command] = {
    "watch": (arguments.watch_parser, _watch),
    "report": (arguments.report_parser, report.run),
    "record": (arguments.record_parser, _record),
    "capture": (capture.parser, capture.run),
    "replay": (arguments.replay_parser, replay.run),
    "export": (arguments.export_parser, export.run),
    "compare": (arguments.compare_parser, compare.run),
    "run": (run.parser, run.run),
    "serve": (serve.parser, serve.run),
    "kernels": (arguments.listing_parser, kernels.run),
    "probes": (probes.parser, probes.run),
    "ptx": (arguments.ptx_parser, ptx.run),
    "keys": (keys.parser, keys.run),
    "doctor": (arguments.base_parser, _doctor),
}
