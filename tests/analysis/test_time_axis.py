"""The fit of SM clocks to one axis, on made-up readings whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuwatch.analysis.time_axis import TimeAxis, fit
from gpuwatch.analysis.timeline import block_spans

CYCLE_NS = 1 / 1.98
READING = 60.0
"""Cycles from one reading of the timer to the next."""
HALF = 32
APART_NS = 1_000_000
APART = 4.6e-4
"""By which groups of an H200's SMs were seen to tick apart."""


def _offsets(sms: int) -> np.ndarray:
    return np.random.default_rng(3).integers(1 << 20, 1 << 44, sms)


def _steps(
    offsets: np.ndarray,
    step: int,
    *,
    start_ns: float = 5e15,
    rates: np.ndarray | None = None,
    seed: int = 1,
) -> np.ndarray:
    """What SMs note whose clocks show `offsets` at time `start_ns` and tick every CYCLE_NS."""
    rng = np.random.default_rng(seed)
    result = np.zeros((len(offsets), 2 * HALF, 3), np.uint64)
    for sm, offset in enumerate(offsets):
        cycle = CYCLE_NS if rates is None else CYCLE_NS / float(rates[sm])
        for half in range(2):
            begin = start_ns + half * APART_NS + float(rng.uniform(0, 2000))
            moments = _moments(begin, cycle, step, rng)
            for place, (before, after, shown) in enumerate(moments):
                clocks = [offset + int((at - start_ns) / cycle) for at in (before, after)]
                result[sm, half * HALF + place] = (*clocks, shown)
    return result


def _moments(
    begin: float, cycle: float, step: int, rng: np.random.Generator
) -> list[tuple[float, float, int]]:
    found: list[tuple[float, float, int]] = []
    former, now = begin, begin
    last = int(now // step) * step
    while len(found) < HALF:
        ahead = now + READING * cycle * float(rng.uniform(0.9, 1.1))
        if ahead + step < (last + 2 * step):  # nothing new until the timer steps
            ahead = max(ahead, last + step - READING * cycle * float(rng.uniform(0, 1)))
        shown = int(ahead // step) * step
        if shown != last:
            found.append((former, ahead + 8 * cycle, shown))
            last = shown
        former, now = ahead, ahead
    return found


@pytest.mark.parametrize("step", [32, 1000, 1024])
def test_clocks_of_all_sms_come_onto_one_axis(step: int) -> None:
    offsets = _offsets(132)
    axis = fit(_steps(offsets, step))
    assert axis is not None and axis.step_ns == step
    apart_ns = (axis.origin - offsets - (axis.origin - offsets)[0]) * CYCLE_NS
    assert np.abs(apart_ns).max() < 12
    assert axis.ns_per_cycle == pytest.approx(CYCLE_NS, rel=2e-5)
    assert 0 < axis.residual_ns < 20
    assert axis.rates is None and axis.rate_spread < axis.rate_noise < 2e-5


def test_instants_agree_on_the_axis_long_after_it_was_measured() -> None:
    offsets = _offsets(20)
    axis = fit(_steps(offsets, 32))
    assert axis is not None
    later = offsets + int(30e9 / CYCLE_NS)
    told = axis.cycles(np.arange(20), later) * axis.ns_per_cycle
    assert np.ptp(told) < 12


def test_an_sm_that_ticks_otherwise_shows() -> None:
    rates = np.ones(12)
    rates[5] = 1.001
    axis = fit(_steps(_offsets(12), 32, rates=rates))
    assert axis is not None and axis.rate_spread == pytest.approx(1e-3, rel=0.1)


def _two_groups(sms: int) -> np.ndarray:
    rates = np.ones(sms)
    rates[sms // 2 + 1 :] += APART
    return rates


def _later(offsets: np.ndarray, rates: np.ndarray, seconds: float) -> np.ndarray:
    return offsets + (seconds * 1e9 / CYCLE_NS * rates).astype(np.int64)


def _after(
    offsets: np.ndarray,
    rates: np.ndarray,
    seconds: float,
) -> tuple[TimeAxis, TimeAxis]:
    """The axis, and that of so many seconds later."""
    later = _later(offsets, rates, seconds)
    first = fit(_steps(offsets, 32, rates=rates))
    again = fit(_steps(later, 32, rates=rates, start_ns=5e15 + seconds * 1e9, seed=2))
    assert first is not None and again is not None
    return first, again


@pytest.mark.parametrize("step", [32, 1024])
def test_groups_of_sms_that_tick_apart_get_their_own_rates(step: int) -> None:
    offsets, rates = _offsets(132), _two_groups(132)
    axis = fit(_steps(offsets, step, rates=rates))
    assert axis is not None and axis.rates is not None
    assert axis.rate_spread == pytest.approx(APART, rel=0.05)
    assert axis.rates == pytest.approx(CYCLE_NS / rates, rel=axis.rate_noise)
    assert np.abs(axis.rates * rates / CYCLE_NS - 1).max() < 2e-5
    assert 0 < axis.residual_ns < 12
    apart_ns = (axis.origin - offsets - (axis.origin - offsets)[0]) * CYCLE_NS
    assert np.abs(apart_ns).max() < 12
    told = axis.cycles(np.arange(132), _later(offsets, rates, 0.1)) * axis.ns_per_cycle
    assert np.ptp(told) < 2 * axis.rate_noise * 0.1e9 < 0.1 * APART * 0.1e9


@pytest.mark.parametrize("seconds", [0.003, 0.1, 2.0])
def test_own_rates_tell_where_sms_will_be(seconds: float) -> None:
    first, again = _after(_offsets(132), _two_groups(132), seconds)
    told = again.after(first)
    assert told.drift_seconds == pytest.approx(seconds, rel=1e-3, abs=1e-5)
    assert told.drift_ns == again.drift_from(first)
    assert again.drift_from(first) < first.error_ns(seconds) + 25
    of_one_rate = replace(first, rates=None)
    assert again.drift_from(of_one_rate) == pytest.approx(APART * seconds * 1e9, rel=0.1)


def test_sms_that_tick_alike_stay_together_for_seconds() -> None:
    first, again = _after(_offsets(132), np.ones(132), 2.0)
    assert again.rates is None and again.drift_from(first) < 25
    told = again.after(first)
    assert told.error_ns(0.0) == told.residual_ns
    assert told.error_ns(-2.0) == told.error_ns(2.0) < 40
    assert first.error_ns(2.0) > 10_000


def test_sms_that_begin_to_tick_apart_show_as_drift() -> None:
    offsets, rates = _offsets(132), _two_groups(132)
    first = fit(_steps(offsets, 32))
    later = _later(offsets, rates, 2.0)
    again = fit(_steps(later, 32, rates=rates, start_ns=5e15 + 2e9, seed=2))
    assert first is not None and again is not None and again.rates is not None
    told = again.after(first)
    assert told.drift_ns == pytest.approx(APART * 2e9, rel=0.01)
    assert told.error_ns(0.01) == pytest.approx(APART * 1e7, rel=0.02)


def test_clocks_that_started_anew_tell_no_drift() -> None:
    first, again = _after(_offsets(12), np.ones(12), 2.0)
    assert first.after(again).drift_ns is None


def test_clocks_that_moved_against_each_other_show_as_drift() -> None:
    offsets = _offsets(12)
    first = fit(_steps(offsets, 32))
    moved = offsets + int(1e9 / CYCLE_NS)
    moved[3] += 2000
    again, same = (
        fit(_steps(clocks, 32, start_ns=5e15 + 1e9, seed=2))
        for clocks in (moved, offsets + int(1e9 / CYCLE_NS))
    )
    assert first is not None and again is not None and same is not None
    assert again.drift_from(first) == pytest.approx(2000 * CYCLE_NS, abs=25)
    assert same.drift_from(first) < 25


def test_interrupted_readings_do_not_count() -> None:
    steps = _steps(_offsets(6), 32)
    clean = fit(steps)
    steps[2, 7, 1] += np.uint64(90_000)
    steps[4, 40, 0] -= np.uint64(70_000)
    disturbed = fit(steps)
    assert clean is not None and disturbed is not None
    assert np.abs(clean.origin - disturbed.origin).max() <= 20
    assert disturbed.residual_ns == pytest.approx(clean.residual_ns, rel=0.1)


def test_sms_without_readings_are_off_the_axis() -> None:
    steps = _steps(_offsets(6), 32)
    steps[1] = 0
    steps[4, HALF:] = 0
    axis = fit(steps)
    assert axis is not None
    assert (axis.origin < 0).nonzero()[0].tolist() == [1, 4]
    assert axis.covers(np.array([0, 5])) and not axis.covers(np.array([0, 1]))
    assert not axis.covers(np.array([-1])) and not axis.covers(np.array([6]))
    assert fit(np.zeros((3, 2 * HALF, 3), np.uint64)) is None


def test_clocks_younger_than_the_timer_are_known_all_the_same() -> None:
    axis = fit(_steps(np.array([3, 40, 1 << 30]), 32))
    assert axis is not None and (axis.origin >= 0).all()


def test_young_clocks_of_their_own_rates_keep_their_distance() -> None:
    offsets, rates = np.array([3, 40, 1 << 30, 1 << 31]), _two_groups(4)
    axis = fit(_steps(offsets, 32, rates=rates))
    assert axis is not None and axis.rates is not None and (axis.origin >= 0).all()
    told = axis.cycles(np.arange(4), _later(offsets, rates, 0.001)) * axis.ns_per_cycle
    assert np.ptp(told) < 25


def test_modelled_clocks_start_together() -> None:
    axis = TimeAxis.shared(4, 2e9)
    assert axis.modelled and axis.covers(np.arange(4))
    assert axis.cycles(np.array([1, 3]), np.array([5, 9])).tolist() == [5, 9]
    assert axis.ns_per_cycle == axis.step_ns == 0.5


def test_blocks_of_two_sms_are_placed_on_one_axis() -> None:
    sm = np.array([0, 0, 1], np.int32)
    start, elapsed = np.array([1000, 1040, 70_100]), np.array([40, 20, 10])
    blocks = np.arange(3)
    apart = block_spans(sm, blocks, start, elapsed, 3)
    assert (apart.begin.tolist(), apart.end.tolist()) == ([0, 40, 0], [40, 60, 10])
    axis = TimeAxis(np.array([900, 70_010, 0]), 0.5, 32.0, 5.0, 0.0)
    common = block_spans(sm, blocks, axis.cycles(sm, start), elapsed, 3, common=True)
    assert (common.begin.tolist(), common.end.tolist()) == ([10, 50, 0], [50, 70, 10])
