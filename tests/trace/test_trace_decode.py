"""Map bytes to records."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.probe.model import Field, Map
from gpuwatch.trace import bucket_edges, decode, record_dtype

BLOCK_SCHED = (Field("start", "u64"), Field("elapsed", "u32"), Field("cuid", "u32"))


def make_map(cap=1, size=16, fields=BLOCK_SCHED, kind="array"):
    return Map("m", "warp", kind, size, cap, fields)


def test_fields_are_aligned_to_their_own_size():
    fields = (Field("a", "u32"), Field("b", "u64"), Field("c", "s32"), Field("d", "f32"))
    dtype = record_dtype(make_map(size=32, fields=fields))
    assert [dtype.fields[name][1] for name in "abcd"] == [0, 8, 16, 20]
    assert dtype.itemsize == 32


def test_records_wider_than_their_fields():
    fields = (Field("start", "u64"), Field("elapsed", "u64"), Field("warpid", "u64"))
    place = make_map(size=32, fields=fields)
    raw = np.arange(3 * 4, dtype="<u8").view(np.uint8)
    got = decode(place, 3, raw, np.ones(3, dtype=np.uint32))
    assert got.column("warpid").tolist() == [2, 6, 10]


def test_a_full_map_is_a_view():
    raw = np.zeros(16 * 100, dtype=np.uint8)
    got = decode(make_map(), 100, raw, np.ones(100, dtype=np.uint32))
    assert np.shares_memory(got.records, raw)
    assert (len(got), len(got.missing), got.dropped) == (100, 0, 0)


def test_missing_slots_are_left_out_and_named():
    raw = np.zeros(5, dtype=record_dtype(make_map()))
    raw["start"] = [10, 11, 12, 13, 14]
    counts = np.array([1, 0, 3, 0, 1], dtype=np.uint32)
    got = decode(make_map(), 5, raw.view(np.uint8), counts)
    assert got.column("start").tolist() == [10, 12, 14]
    assert got.slots.tolist() == [0, 2, 4]
    assert got.missing.tolist() == [1, 3]
    assert got.dropped == 2


@given(st.lists(st.integers(0, 6), max_size=30), st.integers(1, 4))
def test_every_kept_record_and_no_other(counts, cap):
    place = make_map(cap=cap, size=8, fields=(Field("value", "u64"),))
    values = np.arange(len(counts) * cap, dtype=np.uint64)
    got = decode(place, len(counts), values.view(np.uint8), np.array(counts, dtype=np.uint32))
    kept = [
        (slot, slot * cap + k) for slot, count in enumerate(counts) for k in range(min(count, cap))
    ]
    assert list(zip(got.slots.tolist(), got.column("value").tolist(), strict=True)) == kept
    assert got.missing.tolist() == [slot for slot, count in enumerate(counts) if count == 0]
    assert got.dropped == sum(max(count - cap, 0) for count in counts)


def test_a_reduced_slot_that_nothing_was_saved_to_is_missing():
    place = make_map(size=8, fields=(Field("sum", "u64"),), kind="reduce")
    values = np.array([5, 0, 7], dtype=np.uint64)
    got = decode(place, 3, values.view(np.uint8), np.array([9, 0, 4], dtype=np.uint32))
    assert got.column("sum").tolist() == [5, 7]
    assert got.slots.tolist() == [0, 2]
    assert got.missing.tolist() == [1]
    assert got.dropped == 0


def test_buckets_are_rows_whether_or_not_anything_was_saved():
    place = replace(make_map(size=8, fields=(Field("value", "u32"),), kind="hist"), cap=3)
    buckets = np.array([4, 0, 1, 0, 0, 0], dtype=np.uint64)
    got = decode(place, 2, buckets.view(np.uint8), np.array([1, 0], dtype=np.uint32))
    assert got.column("count").tolist() == [4, 0, 1, 0, 0, 0]
    assert got.slots.tolist() == [0, 0, 0, 1, 1, 1]
    assert got.missing.tolist() == [1]


def test_edges_of_buckets():
    log2 = replace(make_map(kind="hist"), cap=5)
    assert bucket_edges(log2).tolist() == [0, 1, 2, 4, 8, 16]
    linear = replace(log2, scale="linear", low=-10, step=5, cap=3)
    assert bucket_edges(linear).tolist() == [-10, -5, 0, 5]


def test_saves_on_an_sm_without_a_slot_are_dropped():
    place = replace(make_map(), level="sm")
    raw = np.zeros(2, dtype=record_dtype(place)).view(np.uint8)
    got = decode(place, 2, raw, np.array([1, 1, 5], dtype=np.uint32))
    assert (len(got), got.dropped) == (2, 5)


def test_absent_slots_are_not_missing():
    raw = np.zeros(4, dtype=record_dtype(make_map())).view(np.uint8)
    counts = np.array([1, 0, 0, 1], dtype=np.uint32)
    got = decode(make_map(), 4, raw, counts, absent=np.array([2]))
    assert got.missing.tolist() == [1]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20))
def test_a_dynamic_slot_keeps_what_its_bounds_have_room_for(slots):
    counts = np.array([count for count, _ in slots], dtype=np.uint32)
    rooms = np.array([room for _, room in slots], dtype=np.uint64)
    offsets = np.concatenate(([0], np.cumsum(rooms))).astype(np.uint64)
    place = replace(make_map(size=8, fields=(Field("value", "u64"),)), dynamic=True)
    values = np.arange(offsets[-1], dtype=np.uint64)
    got = decode(place, len(slots), values.view(np.uint8), counts, offsets)
    kept = [
        (slot, int(offsets[slot]) + k)
        for slot, (count, room) in enumerate(slots)
        for k in range(min(count, room))
    ]
    assert list(zip(got.slots.tolist(), got.column("value").tolist(), strict=True)) == kept
    assert got.dropped == sum(max(count - room, 0) for count, room in slots)


def test_a_dynamic_map_without_bounds_only_counts():
    place = replace(make_map(), dynamic=True)
    got = decode(place, 2, np.zeros(0, np.uint8), np.array([3, 4], dtype=np.uint32))
    assert (len(got), got.dropped) == (0, 7)


def test_counts_near_their_limit_do_not_wrap():
    counts = np.full(3, 2**32 - 1, dtype=np.uint32)
    got = decode(make_map(), 3, np.zeros(48, dtype=np.uint8), counts)
    assert got.dropped == 3 * (2**32 - 2)


def test_short_buffers_are_refused():
    with pytest.raises(ValueError, match="map m"):
        decode(make_map(), 3, np.zeros(47, dtype=np.uint8), np.ones(3, dtype=np.uint32))
    with pytest.raises(ValueError, match="map m"):
        decode(make_map(), 3, np.zeros(48, dtype=np.uint8), np.ones(2, dtype=np.uint32))
