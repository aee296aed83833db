"""The per-SM figures against the article's own quadratic rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.idle import idle_cycles
from gpuwatch.analysis.occupancy import sm_columns


def reference_idle(tasks):
    """Idle cycles by SM: every earlier task is looked at for each task."""
    holders = {}
    idle = {}
    for sm, start, elapsed in sorted(tasks, key=lambda task: task[1]):
        slots = holders.setdefault(sm, [])
        freed = [end for end in slots if end <= start]
        if freed:
            idle[sm] = idle.get(sm, 0) + start - min(freed)
            slots.remove(min(freed))
        slots.append(start + elapsed)
    return idle


small_times = st.integers(0, 12)
tasks = st.lists(st.tuples(st.integers(0, 3), small_times, small_times), max_size=60)
wide_tasks = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 10**12), st.integers(0, 10**9)), max_size=40
)


def columns(rows, **device):
    sm, start, elapsed = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    block = np.arange(len(rows), dtype=np.int64) // 2
    settings = {"sm_count": 5, "warps_per_sm": 4} | device
    return sm_columns(sm.astype(np.int32), block, start, elapsed, **settings)


@given(tasks)
def test_idle_equals_the_quadratic_rule_with_many_ties(rows):
    expected = reference_idle(rows)
    table = columns(rows)
    assert table.idle_cycles.tolist() == [expected.get(sm, 0) for sm in range(5)]


@given(wide_tasks)
def test_idle_equals_the_quadratic_rule_on_wide_times(rows):
    expected = reference_idle(rows)
    assert columns(rows).idle_cycles.tolist() == [expected.get(sm, 0) for sm in range(5)]


def idle(start, end):
    return int(idle_cycles(start, end, np.array([0, len(start)]))[0])


def test_idle_of_a_hand_made_schedule():
    start = np.array([0, 0, 10, 12, 20])
    end = np.array([8, 11, 15, 30, 21])
    # 10 takes the slot freed at 8, 12 the one freed at 11, 20 the one freed at 15.
    assert idle(start, end) == 2 + 1 + 5


def test_warps_that_take_no_time_hand_their_slot_on():
    assert idle(np.array([5, 5, 5]), np.array([5, 5, 9])) == 0
    assert idle(np.array([3, 5, 5, 8]), np.array([4, 5, 9, 8])) == 1


@given(tasks.filter(bool))
def test_occupancy_counts_and_spans(rows):
    table = columns(rows)
    assert table.warps.sum() == len(rows)
    assert table.sm.tolist() == [0, 1, 2, 3, 4]
    for sm in range(5):
        mine = [row for row in rows if row[0] == sm]
        if not mine:
            assert table.busy_cycles[sm] == table.occupancy[sm] == table.blocks[sm] == 0
            continue
        span = max(s + e for _, s, e in mine) - min(s for _, s, _ in mine)
        assert table.busy_cycles[sm] == span
        expected = sum(e for _, _, e in mine) / (span * 4) if span else 0
        assert table.occupancy[sm] == pytest.approx(expected)
        assert table.blocks[sm] == len({i // 2 for i, row in enumerate(rows) if row[0] == sm})


def test_an_sm_beyond_the_count_still_gets_a_row():
    table = columns([(7, 0, 4)], sm_count=2)
    assert len(table.sm) == 8
    assert table.occupancy[7] == pytest.approx(0.25)


def test_no_warps_give_a_table_of_idle_sms():
    table = columns([])
    assert table.warps.tolist() == [0] * 5
    assert table.occupancy.tolist() == [0.0] * 5


def test_a_full_sm_has_occupancy_one():
    rows = [(0, 100 * wave, 100) for wave in range(3) for _ in range(4)]
    table = columns(rows)
    assert table.occupancy[0] == 1.0
    assert table.idle_cycles[0] == 0


def test_the_mean_is_over_the_sms_that_ran_a_warp():
    table = columns([(0, 0, 10), (0, 0, 10), (2, 10, 10)], sm_count=5, warps_per_sm=4)
    assert table.used.tolist() == [0, 2]
    assert table.mean_occupancy == 0.375
    assert columns([], sm_count=5, warps_per_sm=4).mean_occupancy is None
