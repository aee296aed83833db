"""Waiting for what a worker process does."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 120.0


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
