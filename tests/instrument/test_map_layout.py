"""Layouts of dynamic, per-SM and sampled maps; what a launch over the limit is told."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.errors import UserError
from gpuwatch.instrument import lay_out
from gpuwatch.instrument.layout import Buffers, index_of
from gpuwatch.instrument.memory import check_memory, map_bytes, shown
from gpuwatch.instrument.model import Woven
from gpuwatch.probe.model import Field, Map

FIELDS = (Field("a", "u64"), Field("b", "u64"))


def woven(*maps: Map, departs: bool = False) -> Woven:
    return Woven("", "k", "v", maps, (), (), counts_departures=departs)


GRIDS = st.tuples(*[st.integers(1, 9)] * 3)
BLOCKS = st.sampled_from([(1, 1, 1), (48, 1, 1), (17, 3, 2), (32, 4, 1), (7, 5, 1), (100, 1, 1)])


@settings(deadline=None)
@given(
    GRIDS,
    BLOCKS,
    st.sampled_from(["thread", "warp", "block"]),
    st.sampled_from(["warp", "block"]),
    st.integers(1, 70),
)
def test_slots_of_a_sample_are_exactly_its_threads_warps_or_blocks(
    grid: tuple[int, int, int], block: tuple[int, int, int], level: str, unit: str, sample: int
) -> None:
    map_ = Map("m", level, "array", 16, 1, FIELDS, sample=sample, sample_unit=unit)  # type: ignore[arg-type]
    layout = lay_out(woven(map_), grid, block)
    (place,) = layout.places
    threads, warps = prod(block), -(-prod(block) // 32)
    everything = np.arange(prod(grid) * threads)
    in_block = everything % threads
    warp = everything // threads * warps + in_block // 32
    units = warp if unit == "warp" else everything // threads
    index = {"thread": everything, "warp": warp, "block": everything // threads}[level]
    parted = (level, unit) == ("block", "warp")
    wanted = np.unique(index if parted else index[units % sample == 0])
    kept = np.setdiff1d(np.arange(place.slots), place.absent)
    assert index_of(layout, place, kept).tolist() == wanted.tolist()
    assert place.sample == sample


@settings(deadline=None)
@given(st.lists(st.sampled_from(["array", "dynamic", "sm"]), max_size=5), st.booleans(), st.data())
def test_every_buffer_has_a_number_and_a_size(
    kinds: list[str], departs: bool, data: st.DataObject
) -> None:
    maps = tuple(
        Map(f"m{n}", "sm" if kind == "sm" else "warp", "array", 16, 1, FIELDS,
            dynamic=kind == "dynamic")
        for n, kind in enumerate(kinds)
    )  # fmt: skip
    counts = {
        map_.name: np.array(data.draw(st.lists(st.integers(0, 9), min_size=6, max_size=6)), "u4")
        for map_ in maps
        if map_.dynamic
    }
    layout = lay_out(
        woven(*maps, departs=departs), (3, 1, 1), (40, 1, 1), sm_count=4, counts=counts
    )
    numbers = Buffers.of(maps)
    assert len(layout.buffers) == numbers.departed + departs
    for place in layout.places:
        assert layout.buffers[place.counts] == 4 * (place.slots + (place.map.level == "sm"))
        if place.map.dynamic:
            offsets = layout.fixed[place.offsets].view(np.uint64)
            assert np.diff(offsets).tolist() == counts[place.map.name].tolist()
            assert layout.buffers[place.records] == 16 * counts[place.map.name].sum()
            assert layout.buffers[place.offsets] == 8 * (place.slots + 1)
        else:
            assert layout.buffers[place.records] == 16 * place.slots
    if "sm" in kinds:
        assert layout.fixed[numbers.sm_count].view(np.uint64).tolist() == [4]
    if departs:
        assert layout.buffers[-1] == 4 * 6


def test_a_dynamic_map_that_was_not_counted_has_room_for_nothing() -> None:
    map_ = Map("m", "warp", "array", 16, 1, FIELDS, dynamic=True)
    layout = lay_out(woven(map_), (3, 1, 1), (40, 1, 1))
    assert layout.buffers == (0, 24, 56)
    assert not layout.fixed[2].any()


def test_a_map_per_sm_needs_the_number_of_sms() -> None:
    with pytest.raises(UserError, match="slot per SM"):
        lay_out(woven(Map("m", "sm", "array", 16, 1, FIELDS)), (1, 1, 1), (32, 1, 1))


BIG = Map("big", "thread", "array", 16, 64, FIELDS)


def test_maps_within_the_limit_pass() -> None:
    layout = lay_out(woven(BIG), (1 << 10, 1, 1), (64, 1, 1))
    check_memory(layout, sum(layout.buffers))
    check_memory(lay_out(woven(), (1, 1, 1), (1, 1, 1)), 0)


def test_what_is_proposed_over_the_limit_is_under_it() -> None:
    small = Map("small", "warp", "array", 16, 1, FIELDS)
    layout = lay_out(woven(small, BIG), (1 << 14, 1, 1), (1024, 1, 1))
    with pytest.raises(UserError, match="map big has 16,777,216 slots") as caught:
        check_memory(layout, 1 << 30)
    hint = caught.value.hint
    match = re.search(r"sample=(\d+)", hint)
    assert match
    sampled = replace(BIG, sample=int(match[1]))
    check_memory(lay_out(woven(small, sampled), (1 << 14, 1, 1), (1024, 1, 1)), 1 << 30)
    reduced = Map("big", "warp", "reduce", 16, 1, FIELDS)
    less = lay_out(woven(small, reduced), (1 << 14, 1, 1), (1024, 1, 1))
    assert f'type="reduce", level="warp" takes {shown(map_bytes(less, less.places[1]))}' in hint
    assert 'level="kernel" 20 bytes' in hint
    assert "--map-limit 17G" in hint


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.50 KiB"), (1 << 60, "1.00 EiB")],
)
def test_sizes_are_shown_in_their_unit(size: int, text: str) -> None:
    assert shown(size) == text
