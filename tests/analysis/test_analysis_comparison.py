"""Medians with the range that holds them, and when two runs differ."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.comparison import Series, compare, median_range


def series(*values, wanted="less", exact=False):
    return Series("time", "us", np.array(values, np.float64), wanted, exact)


def ranks(count):
    """The ranks, from 1, of the ends of the range over `count` launches."""
    found = median_range(np.arange(1, count + 1, dtype=np.float64))
    return int(found.low), int(found.high)


def miss(count, low):
    """Chance that the median of all launches lies outside of the values of rank low to
    count + 1 - low."""
    return 2 * sum(math.comb(count, heads) for heads in range(low)) / 2**count


@given(st.integers(6, 400))
def test_the_range_is_the_narrowest_with_the_confidence(count):
    low, high = ranks(count)
    assert high == count + 1 - low
    assert miss(count, low) <= 0.05 < miss(count, low + 1)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_launches_give_the_whole_range(count):
    assert ranks(count) == (1, count)


@pytest.mark.parametrize("count", [501, 1000, 5000])
def test_many_launches_are_as_near_as_makes_no_difference(count):
    low, _ = ranks(count)
    log_miss = [
        math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(low)
    ]
    chance = 2 * sum(math.exp(value - count * math.log(2)) for value in log_miss)
    assert 0.03 < chance < 0.06


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_the_median_lies_in_its_range(values):
    found = median_range(np.array(values))
    assert min(values) <= found.low <= found.median <= found.high <= max(values)


def test_no_launches_have_no_median():
    with pytest.raises(ValueError, match="no launches"):
        median_range(np.empty(0))
    with pytest.raises(ValueError, match="neither"):
        compare(None, None)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (series(10, 11, 12), series(7, 8, 9), "better"),
        (series(7, 8, 9), series(10, 11, 12), "worse"),
        (series(7, 8, 10), series(9, 11, 12), "same"),
        (series(7, 8, 9), series(9, 11, 12), "same"),
        (series(10, 11, wanted="more"), series(7, 8, wanted="more"), "worse"),
        (series(1, 2, wanted=""), series(7, 8, wanted=""), "differs"),
        (series(10), series(7), "unclear"),
        (series(10, 11), series(7), "unclear"),
        (series(10, exact=True), series(7, exact=True), "better"),
        (series(10, 11), None, "unclear"),
        (None, series(10, 11), "unclear"),
        (series(5, 5), series(5, 5), "same"),
    ],
)
def test_verdicts(before, after, verdict):
    assert compare(before, after).verdict == verdict


def test_change_and_ratio():
    found = compare(series(10, 10), series(5, 5))
    assert (found.change, found.ratio) == (-5, 0.5)
    assert compare(series(0, 0), series(5, 5)).ratio is None
    assert compare(None, series(5, 5)).change is None


def test_launches_of_one_program_seldom_seem_to_differ():
    """Noise with outliers, as kernel times have it, compared with itself."""
    random = np.random.default_rng(1)
    draws = 100 + random.exponential(3, (400, 2, 9))
    verdicts = [compare(series(*one), series(*other)).verdict for one, other in draws]
    assert verdicts.count("same") >= 390
