"""When each SM ran, on the axis that all SMs share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuwatch.analysis.sm_placing import Placing, placing_of
from gpuwatch.analysis.timeline import block_spans
from gpuwatch.engine.frame import Frame


@dataclass(frozen=True, slots=True)
class SmTimes:
    """When an SM's first warp started and its last one ended, in us since the launch's first."""

    sm: int
    start_us: float
    end_us: float


def _placing(frame: Frame) -> Placing | None:
    """The frame's warps on the axis of all SMs; None without one."""
    if frame.time_axis is None or frame.warps_table is None or frame.sms is None:
        return None
    return placing_of(frame.time_axis, frame.warps_table, frame.sms)


def sm_times(frame: Frame) -> list[SmTimes]:
    """Of every SM that ran a warp; [] without a common axis that is good enough."""
    return _times(frame, _placing(frame))


def _times(frame: Frame, placing: Placing | None) -> list[SmTimes]:
    warps, sms = frame.warps_table, frame.sms
    if placing is None or not placing.holds or warps is None or sms is None:
        return []
    count = len(sms.sm)
    spans = block_spans(warps.sm, warps.block, placing.begin, placing.elapsed, count, common=True)
    scale = placing.axis.ns_per_cycle / 1e3
    used = np.flatnonzero(np.diff(spans.bounds))
    starts = spans.begin[spans.bounds[used]] * scale
    ends = np.maximum.reduceat(spans.end, spans.bounds[used]) * scale if len(used) else starts
    rows = zip(used.tolist(), starts.tolist(), ends.tolist(), strict=True)
    return [SmTimes(*row) for row in rows]


def as_json(frame: Frame) -> dict[str, Any] | None:
    """The axis, how good it is, and each SM's times on it, none where it is not `usable`; None
    without an axis. Each SM's `ns_per_cycle` is its own where `own_rates` says so."""
    axis, placing = frame.time_axis, _placing(frame)
    if axis is None or placing is None:
        return None
    return {
        "modelled": axis.modelled,
        "usable": placing.holds,
        "error_ns": placing.error_ns,
        "limit_ns": placing.limit_ns,
        "ns_per_cycle": axis.ns_per_cycle,
        "own_rates": axis.rates is not None,
        "step_ns": axis.step_ns,
        "residual_ns": axis.residual_ns,
        "rate_spread": axis.rate_spread,
        "rate_noise": axis.rate_noise,
        "drift_ns": axis.drift_ns,
        "drift_seconds": axis.drift_seconds,
        "sm": [
            {
                "sm": one.sm,
                "start_us": one.start_us,
                "end_us": one.end_us,
                "ns_per_cycle": float(axis.rate(np.array(one.sm))),
            }
            for one in _times(frame, placing)
        ],
    }


def sentence(frame: Frame) -> str:
    """The axis in words, or why SMs are not placed on it; "" without one."""
    placing = _placing(frame)
    if placing is None:
        return ""
    axis = placing.axis
    if not placing.holds:
        return (
            f"No time axis for all SMs: their clocks drift too much for one, by up to "
            f"{placing.error_ns / 1e3:,.1f} us at this launch, where {placing.limit_ns / 1e3:,.1f} "
            f"us would do ({axis.described})"
        )
    times = _times(frame, placing)
    last_start = max(one.start_us for one in times)
    first_end, last_end = (pick(one.end_us for one in times) for pick in (min, max))
    good = axis.described
    if not axis.modelled:
        good = f"+-{placing.error_ns:,.0f} ns: {good}"
    return (
        f"One time axis for all SMs: {last_end:,.1f} us from first start to last end; the last SM "
        f"starts at {last_start:,.2f} us, the first one ends at {first_end:,.1f} us ({good})"
    )
