"""`gpuwatch export`: a trace for other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuwatch.cli.traces import require_launch, require_trace
from gpuwatch.engine.replay import ReplaySession
from gpuwatch.trace.export import export


def run(given: argparse.Namespace) -> int:
    session = ReplaySession(require_trace(given.source), given.kernel)
    session.prepare()
    numbers = session.numbers
    if given.launch is not None:
        require_launch(session, given.launch)
        numbers = numbers[given.launch : given.launch + 1]
    target = Path(given.output) if given.output else None
    for one in export(session.trace, numbers, given.to, target):
        what = "slices" if given.to in ("perfetto", "chrome") else "rows"
        print(f"{one.path}: {one.count:,} {what}, {one.path.stat().st_size:,} bytes")
    return 0
