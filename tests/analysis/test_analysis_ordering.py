"""Ordering of table rows, whole and around a window."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gpuwatch.analysis import ordering
from gpuwatch.analysis.ordering import Given, Ordering, carried_over


def stable(values, descending):
    """Rows by value, ties by row, NaN last."""

    def key(row):
        value = values[row].item()
        return (value != value, 0 if value != value else -value if descending else value, row)

    return sorted(range(len(values)), key=key)


COLUMNS = st.one_of(
    *(
        arrays.arrays(dtype, st.integers(0, 60), elements=elements)
        for dtype, elements in (
            (np.int64, st.integers(-5, 5)),
            (np.int64, st.integers(-(2**63), 2**63 - 1)),
            (np.uint64, st.integers(0, 2**64 - 1)),
            (np.uint32, st.integers(0, 3)),
            (np.float64, st.sampled_from([0.5, 1.5, -2.0, float("nan"), 7.0])),
        )
    )
)


@given(COLUMNS, st.booleans(), st.integers(0, 60), st.integers(1, 20), st.booleans())
def test_any_window_is_a_piece_of_the_stable_order(values, descending, first, count, in_parts):
    expected = stable(values, descending)
    with pytest.MonkeyPatch.context() as patch:
        if in_parts:
            patch.setattr(ordering, "FULL_SORT_ROWS", 0)
            patch.setattr(ordering, "_AROUND", 3)
            patch.setattr(ordering, "_SAMPLE", 5)
        order = Ordering(values, descending=descending)
        assert order.rows(first, count).tolist() == expected[first : first + count]
        assert (
            order.rows(max(0, first - 2), count).tolist()
            == (expected[max(0, first - 2) : max(0, first - 2) + count])
        )
        assert [order.rank(row) for row in expected] == list(range(len(expected)))


@given(COLUMNS, st.booleans(), st.data())
def test_an_order_of_some_rows_leaves_out_the_others(values, descending, data):
    chosen = data.draw(st.sets(st.integers(0, max(0, len(values) - 1))))
    among = np.array(sorted(row for row in chosen if row < len(values)), np.int64)
    order = Ordering(values, descending=descending, among=among)
    expected = [row for row in stable(values, descending) if row in set(among.tolist())]
    assert order.rows(0, len(values)).tolist() == expected
    for row in range(len(values)):
        assert order.rank(row) == (expected.index(row) if row in expected else None)


def test_a_frozen_order_survives_the_next_launch():
    before = np.array([3, 5, 8, 9])
    order = before[[2, 0, 3, 1]]
    assert carried_over(order, np.array([3, 4, 8, 9])).tolist() == [2, 0, 3]
    assert carried_over(order, np.array([], np.int64)).tolist() == []
    given_rows = Given(np.array([2, 0, 3]))
    assert (len(given_rows), given_rows.rows(1, 5).tolist()) == (3, [0, 3])
    assert (given_rows.rank(3), given_rows.rank(1)) == (2, None)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda rng, n: rng.integers(0, 72, n).astype(np.int32),
        lambda rng, n: rng.normal(190_000, 3_500, n),
        lambda _, n: np.ones(n, np.int64),
        lambda rng, n: np.sort(rng.integers(0, 2**40, n)),
        lambda _, n: np.where(np.arange(n) % 20 == 0, 5_000_000, np.arange(n)),
    ],
    ids=["few values", "normal", "all equal", "sorted", "periodic"],
)
def test_large_tables_agree_with_a_full_sort(make, descending):
    values = make(np.random.default_rng(6), 200_000)
    expected = np.argsort(-values if descending else values, kind="stable")
    for first in (0, 70_000, 199_960):
        window = Ordering(values, descending=descending).rows(first, 40)
        assert window.tolist() == expected[first : first + 40].tolist()
