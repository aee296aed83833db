"""The command line."""

import sys

try:
    from gpuwatch.cli.main import main
except KeyboardInterrupt:
    sys.exit(130)

__all__ = ["main"]
