"""The memory of the host threads that run blocks."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.sim.layout import BlockField, WorkerField

_ALIGN = 64
_NO_RESERVE = 0x4000
"""Linux's MAP_NORESERVE: pages count when they are first written."""


class Worker:
    """The memory of one host thread: its state, and shared and local memory, suspended warps and
    state of each block in flight."""

    def __init__(self, strides: Sequence[int], slots: int) -> None:
        """`strides` are the bytes of shared and local memory and of the warps of one block."""
        sizes = [WorkerField.BYTES, *(s * slots for s in (*strides, BlockField.BYTES))]
        self.parts = [aligned(size) for size in sizes]

    def reset(self) -> None:
        self.parts[0][:] = 0
        self.parts[0][WorkerField.FAULT :][:4].view(np.int32)[0] = -1

    def clear_local(self) -> None:
        """Local memory as it was at first."""
        self.parts[2][:] = 0

    def read(self, kind: type[np.generic], field: int, count: int = 1) -> list[int]:
        size = np.dtype(kind).itemsize * count
        return [int(v) for v in self.parts[0][field : field + size].view(kind)]


def aligned(size: int) -> NDArray[np.uint8]:
    """Zeroed bytes at a 64-byte boundary; what is never touched takes no memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    return np.frombuffer(mmap.mmap(-1, max(size, _ALIGN), flags=flags), np.uint8)[:size]
