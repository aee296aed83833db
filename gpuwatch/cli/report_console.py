"""The console that reports are printed on."""

from __future__ import annotations

import sys

from rich.console import Console

_FILE_COLUMNS = 200
"""Columns of a report that goes to a file or a pipe: tables are then never cut."""


def report_console(*, errors: bool = False) -> Console:
    """On standard output, or standard error. Names of kernels, probes and devices are printed as
    they are: brackets and colons in them mean nothing."""
    stream = sys.stderr if errors else sys.stdout
    width = None if stream.isatty() else _FILE_COLUMNS
    return Console(
        highlight=False, soft_wrap=True, markup=False, emoji=False, width=width, stderr=errors
    )
