"""Where the warps of a launch lie on the time axis of all SMs, and whether that is good enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.occupancy import SmColumns
from gpuwatch.analysis.time_axis import TimeAxis
from gpuwatch.analysis.warps import WarpColumns

Whole = NDArray[np.int64]

_PART = 0.05
"""Of the launch's span: so far may two SMs be apart."""
_LEAST_NS = 2000.0
"""Of a short launch: starts of its blocks on one SM after the other take about so long."""


@dataclass(frozen=True, slots=True)
class Placing:
    """One row a warp, in the table's order; those without an SM mean nothing. `begin` is cycles
    since the axis's zero, `elapsed` cycles of the same length. `error_ns` is how far two SMs may
    be apart at the launch, `limit_ns` how far they may be for one axis to be of use."""

    axis: TimeAxis
    begin: Whole
    elapsed: Whole
    error_ns: float
    limit_ns: float

    @property
    def holds(self) -> bool:
        """Whether SMs can be compared on the axis."""
        return self.error_ns <= self.limit_ns

    @property
    def stale(self) -> bool:
        """Whether it does not hold for its distance from the launch alone."""
        return not self.holds and self.axis.residual_ns <= self.limit_ns


def placing_of(axis: TimeAxis, warps: WarpColumns, sms: SmColumns) -> Placing | None:
    """The launch on the axis; None where no warp's SM is known, or one is not on the axis."""
    used, known = sms.sm[sms.used], warps.sm >= 0
    if not len(used) or not known.any() or not axis.covers(used):
        return None
    begin = axis.cycles(warps.sm, warps.start)
    end = axis.cycles(warps.sm, warps.start + warps.elapsed)
    farthest = max(-int(begin[known].min()), int(end[known].max()))
    span_ns = float(sms.busy_cycles.max()) * axis.ns_per_cycle
    return Placing(
        axis,
        begin,
        end - begin,
        axis.error_ns(farthest * axis.ns_per_cycle / 1e9),
        max(_PART * span_ns, _LEAST_NS),
    )
