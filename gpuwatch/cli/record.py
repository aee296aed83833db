"""`gpuwatch record`: launches written to a trace folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli.arguments import options_of
from gpuwatch.cli.printed import KeptOutput
from gpuwatch.cli.sessions import prepared_session
from gpuwatch.engine.recording import default_folder, record


def run(given: argparse.Namespace) -> int:
    target = Path(given.output) if given.output else default_folder()
    was_there = target.exists()
    try:
        with KeptOutput(), prepared_session(options_of(given), given.launches) as (session, told):
            folder = record(session, target, given.launches, told)
    except BaseException:
        if target.is_dir() and not was_there:
            print(f"gpuwatch: {target} holds the launches until then", file=sys.stderr)
        raise
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    print(f"{folder}: {given.launches} launches, {size:,} bytes")
    return 0
