"""gpuwatch's screen over the fake watch, for tests in a real terminal and for looking at it.

Arguments: any of ascii, h200, live (frames change), pick (first screen), fail.
"""

from __future__ import annotations

import itertools
import sys
import time

from fake_watch import A10, H200, FakeWatch, make_frame

from gpuwatch.engine.frame import Frame, Status
from gpuwatch.errors import Location, UserError
from gpuwatch.tui.app import run_app

CUDA_ERROR = UserError(
    'identifier "acc" is undefined',
    at=Location("gemm.cu", 12, 5, "    acc += a[i] * b[j];"),
    hint="correct the source; gpuwatch compiles it again",
)


class MovingWatch(FakeWatch):
    """Four launches a second, out of six prepared frames."""

    def latest(self) -> Frame | None:
        if not hasattr(self, "_frames"):
            self._frames = [make_frame(self.info, serial) for serial in range(1, 7)]
            self._began = time.monotonic()
            self._cycle = itertools.cycle(range(6))
            self._last = -1
        step = int((time.monotonic() - self._began) * 4)
        if step != self._last:
            self._last = step
            self.frame = self._frames[next(self._cycle)]
            self.frame.launches = 128 + step
        return self.frame


def main(words: list[str]) -> int:
    kind = MovingWatch if "live" in words else FakeWatch
    watch = kind(H200 if "h200" in words else A10)
    if "fail" in words:
        watch.now = Status("failed", "gemm.cu does not compile", CUDA_ERROR)
    return run_app(watch, ascii_only="ascii" in words, picker="pick" in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
