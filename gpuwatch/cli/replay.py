"""`gpuwatch replay`: a recorded trace on the live screen."""

from __future__ import annotations

import argparse

from gpuwatch.cli import report
from gpuwatch.cli.arguments import callback_of
from gpuwatch.cli.traces import require_trace
from gpuwatch.cli.user_keys import user_keymap
from gpuwatch.engine.replay_watch import ReplayWatch
from gpuwatch.errors import UserError
from gpuwatch.tui.app import can_draw, run_app
from gpuwatch.tui.replay_screen import ReplayScreen


def run(given: argparse.Namespace) -> int:
    if not can_draw():
        return report.run_trace(given)
    _refuse_for_screen(given)
    keymap = user_keymap()
    callback, path = callback_of(given), require_trace(given.source)
    watch = ReplayWatch(path, given.kernel, callback, given.callback_timeout)
    return run_app(watch, ascii_only=given.ascii, picker=False, screen=ReplayScreen, keymap=keymap)


def _refuse_for_screen(given: argparse.Namespace) -> None:
    """Raises UserError for what is said of a report; the screen shows every launch."""
    for name in ("launch", "json"):
        if name in given.said:
            raise UserError(
                f"--{name} is for a replay without a terminal",
                hint=f"leave it out, or print it: gpuwatch report {given.source} --{name}",
            )
