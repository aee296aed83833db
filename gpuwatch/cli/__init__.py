"""The command line."""

from gpuwatch.cli.main import main

__all__ = ["main"]
