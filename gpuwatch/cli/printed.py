"""What kernels print with printf, kept apart from what gpuwatch prints."""

from __future__ import annotations

import ctypes
import os
import sys
from types import TracebackType

_MOST = 64 << 10
"""Bytes of it that are shown: the last ones."""


class KeptOutput:
    """While this is entered, the process's standard output goes into memory; `text` is what
    arrived there. A GPU's driver writes what kernels print straight to it."""

    def __init__(self) -> None:
        self.text = ""

    def __enter__(self) -> KeptOutput:
        sys.stdout.flush()
        self._kept = os.memfd_create("gpuwatch-printed")
        self._own = os.dup(1)
        os.dup2(self._kept, 1)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)
        os.dup2(self._own, 1)
        os.close(self._own)
        size = os.fstat(self._kept).st_size
        self.text = os.pread(self._kept, _MOST, max(0, size - _MOST)).decode(errors="replace")
        os.close(self._kept)
