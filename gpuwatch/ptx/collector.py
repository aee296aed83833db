"""Pausing the garbage collector while many nodes are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Nodes of a module hold no cycles; looking for some takes a fifth of the time that reading
    or weaving a large kernel takes. Whether the collector was on before is kept."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
