"""Filters over tables: what holds, and where a fault is pointed at."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.filtering import Filter, FilterError, bucket_condition

RNG = np.random.default_rng(4)
COUNT = 500
COLUMNS = {
    "warp": np.arange(COUNT),
    "block": np.arange(COUNT) // 4,
    "sm": RNG.integers(0, 8, COUNT).astype(np.int32),
    "elapsed": RNG.integers(1_000, 250_000, COUNT),
    "bytes": RNG.integers(0, 2**32, COUNT).astype(np.uint32),
    "ratio": RNG.random(COUNT),
}
GRID = (5, 25, 1)
SM, ELAPSED, BYTES = COLUMNS["sm"], COLUMNS["elapsed"], COLUMNS["bytes"]


def rows(text, columns=COLUMNS):
    return Filter.of(text, columns).rows(columns, GRID).tolist()


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("sm == 3", SM == 3),
        ("SM = 3 && Elapsed > 100K", (SM == 3) & (ELAPSED > 100_000)),
        ("sm == 3 and elapsed > p99", (SM == 3) & (np.percentile(ELAPSED, 99) < ELAPSED)),
        ("p90 < elapsed", np.percentile(ELAPSED, 90) < ELAPSED),
        ("elapsed == max or elapsed == min", np.isin(ELAPSED, [ELAPSED.max(), ELAPSED.min()])),
        ("elapsed >= 1.2 * mean", 1.2 * ELAPSED.mean() <= ELAPSED),
        ("not sm == 3", SM != 3),
        ("!(sm == 3 or sm == 4)", ~np.isin(SM, [3, 4])),
        ("1 < sm <= 4", (SM > 1) & (SM <= 4)),
        ("sm == 1 or sm == 2 and elapsed < 50k", (SM == 1) | ((SM == 2) & (ELAPSED < 50_000))),
        ("(sm == 1 or sm == 2) and elapsed < 50k", np.isin(SM, [1, 2]) & (ELAPSED < 50_000)),
        ("bytes > 1.5M", BYTES > 1_500_000),
        ("bytes - 5 < 0", BYTES < 5),
        ("bytes / elapsed > 20", BYTES / ELAPSED > 20),
        ("(warp + 1) % 2 == 0", np.arange(COUNT) % 2 == 1),
        ("elapsed - 2 * bytes < -1G", ELAPSED - 2 * BYTES.astype(np.int64) < -(10**9)),
        ("block == (3,1)", COLUMNS["block"] == 8),
        ("block != (3, 1, 0)", COLUMNS["block"] != 8),
        ("block == (7,1)", np.zeros(COUNT, bool)),
        ("warp == 0x1f", np.arange(COUNT) == 31),
        ("ratio < 2.5e-1", COLUMNS["ratio"] < 0.25),
        ("1 < 2", np.ones(COUNT, bool)),
    ],
)
def test_rows_that_hold(text, truth):
    assert rows(text) == np.flatnonzero(truth).tolist()


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("", 0, "missing"),
        ("sm", 0, "compare sm with something"),
        ("sm ==", 5, "missing before the end"),
        ("sm == 3 and", 11, "missing before the end"),
        ("sm == 3 elapsed", 8, "did not expect 'elapsed'"),
        ("elasped > 3", 0, "no column 'elasped'; there are warp, block, sm"),
        ("(sm == 3", 8, "')' is missing for the '(' in column 1"),
        ("sm == 3 $ 4", 8, "cannot read '$'"),
        ("sm == 12ab", 6, "cannot read '12ab'"),
        ("elapsed > 1/0", 12, "divides by zero"),
        ("elapsed % (2 - 2.0) == 1 or sm == 1", 13, "divides by zero"),
        ("sm == 1 and elapsed / -0 > 1", 22, "divides by zero"),
        ("3 > p99", 4, "column on the other side"),
        ("p50 > p99", 0, "column on the other side"),
        ("(sm == 3) + 1 > 2", 4, "not a condition"),
        ("sm > (3,1)", 3, "equal (==) or not"),
        ("3 == (3,1)", 5, "compared with block"),
        ("block == (3,1.5)", 12, "whole numbers"),
        ("block == (1,2,3,4)", 16, "at most three"),
        ("block == (3,1) + 1", 9, "no arithmetic"),
        ("sm == 3 and elapsed", 12, "compare elapsed"),
    ],
)
def test_faults_are_pointed_at(text, column, part):
    with pytest.raises(FilterError) as caught:
        Filter.of(text, COLUMNS)
    assert (caught.value.column, part in caught.value.message) == (column, True), caught.value


def test_a_table_without_the_column_is_refused_when_applied():
    known = Filter.of("sm == 3", COLUMNS)
    with pytest.raises(FilterError, match="no column 'sm'"):
        known.rows({"warp": np.arange(3)}, GRID)


def test_no_rows_and_nan_do_not_hold():
    empty = {name: values[:0] for name, values in COLUMNS.items()}
    assert rows("elapsed > p99", empty) == []
    assert rows("x < 1", {"x": np.array([np.nan, 0.5])}) == [1]


def test_64_bit_values_compare_exactly():
    columns = {"addr": np.array([2**63, 2**63 + 1, 5], np.uint64)}
    assert rows(f"addr == {2**63 + 1}", columns) == [1]
    assert rows("addr > -1", columns) == [0, 1, 2]
    assert rows("addr - 6 < 0", columns) == [2]


def test_a_column_may_be_called_like_a_statistic():
    assert rows("max == 2", {"max": np.array([1, 2])}) == [1]


def test_a_bucket_becomes_a_condition():
    values = {"elapsed": np.array([9, 10, 14, 15, 20])}
    assert rows(bucket_condition("elapsed", 10.0, 15.0), values) == [1, 2]
    assert rows(bucket_condition("elapsed", 14.5, None), values) == [3, 4]
    assert rows(bucket_condition("elapsed", None, 10), values) == [0]


NAMES = st.sampled_from(["sm", "elapsed", "bytes"])
LEAVES = st.tuples(
    NAMES, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.integers(0, 2**32)
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner), st.tuples(st.sampled_from(["and", "or"]), inner, inner)
    ),
    max_leaves=12,
)


def written(tree):
    if tree[0] == "not":
        return f"not ({written(tree[1])})"
    if tree[0] in ("and", "or"):
        return f"({written(tree[1])}) {tree[0]} ({written(tree[2])})"
    return "{} {} {}".format(*tree)


def expected(tree):
    if tree[0] == "not":
        return ~expected(tree[1])
    if tree[0] in ("and", "or"):
        left, right = expected(tree[1]), expected(tree[2])
        return left & right if tree[0] == "and" else left | right
    compare = {"==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater"}
    function = getattr(np, compare.get(tree[1], "greater_equal"))
    return function(COLUMNS[tree[0]].astype(np.int64), tree[2])


@given(TREES)
def test_any_condition_agrees_with_numpy(tree):
    assert rows(written(tree)) == np.flatnonzero(expected(tree)).tolist()


@given(st.text(alphabet="sm elapd0123kM.<>=!&|()+-*/%,andortp9$\n", max_size=30))
def test_any_text_is_read_or_refused_within_itself(text):
    try:
        Filter.of(text, COLUMNS).rows(COLUMNS, GRID)
    except FilterError as fault:
        assert 0 <= fault.column <= len(text)
