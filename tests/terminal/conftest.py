"""What all tests in a real terminal share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.fail("tmux is missing: install it (apt-get install tmux), and test again")
    running = Terminal(tmp_path)
    try:
        yield running
    finally:
        running.close()
