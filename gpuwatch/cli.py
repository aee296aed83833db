"""The command line."""

from __future__ import annotations


def main() -> int:
    """Entry point of the `gpuwatch` command; returns the exit status."""
    raise SystemExit("gpuwatch: not assembled yet")
