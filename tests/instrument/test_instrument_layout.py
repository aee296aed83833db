"""Layouts: buffers of the right size, records apart, no 32-bit wrap."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.instrument import lay_out
from gpuwatch.instrument.layout import FIELD_BYTES, field_offsets
from gpuwatch.instrument.model import Site, Woven
from gpuwatch.probe.model import Field, Map

TYPES = sorted(FIELD_BYTES)
LEVELS = ["thread", "warp", "block", "site", "kernel"]


@st.composite
def maps(draw: st.DrawFn) -> Map:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=6))
    fields = tuple(Field(f"f{number}", type_) for number, type_ in enumerate(types))  # type: ignore[arg-type]
    size = 8 * len(types) + 8 * draw(st.integers(0, 3))
    level, cap = draw(st.sampled_from(LEVELS)), draw(st.integers(1, 1 << 12))
    return Map(f"m{draw(st.integers())}", level, "array", size, cap, fields)  # type: ignore[arg-type]


GRIDS = st.tuples(st.integers(1, (1 << 31) - 1), st.integers(1, 65535), st.integers(1, 65535))
BLOCKS = st.sampled_from([(1, 1, 1), (48, 1, 1), (17, 3, 2), (1024, 1, 1), (1, 31, 33), (8, 8, 16)])


@settings(deadline=None, max_examples=150)
@given(st.lists(maps(), max_size=4), st.integers(1, 9), GRIDS, BLOCKS, st.booleans())
def test_buffers_hold_every_record(
    given_maps: list[Map],
    sites: int,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    departs: bool,
) -> None:
    places = tuple(Site(number, "p", "", 1, 0) for number in range(sites))
    woven = Woven("", "k", "v", tuple(given_maps), places, (), counts_departures=departs)
    layout = lay_out(woven, grid, block)
    blocks, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
    warps = blocks * -(-threads // 32)
    slots = {
        "thread": blocks * threads,
        "warp": warps,
        "block": blocks,
        "site": sites,
        "kernel": 1,
    }
    assert (layout.blocks, layout.warps) == (blocks, warps)
    used = [index for place in layout.places for index in (place.records, place.counts)]
    assert sorted(used) == list(range(2 * len(given_maps)))
    assert len(layout.buffers) == len(used) + departs
    for place, map_ in zip(layout.places, given_maps, strict=True):
        assert place.slots == slots[map_.level]
        assert layout.buffers[place.counts] == 4 * place.slots
        last = (place.slots - 1) * map_.slot_bytes + (map_.cap - 1) * map_.size
        assert last + map_.size == layout.buffers[place.records]
    if departs:
        assert layout.buffers[-1] == 4 * warps


@settings(deadline=None)
@given(maps())
def test_fields_are_aligned_and_apart(map_: Map) -> None:
    end = 0
    for field, offset in zip(map_.fields, field_offsets(map_), strict=True):
        size = FIELD_BYTES[field.type]
        assert offset % size == 0
        assert offset >= end
        end = offset + size
    assert end <= map_.size
