"""gpuwatch's screen with a pane that fails as soon as x is pressed."""

from __future__ import annotations

import sys

from fake_watch import FakeWatch

from gpuwatch.tui.app import run_app
from gpuwatch.tui.histogram_pane import HistogramPane


def _fail(_pane: HistogramPane) -> None:
    raise RuntimeError("this pane is broken")


if __name__ == "__main__":
    HistogramPane.next_scale = _fail  # type: ignore[method-assign]
    sys.exit(run_app(FakeWatch(), picker=False))
