"""Ctrl+C before the command line has even been imported."""

from __future__ import annotations

import subprocess
import sys

INTERRUPTED = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "gpuwatch.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from gpuwatch.cli import main
"""


def test_an_interrupt_while_importing_leaves_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "")
