"""Weaving: what a probe position means, probe code to PTX, map layout for a launch."""

from gpuwatch.instrument.layout import lay_out
from gpuwatch.instrument.weave import weave

__all__ = ["lay_out", "weave"]
