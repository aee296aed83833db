"""When each SM ran, on the axis that all SMs share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuwatch.analysis.timeline import block_spans
from gpuwatch.engine.frame import Frame


@dataclass(frozen=True, slots=True)
class SmTimes:
    """When an SM's first warp started and its last one ended, in us since the launch's first."""

    sm: int
    start_us: float
    end_us: float


def sm_times(frame: Frame) -> list[SmTimes]:
    """Of every SM that ran a warp; [] without a common axis."""
    axis, warps, sms = frame.time_axis, frame.warps_table, frame.sms
    if axis is None or warps is None or sms is None:
        return []
    start = axis.cycles(warps.sm, warps.start)
    spans = block_spans(warps.sm, warps.block, start, warps.elapsed, len(sms.sm), common=True)
    scale = axis.ns_per_cycle / 1e3
    used = np.flatnonzero(np.diff(spans.bounds))
    starts = spans.begin[spans.bounds[used]] * scale
    ends = np.maximum.reduceat(spans.end, spans.bounds[used]) * scale if len(used) else starts
    rows = zip(used.tolist(), starts.tolist(), ends.tolist(), strict=True)
    return [SmTimes(*row) for row in rows]


def as_json(frame: Frame) -> dict[str, Any] | None:
    """The axis, how good it is, and each SM's times on it; None without one."""
    axis = frame.time_axis
    if axis is None:
        return None
    return {
        "modelled": axis.modelled,
        "ns_per_cycle": axis.ns_per_cycle,
        "step_ns": axis.step_ns,
        "residual_ns": axis.residual_ns,
        "rate_spread": axis.rate_spread,
        "drift_ns": axis.drift_ns,
        "drift_seconds": axis.drift_seconds,
        "sm": [
            {"sm": one.sm, "start_us": one.start_us, "end_us": one.end_us}
            for one in sm_times(frame)
        ],
    }


def sentence(frame: Frame) -> str:
    """The axis in words; "" without one."""
    axis, times = frame.time_axis, sm_times(frame)
    if axis is None or not times:
        return ""
    last_start = max(one.start_us for one in times)
    first_end, last_end = (pick(one.end_us for one in times) for pick in (min, max))
    return (
        f"One time axis for all SMs: {last_end:,.1f} us from first start to last end; the last SM "
        f"starts at {last_start:,.2f} us, the first one ends at {first_end:,.1f} us "
        f"({axis.described})"
    )
