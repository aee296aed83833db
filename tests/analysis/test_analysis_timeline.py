"""Spans of SMs and blocks, how many run at once, and lanes without overlap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.timeline import SmSpans, block_spans, coverage, lanes, residency

INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 25)), max_size=40)
WARPS = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(0, 10**12), st.integers(0, 10**6)),
    min_size=1,
    max_size=40,
)


def columns(warps):
    sm = np.array([warp[0] for warp in warps], np.int32)
    start, elapsed = (np.array([warp[i] for warp in warps], np.int64) for i in (1, 2))
    return sm, start, elapsed


@given(WARPS)
def test_parts_are_of_the_own_sms_span(warps):
    sm, start, elapsed = columns(warps)
    begin, end = SmSpans.of(sm, start, elapsed).parts(sm, start, elapsed)
    for row, (own, first, length) in enumerate(warps):
        mine = [warp for warp in warps if warp[0] == own]
        low = min(warp[1] for warp in mine)
        span = max(1, max(warp[1] + warp[2] for warp in mine) - low)
        assert begin[row] == pytest.approx((first - low) / span)
        assert end[row] == pytest.approx((first + length - low) / span)


@given(INTERVALS, st.integers(1, 12))
def test_coverage_is_the_time_that_intervals_take_of_each_bin(intervals, bins):
    begin = np.array([low for low, _ in intervals], float) / 3
    end = begin + np.array([length for _, length in intervals], float) / 3
    row = np.arange(len(intervals)) % 2
    found = coverage(row, begin, end, 2, bins)
    for which in (0, 1):
        for place in range(bins):
            expected = sum(
                max(0.0, min(place + 1, high) - max(place, low))
                for low, high, mine in zip(begin, end, row, strict=True)
                if mine == which
            )
            assert found[which, place] == pytest.approx(expected, abs=1e-9)


@given(WARPS, st.integers(1, 9))
def test_residency_adds_up_to_the_work_of_an_sm(warps, bins):
    sm, start, elapsed = columns(warps)
    found = residency(sm, start, elapsed, 4, bins)
    for which in range(4):
        mine = sm == which
        if mine.any():
            span = max(1, (start + elapsed)[mine].max() - start[mine].min())
            parts = found[which].sum() / bins
            assert parts == pytest.approx(elapsed[mine].sum() / span, abs=1e-12)
        else:
            assert not found[which].any()


@given(WARPS)
def test_blocks_span_their_warps(warps):
    sm = np.array([warps[row // 2 * 2][0] for row in range(len(warps))], np.int32)
    _, start, elapsed = columns(warps)
    block = np.arange(len(warps)) // 2
    spans = block_spans(sm, block, start, elapsed, 5)
    assert spans.sms == 5
    assert len(spans.block) == len(set(block[sm >= 0].tolist()))
    for which in range(5):
        mine = spans.of_sm(which)
        assert (np.diff(spans.begin[mine]) >= 0).all()
        assert set(spans.sm[mine].tolist()) <= {which}
        for number, begin, end in zip(
            spans.block[mine], spans.begin[mine], spans.end[mine], strict=True
        ):
            own = block == number
            origin = start[sm == which].min()
            assert begin == start[own].min() - origin
            assert end == (start + elapsed)[own].max() - origin


def _at_once(begin, end, t):
    """Lanes that are surely needed at `t`: what goes on there, or what goes on through it and
    something that takes no time."""
    going_on = int(((begin <= t) & (end > t)).sum())
    through = int(((begin < t) & (end > t)).sum())
    return max(going_on, through + bool(((begin == t) & (end == t)).any()))


@given(INTERVALS)
def test_lanes_do_not_overlap_and_are_as_few_as_can_be(intervals):
    ordered = sorted((low, low + length) for low, length in intervals)
    begin, end = (np.array([one[i] for one in ordered], np.int64) for i in (0, 1))
    lane = lanes(begin, end)
    for number in set(lane.tolist()):
        mine = lane == number
        assert (begin[mine][1:] >= end[mine][:-1]).all()
    most = max((_at_once(begin, end, t) for t in begin.tolist()), default=0)
    assert len(set(lane.tolist())) == max(most, min(1, len(ordered)))
