"""Whether a launch's warps may be placed on the axis of all SMs, and where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuwatch.analysis.occupancy import SmColumns, sm_columns
from gpuwatch.analysis.sm_placing import placing_of
from gpuwatch.analysis.time_axis import TimeAxis
from gpuwatch.analysis.warps import WarpColumns

ORIGIN = np.array([1_000_000, 9_000_000])
AXIS = TimeAxis(ORIGIN, 0.5, 32.0, 10.0, 0.0, drift_ns=6.0, drift_seconds=2.0)
APART = TimeAxis(
    ORIGIN, 0.5, 32.0, 10.0, 4.6e-4, rates=np.array([0.5, 0.5 * (1 - 4.6e-4)]), rate_noise=1.5e-5
)


def _launch(after_ns: float, span_ns: float, axis: TimeAxis) -> tuple[WarpColumns, SmColumns]:
    """One warp on each of two SMs, which start and end at the same time."""
    sm = np.array([0, 1], np.int32)
    rates = axis.rate(sm)
    start = axis.origin + np.rint(after_ns / rates * np.ones(2)).astype(np.int64)
    elapsed = np.rint(span_ns / rates * np.ones(2)).astype(np.int64)
    rows = np.arange(2)
    warps = WarpColumns(rows, rows, sm, start, elapsed, elapsed.astype(float), np.ones(2, int))
    return warps, sm_columns(sm, rows, start, elapsed, sm_count=3, warps_per_sm=64)


@pytest.mark.parametrize("axis", [AXIS, APART], ids=["alike", "apart"])
@pytest.mark.parametrize("after_ns", [3e6, -2e6])
def test_what_happens_at_once_is_placed_at_once(axis: TimeAxis, after_ns: float) -> None:
    placing = placing_of(axis, *_launch(after_ns, 400_000.0, axis))
    assert placing is not None and placing.holds and not placing.stale
    assert placing.begin * 0.5 == pytest.approx([after_ns] * 2, abs=1)
    assert placing.elapsed * 0.5 == pytest.approx([400_000.0] * 2, abs=1)


def test_the_limit_is_a_part_of_the_span_but_some_microseconds() -> None:
    long, short = (placing_of(AXIS, *_launch(0.0, span, AXIS)) for span in (400_000.0, 900.0))
    assert long is not None and long.limit_ns == pytest.approx(20_000)
    assert short is not None and short.limit_ns == 2000.0


def test_the_error_grows_with_the_distance_of_the_launch() -> None:
    near, far = (placing_of(APART, *_launch(at, 10_000.0, APART)) for at in (1e6, 1e9))
    assert near is not None and near.holds and near.error_ns == pytest.approx(10 + 30, abs=1)
    assert far is not None and not far.holds and far.stale
    assert far.error_ns == pytest.approx(30_010, rel=1e-3)


def test_sms_seen_to_drift_are_not_placed() -> None:
    moving = replace(AXIS, drift_ns=730_000.0)
    held, lost = (placing_of(moving, *_launch(at, 10_000.0, AXIS)) for at in (1e6, 20e6))
    assert held is not None and held.holds
    assert lost is not None and not lost.holds and lost.stale


def test_readings_off_their_lines_are_not_mended_by_measuring_again() -> None:
    placing = placing_of(replace(AXIS, residual_ns=3000.0), *_launch(0.0, 10_000.0, AXIS))
    assert placing is not None and not placing.holds and not placing.stale


def test_an_sm_without_readings_has_no_place() -> None:
    launch = _launch(0.0, 10_000.0, AXIS)
    assert placing_of(replace(AXIS, origin=np.array([1_000_000, -1])), *launch) is None


def test_warps_of_no_known_sm_do_not_count() -> None:
    warps, sms = _launch(1e6, 10_000.0, AXIS)
    warps.sm[1], warps.start[1] = -1, 0
    placing = placing_of(AXIS, warps, sms)
    assert placing is not None and placing.error_ns < 11
    warps.sm[0] = -1
    assert placing_of(AXIS, warps, sms) is None
