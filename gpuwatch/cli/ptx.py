"""`gpuwatch ptx`: the probed PTX, whole or as what was woven in."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from gpuwatch.cli.arguments import options_of
from gpuwatch.engine.session import Session
from gpuwatch.instrument import weave
from gpuwatch.instrument.model import Woven
from gpuwatch.probe import load

_GAP = "..."


def run(given: argparse.Namespace) -> int:
    session = Session(options_of(given))
    try:
        program = session.program
        mangled = program.find_kernel(given.kernel)
        woven = weave(program.module, mangled, load(given.probe))
    finally:
        session.close()
    if given.diff:
        print_diff(woven, given.context, Console(highlight=False, soft_wrap=True))
    else:
        sys.stdout.write(woven.text)
    return 0


def print_diff(woven: Woven, context: int, console: Console) -> None:
    """Every woven line, marked `+` and green, with `context` lines of the kernel around it."""
    for mark, number, line in diff_lines(woven, context):
        if mark == _GAP:
            console.print(Text(_GAP, "dim"))
        else:
            style = "green" if mark == "+" else ""
            console.print(Text(f"{number:>6} {mark} {line.expandtabs(8)}", style))
    lines, sites = len(woven.inserted_lines), len(woven.sites)
    console.print(f"{lines} lines woven in at {sites} place{'s' if sites != 1 else ''}")
    for note in woven.notes:
        console.print(f"note: {note}")


def diff_lines(woven: Woven, context: int) -> Iterator[tuple[str, int, str]]:
    """(mark, line number from 1, text) of woven lines ("+") and those around them (" ");
    (_GAP, 0, "") stands for lines left out."""
    lines = woven.text.split("\n")
    added = set(woven.inserted_lines)
    shown = {
        near
        for number in added
        for near in range(max(1, number - context), min(len(lines), number + context) + 1)
    }
    last = 0
    for number in sorted(shown):
        if number != last + 1:
            yield _GAP, 0, ""
        yield "+" if number in added else " ", number, lines[number - 1]
        last = number
    if last < len(lines):
        yield _GAP, 0, ""
