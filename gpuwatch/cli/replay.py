"""`gpuwatch replay`: a recorded trace on the live screen."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli import report
from gpuwatch.engine.replay_watch import ReplayWatch
from gpuwatch.tui.app import run_app
from gpuwatch.tui.replay_screen import ReplayScreen


def run(given: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        return report.run_trace(given)
    callback = None if given.no_callback else given.callback
    watch = ReplayWatch(Path(given.source), given.kernel, callback)
    return run_app(watch, ascii_only=given.ascii, picker=False, screen=ReplayScreen)
