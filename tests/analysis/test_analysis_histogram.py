"""Binning, tallies over launches, and axes."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gpuwatch.analysis import histogram
from gpuwatch.analysis.filtering import Filter, bucket_condition
from gpuwatch.analysis.histogram import Sample, Tally, counts_between, reduced_edges
from gpuwatch.analysis.scale import Scale, nice_range, octave_range, steady_range

WHOLE = arrays.arrays(np.int64, st.integers(1, 80), elements=st.integers(0, 300_000))
WIDE = arrays.arrays(np.uint64, st.integers(1, 80), elements=st.integers(0, 2**60))
REAL = arrays.arrays(
    np.float64, st.integers(1, 80), elements=st.floats(-1e6, 1e6, allow_subnormal=False)
)
VALUES = st.one_of(WHOLE, WIDE, REAL)
BINS = st.integers(1, 90)


def scale_of(sample, log):
    if log:
        assume(sample.positive > 0)
        return Scale(*octave_range(sample.positive, max(sample.high, sample.positive)), True)
    return Scale(*nice_range(sample.low, sample.high))


@given(VALUES, BINS, st.booleans())
def test_every_bin_equals_the_filter_that_names_it(values, bins, log):
    sample = Sample(values)
    scale = scale_of(sample, log)
    counts = sample.counts(scale, bins)
    edges = scale.edges(bins)
    assert counts.sum() == len(values)
    for place in range(1, bins - 1):
        text = bucket_condition("x", edges[place], edges[place + 1])
        rows = Filter.of(text, ("x",)).rows({"x": values}, (1, 1, 1))
        assert counts[place] == len(rows), (place, text)


@given(st.integers(1, 5_000), st.booleans(), BINS)
def test_counting_one_by_one_or_by_computing_agree(seed, log, bins):
    values = np.random.default_rng(seed).integers(1, 5_000, 400)
    scale = scale_of(Sample(values), log)
    expected = counts_between(values, scale.edges(bins), log=log)
    assert Sample(values).counts(scale, bins).tolist() == expected.tolist()


@given(WHOLE)
def test_quantiles_agree_with_numpy(values):
    assert Sample(values).quantiles == pytest.approx(np.quantile(values, histogram.QUANTILES))


def test_bins_agree_with_numpy_and_leave_out_what_lies_beyond():
    values = np.random.default_rng(2).integers(1_000, 9_000, 5_000)
    edges = np.linspace(2_000, 8_000, 17)
    assert counts_between(values, edges).tolist() == np.histogram(values, edges)[0].tolist()
    assert counts_between(values[:0], edges).tolist() == [0] * 16


def test_values_that_are_no_numbers_are_left_out():
    sample = Sample(np.array([np.nan, np.inf, 2.0, 4.0]))
    assert (sample.total, sample.low, sample.high) == (2, 2.0, 4.0)
    empty = Sample(np.array([np.nan]))
    assert (empty.total, empty.quantiles) == (0, (0.0, 0.0, 0.0))
    tally = Tally.empty()
    tally.observe(np.array([np.nan, -np.inf, 1.0]))
    assert tally.total == 1


# ---- over launches


@given(st.one_of(WHOLE, WIDE))
def test_a_tally_puts_every_value_between_its_edges(values):
    tally = Tally.empty()
    tally.observe(values)
    used = np.flatnonzero(tally.bucket_counts) + tally.first
    assert tally.total == len(values)
    for value in values.astype(float):
        bucket = np.searchsorted(tally.edges, value, side="right") - 1
        assert bucket in used
    assert (np.diff(tally.edges) > 0).all()


def test_a_tally_over_launches_tells_what_all_their_values_do():
    rng = np.random.default_rng(3)
    launches = [rng.normal(190_000, 3_500, 20_000).astype(np.int64) for _ in range(5)]
    tally = Tally.empty()
    for values in launches:
        tally.observe(values)
    everything = Sample(np.concatenate(launches))
    assert (tally.launches, tally.total) == (5, 100_000)
    assert tally.quantiles == pytest.approx(everything.quantiles, rel=0.001)
    assert tally.low == pytest.approx(everything.low, rel=0.001)
    scale = Scale(*nice_range(everything.low, everything.high))
    values = np.concatenate(launches)
    low, high = tally.bars(scale, 20)
    inside = [((values >= a) & (values < b)).sum() for a, b in zip(low, high, strict=True)]
    assert tally.counts(scale, 20).tolist() == inside
    assert sum(inside) == 100_000
    assert abs(low - scale.edges(20)[:-1]).max() <= 16


@given(VALUES, BINS, st.booleans(), st.booleans())
def test_bars_over_launches_are_of_whole_buckets(values, bins, log, coarse):
    tally = Tally.empty()
    if coarse:
        edges = reduced_edges(1024)
        values = np.abs(values).astype(np.float64)
        tally = Tally(np.histogram(values, edges)[0], edges, 1)
    else:
        tally.observe(values)
    scale = scale_of(tally, log)
    (low, high), counts = tally.bars(scale, bins), tally.counts(scale, bins)
    shown, places = np.unique(low, return_index=True)
    assert set(low) | set(high) <= set(tally.edges)
    assert high[places][:-1].tolist() == shown[1:].tolist()
    assert counts[places].sum() == len(values)
    for place in places[1:-1]:
        assert counts[place] == ((values >= low[place]) & (values < high[place])).sum()
    for value in shown[:-1]:
        column = histogram.bar_column(np.stack((low, high)), scale, value)
        assert low[column] == value


def test_an_empty_tally():
    tally = Tally.empty()
    assert (tally.total, tally.low, tally.high, tally.positive) == (0, 0, 0, 0)
    assert tally.quantiles == (0, 0, 0)


@given(st.integers(0, 2**63 - 1))
def test_edges_of_what_a_gpu_counts(value):
    top = value.bit_length() - 1
    bucket = value if value < 16 else (top - 3) * 16 + (value >> (top - 4) & 15)
    edges = reduced_edges(1024)
    assert edges[bucket] <= value
    assert value < edges[bucket + 1] or float(value) == edges[bucket + 1]


# ---- axes


@given(st.floats(1e-3, 1e9), st.floats(1.01, 1e7), st.integers(1, 20), st.booleans())
def test_ticks_lie_on_the_axis(low, ratio, divisions, log):
    scale = Scale(low, low * ratio, log, whole=False)
    marks = scale.ticks(divisions)
    assert len(marks) <= divisions + 1
    assert all(scale.low * (1 - 1e-9) <= mark <= scale.high * (1 + 1e-9) for mark in marks)
    assert marks == sorted(marks)


@given(st.floats(-1e9, 1e9), st.floats(0, 1e6), st.sampled_from([0.0, 1.0]))
def test_no_axis_is_empty(low, span, least):
    start, stop = nice_range(low, low + span, least=least)
    assert start < stop
    assert start <= low + abs(low) * 1e-9 and low + span <= stop + abs(stop) * 1e-9


@given(st.booleans(), BINS)
def test_a_value_stands_above_its_own_bin(log, bins):
    scale = Scale(2.0, 4_096.0, log)
    edges = scale.edges(bins)
    middle = (edges[1:] + edges[:-1]) / 2
    assert [scale.column(value, bins) for value in middle] == list(range(bins))
    assert (scale.column(0.0, bins), scale.column(1e9, bins)) == (0, bins - 1)


def test_an_axis_stays_while_the_data_fill_it():
    first = steady_range(None, 103, 197)
    assert steady_range(first, 120, 180) == first
    assert steady_range(first, 150, 160) != first
    assert steady_range(first, 103, 300) != first
