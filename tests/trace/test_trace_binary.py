"""Result files: written, read back, and read as the article reads them."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_support import (
    BLOCK_SCHED,
    WARP_DURATION,
    events_of,
    kernel_facts,
    kernels,
    launched,
    nested_records,
    write_trace,
)

from gpuwatch.trace import Trace, decode, records_of
from gpuwatch.trace.buffers import ResultBuffers, layout_of_result
from gpuwatch.trace.decode import folding


@settings(max_examples=60, deadline=None)
@given(kernels(), st.integers(0, 2**32 - 1))
def test_what_was_written_is_read_back(tmp_path_factory, facts, seed):
    launch = launched(facts, np.random.default_rng(seed))
    folder = write_trace(tmp_path_factory.mktemp("trace") / "one", [launch])
    read = Trace(folder).launch(0)
    assert read.kernel.maps == facts.maps
    assert read.kernel.sites == facts.sites
    assert read.kernel.device == facts.device
    layout = layout_of_result(read.kernel, read.result)
    buffers = ResultBuffers(read.result, layout)
    kept = folding(launch.layout.places, launch.read_map)
    for place in launch.layout.places:
        for index in (place.records, place.counts):
            assert np.array_equal(buffers.read_map(index), kept(index))
        if place.map.dynamic:
            assert np.array_equal(buffers.read_map(place.offsets), launch.read_map(place.offsets))


@settings(max_examples=40, deadline=None)
@given(kernels(), st.integers(0, 2**32 - 1))
def test_records_and_losses_are_those_of_the_launch(tmp_path_factory, facts, seed):
    launch = launched(facts, np.random.default_rng(seed))
    folder = write_trace(tmp_path_factory.mktemp("trace") / "one", [launch])
    found = records_of(Trace(folder).launch(0))
    for place in launch.layout.places:
        offsets = launch.layout.fixed.get(place.offsets)
        wanted = decode(
            place.map,
            place.slots,
            launch.read_map(place.records),
            launch.read_map(place.counts).view(np.uint32),
            None if offsets is None else offsets.view(np.uint64),
            place.absent,
        )
        got = found.maps[place.map.name]
        for name in wanted.records.dtype.names:
            assert got.column(name).tobytes() == wanted.column(name).tobytes()
        assert got.slots.tolist() == wanted.slots.tolist()
        assert got.missing.tolist() == wanted.missing.tolist()
        assert got.dropped == wanted.dropped


@pytest.mark.parametrize("block", [(32, 1, 1), (64, 3, 1), (16, 4, 2)])
def test_the_article_s_first_reader(tmp_path, block):
    launch = launched(kernel_facts([BLOCK_SCHED], block=block), np.random.default_rng(1), full=True)
    folder = write_trace(tmp_path / "t", [launch])
    rows = launch.read_map(0).view("<i8,<i4,<i4").tolist()
    assert events_of(Trace(folder).results[0]) == rows


@pytest.mark.parametrize("block", [(32, 1, 1), (64, 3, 1), (16, 4, 2)])
def test_the_article_s_second_reader(tmp_path, block):
    launch = launched(kernel_facts([BLOCK_SCHED], block=block), np.random.default_rng(2), full=True)
    folder = write_trace(tmp_path / "t", [launch])
    sections, blocks = nested_records(Trace(folder).results[0], "qII")
    warps = block[0] * block[1] * block[2] // 32
    assert sections[0][:2] == (16, 32)
    assert [len(warps_of) for warps_of in blocks] == [warps] * 6
    flat = [row for warps_of in blocks for (row,) in warps_of]
    assert flat == launch.read_map(0).view("<i8,<u4,<u4").tolist()


def test_the_article_s_reader_of_slots_larger_than_their_fields(tmp_path):
    launch = launched(kernel_facts([WARP_DURATION]), np.random.default_rng(3), full=True)
    path = Trace(write_trace(tmp_path / "t", [launch])).results[0]
    content = path.read_bytes()
    size, divisor, offset = struct.unpack_from("IIQ", content, 32)
    assert (size, divisor) == (32, 32)
    rows = [struct.unpack_from("QQQ", content, offset + k * size) for k in range(12)]
    assert rows == [
        tuple(row[:3]) for row in launch.read_map(0).view("<u8").reshape(-1, 4).tolist()
    ]


def test_thread_and_block_maps_have_their_slots_in_the_grid_s_order(tmp_path):
    for level, divisor, slots in (("thread", 1, 384), ("block", 64, 6)):
        facts = kernel_facts([replace(BLOCK_SCHED, level=level)])
        launch = launched(facts, np.random.default_rng(4), full=True)
        path = Trace(write_trace(tmp_path / level, [launch])).results[0]
        sections, blocks = nested_records(path, "qII")
        assert sections[0][1] == divisor
        assert sum(map(len, blocks)) == slots


def test_several_maps_each_begin_at_their_offset(tmp_path):
    facts = kernel_facts([WARP_DURATION, BLOCK_SCHED])
    launch = launched(facts, np.random.default_rng(5), full=True)
    path = Trace(write_trace(tmp_path / "t", [launch])).results[0]
    content = path.read_bytes()
    for number, size in enumerate((32, 16)):
        found, _, offset = struct.unpack_from("IIQ", content, 32 + 16 * number)
        assert found == size
        raw = launch.read_map(2 * number).tobytes()
        assert content[offset : offset + len(raw)] == raw
        assert offset % 16 == 0


def test_equal_counts_take_no_room(tmp_path):
    facts = kernel_facts([BLOCK_SCHED], grid=(1000, 1, 1))
    launch = launched(facts, np.random.default_rng(6), full=True)
    path = Trace(write_trace(tmp_path / "t", [launch])).results[0]
    assert path.stat().st_size < 2000 * 16 + 1024
