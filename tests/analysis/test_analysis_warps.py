"""Warp intervals, their accumulation over launches, and the warp table."""

import numpy as np
import pytest

from gpuwatch.analysis.spread import spread
from gpuwatch.analysis.warps import Accumulated, Shape, intervals, warp_columns

BLOCK_SCHED = np.dtype([("start", "<u8"), ("elapsed", "<u4"), ("cuid", "<u4")])
WARP_SHAPE = Shape(threads_per_block=64, warps_per_block=2)


def records(rows, dtype=BLOCK_SCHED):
    return np.array(rows, dtype=dtype)


def slots(*values):
    return np.array(values, dtype=np.int64)


def test_intervals_of_one_record_a_warp():
    seen = intervals(records([(100, 7, 3), (110, 9, 1)]), slots(4, 6), WARP_SHAPE)
    assert seen.warp.tolist() == [4, 6]
    assert seen.sm.tolist() == [3, 1]
    assert seen.start.tolist() == [100, 110]
    assert seen.elapsed.tolist() == [7, 9]


def test_records_without_times_give_no_intervals():
    counted = np.zeros(2, dtype=[("sectors", "<u8")])
    assert intervals(counted, slots(0, 1), WARP_SHAPE) is None


@pytest.mark.parametrize("name", ["cuid", "smid", "sm"])
def test_every_spelling_of_the_sm(name):
    dtype = [("start", "<u8"), ("elapsed", "<u8"), (name, "<u4")]
    seen = intervals(records([(1, 2, 5)], dtype), slots(0), WARP_SHAPE)
    assert seen.sm.tolist() == [5]


def test_threads_merge_into_their_warp_from_first_start_to_last_end():
    shape = Shape(threads_per_block=48, warps_per_block=2, divisor=1)
    rows = [(10 + i, 5, 2) for i in range(96)]
    seen = intervals(records(rows), np.arange(96), shape)
    assert seen.warp.tolist() == [0, 1, 2, 3]
    assert seen.start.tolist() == [10, 42, 58, 90]
    assert seen.elapsed.tolist() == [36, 20, 36, 20]
    assert seen.sm.tolist() == [2, 2, 2, 2]


def test_average_and_count_over_launches_and_reset():
    total = Accumulated(4)
    everyone = slots(0, 1, 2, 3)
    total.observe(intervals(records([(0, 10, 0)] * 4), everyone, WARP_SHAPE))
    total.observe(intervals(records([(0, 20, 0)] * 2), slots(1, 3), WARP_SHAPE))
    assert total.average(everyone).tolist() == [10, 15, 10, 15]
    assert total.count(everyone).tolist() == [1, 2, 1, 2]
    total.reset()
    assert total.count(everyone).tolist() == [0, 0, 0, 0]
    assert total.average(everyone).tolist() == [0, 0, 0, 0]


def test_table_has_blocks_and_remaining_fields():
    dtype = [("start", "<u8"), ("elapsed", "<u8"), ("warpid", "<u8")]
    rows = records([(5, 6, 70), (7, 8, 71)], dtype)
    seen = intervals(rows, slots(3, 4), WARP_SHAPE)
    total = Accumulated(5)
    total.observe(seen)
    table = warp_columns(seen, rows, WARP_SHAPE, total)
    assert table.block.tolist() == [1, 2]
    assert table.sm.tolist() == [-1, -1]
    assert table.count.tolist() == [1, 1]
    assert {name: column.tolist() for name, column in table.fields.items()} == {"warpid": [70, 71]}


def test_several_records_of_a_warp_make_one_row():
    dtype = [("start", "<u8"), ("elapsed", "<u8"), ("tag", "<u4")]
    rows = records([(5, 6, 1), (20, 4, 2), (9, 1, 3)], dtype)
    seen = intervals(rows, slots(0, 0, 1), WARP_SHAPE)
    total = Accumulated(2)
    total.observe(seen)
    table = warp_columns(seen, rows, WARP_SHAPE, total)
    assert table.warp.tolist() == [0, 1]
    assert table.start.tolist() == [5, 9]
    assert table.elapsed.tolist() == [10, 1]
    assert table.average.tolist() == [10, 1]
    assert table.fields["tag"].tolist() == [2, 3]


def test_table_of_merged_threads_keeps_fields_by_warp():
    shape = Shape(threads_per_block=64, warps_per_block=2, divisor=1)
    dtype = [("start", "<u8"), ("elapsed", "<u8"), ("tag", "<u4")]
    rows = records([(i, 1, i) for i in range(64)], dtype)
    seen = intervals(rows, np.arange(64), shape)
    total = Accumulated(2)
    total.observe(seen)
    table = warp_columns(seen, rows, shape, total)
    assert table.fields["tag"].tolist() == [0, 32]
    assert table.elapsed.tolist() == [32, 32]


def test_nothing_recorded():
    empty = records([])
    for divisor in (1, 32):
        shape = Shape(64, 2, divisor)
        seen = intervals(empty, slots(), shape)
        total = Accumulated(2)
        total.observe(seen)
        assert len(warp_columns(seen, empty, shape, total)) == 0


def test_spread():
    values = spread(np.arange(101))
    assert (values.min, values.p50, values.p90, values.p99, values.max) == (0, 50, 90, 99, 100)
    assert values.mean == 50
    assert spread(np.array([], dtype=np.int64)) is None
