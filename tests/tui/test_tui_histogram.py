"""The histogram pane: scales, fields, accumulation, cursor, baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from fake_watch import FakeWatch, make_frame
from textual.pilot import Pilot

from gpuwatch.device.base import Reduced
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.chart import Bars
from gpuwatch.tui.glyphs import ASCII, UNICODE
from gpuwatch.tui.histogram_pane import HistogramPane
from gpuwatch.tui.warp_pane import WarpPane

SIZES = [(80, 24), (120, 40), (200, 60)]


async def _pane(pilot: Pilot[None]) -> HistogramPane:
    await pilot.pause(0.2)
    pane = pilot.app.screen.query_one(HistogramPane)
    pane.focus()
    await pilot.pause()
    return pane


def _lines(pane: HistogramPane) -> list[str]:
    return [pane.render_line(y).text for y in range(pane.size.height)]


def _with_bytes(watch: FakeWatch) -> np.ndarray:
    assert watch.frame is not None and watch.frame.warps_table is not None
    values = np.random.default_rng(8).integers(0, 5_000, 33_024).astype(np.uint32)
    watch.frame.warps_table.fields["bytes"] = values
    return values


def _with_sums(watch: FakeWatch, buckets: Mapping[int, int]) -> None:
    """Of 9000 launches, by the device."""
    counts, zero = np.zeros(1024, np.int64), np.zeros(1, np.int64)
    counts[list(buckets)] = list(buckets.values())
    assert watch.frame is not None
    reduced = Reduced(9_000, 40, 0, 0, 1, 1, 1, counts, zero, zero, zero, zero)
    watch.frame = replace(watch.frame, reduced=reduced)


# ---- cursor


@pytest.mark.parametrize("scale", [0, 1, 2])
@pytest.mark.parametrize("size", SIZES)
async def test_the_bar_that_is_read_is_the_filter_that_enter_sets(
    size: tuple[int, int], scale: int
) -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=size) as pilot:
        pane = await _pane(pilot)
        for _ in range(scale):
            await pilot.press("x")
        for keys in (("left",), ("left",), ("right", "right", "right"), ("home",), ("end",)):
            await pilot.press(*keys)
            shown = pane._shown()
            assert shown is not None and pane.cursor is not None
            count = int(shown.now.counts(shown.scale, pane._columns)[pane.cursor])
            assert f" {count:,} " in _lines(pane)[-1]
            await pilot.press("enter")
            await pilot.pause(0.1)
            table = app.screen.query_one(WarpPane)
            assert table.filter_text.startswith("elapsed ")
            assert table.count_text == f"{count:,} of 33,024"


async def test_a_click_reads_a_bar_and_a_second_one_filters() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.click(HistogramPane, offset=(25, 5))
        assert pane.cursor == 18
        assert app.screen.query_one(WarpPane).filter_text == ""
        await pilot.click(HistogramPane, offset=(25, 5))
        await pilot.pause(0.1)
        assert app.screen.query_one(WarpPane).filter_text.startswith("elapsed >= ")


# ---- scales and fields


async def test_x_goes_through_the_scales() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(200, 60)) as pilot:
        pane = await _pane(pilot)
        titles = []
        for _ in range(3):
            titles.append(_lines(pane)[0])
            await pilot.press("x")
        assert "log" not in titles[0]
        assert "log values" in titles[1] and "log counts" in titles[2]
        assert _lines(pane)[0] == titles[0]


async def test_v_goes_through_the_fields_of_the_probe() -> None:
    watch = FakeWatch()
    values = _with_bytes(watch)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(200, 60)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("v")
        assert _lines(pane)[0].split()[1] == "bytes"
        assert f"p50 {np.median(values):,.0f}" in _lines(pane)[0]
        await pilot.press("v")
        assert _lines(pane)[0].split()[1] == "avg"
        await pilot.press("v")
        assert "Elapsed cycles" in _lines(pane)[0]


async def test_zeros_do_not_stop_a_logarithmic_axis() -> None:
    watch = FakeWatch()
    values = _with_bytes(watch)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("v", "x", "home", "enter")
        await pilot.pause(0.1)
        assert "below" in _lines(pane)[-1]
        table = app.screen.query_one(WarpPane)
        limit = int(table.filter_text.split()[-1])
        assert table.count_text == f"{(values < limit).sum():,} of 33,024"


async def test_a_field_of_equal_values_shows_one_bar() -> None:
    watch = FakeWatch()
    assert watch.frame is not None and watch.frame.warps_table is not None
    watch.frame.warps_table.fields["lanes"] = np.full(33_024, 32, np.uint32)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("v")
        for _ in range(3):
            shown = pane._shown()
            assert shown is not None
            assert sorted(shown.now.counts(shown.scale, 40).tolist())[-2:] == [0, 33_024]
            assert len(_lines(pane)) == pane.size.height
            await pilot.press("x")


# ---- accumulation


async def test_launches_add_up_also_while_paused_and_each_once() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("a")
        assert " 1/128 launches " in _lines(pane)[0]
        await pilot.press("space")
        for _ in range(3):
            watch.advance()
            await pilot.pause(0.1)
        assert " 1/128 launches " in _lines(pane)[0]
        await pilot.press("space")
        await pilot.pause(0.1)
        assert " 4/131 launches " in _lines(pane)[0]
        shown = pane._shown()
        assert shown is not None and shown.now.total == 4 * 33_024
        await pilot.press("r")
        watch.advance()
        assert watch.frame is not None
        watch.frame = replace(watch.frame, launches=1)
        await pilot.pause(0.1)
        assert " 1 launch " in _lines(pane)[0]


async def test_other_fields_are_of_the_paused_launch_too() -> None:
    watch = FakeWatch()
    _with_bytes(watch)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("a", "space")
        for _ in range(3):
            watch.advance()
            await pilot.pause(0.1)
        for keys in (("v",), ("v", "v"), ("a", "a"), ("b",)):
            await pilot.press(*keys)
            await pilot.pause(0.1)
            assert " 1/128 launches " in _lines(pane)[0]


async def test_every_field_is_summed_up_from_the_start() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 40)) as pilot:
        pane = await _pane(pilot)
        for _ in range(3):
            watch.advance()
            await pilot.pause(0.1)
        await pilot.press("v", "a")
        assert " avg " in _lines(pane)[0]
        assert " 4/131 launches " in _lines(pane)[0]


async def test_what_lies_in_one_bucket_is_one_bar_and_one_filter() -> None:
    watch = FakeWatch()
    assert watch.frame is not None and watch.frame.warps_table is not None
    warps = watch.frame.warps_table
    warps.average[:] = 199_827
    warps.average[:258] = np.linspace(170_000, 230_000, 258)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("v", "a", "left")
        reading = _lines(pane)[-1]
        ends = reading.split("   ")[0].replace(",", "").split(" to ")
        low, high = map(float, ends)
        count = int(((warps.average >= low) & (warps.average < high)).sum())
        assert count >= 33_024 - 258
        assert f" {count:,} (" in reading
        await pilot.press("enter")
        await pilot.pause(0.1)
        assert app.screen.query_one(WarpPane).count_text == f"{count:,} of 33,024"


async def test_a_wide_bucket_is_one_bar_to_the_cursor() -> None:
    watch = FakeWatch()
    _with_sums(watch, {200: 30, 203: 10})
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("a", "home", "right")
        read = []
        for _ in range(4):
            read.append(_lines(pane)[-1].split("enter")[0].strip())
            await pilot.press("right")
        assert read[0].startswith("49,152 to 51,200") and "30 (75.0%)" in read[0]
        assert read[1].startswith("51,200 to 53,248") and " 0 (0.0%)" in read[1]
        assert read[2].startswith("53,248 to 55,296") and " 0 (0.0%)" in read[2]
        assert read[3].startswith("55,296 to 57,344") and "10 (25.0%)" in read[3]


async def test_what_the_device_summed_up_comes_first() -> None:
    watch = FakeWatch()
    _with_sums(watch, {200: 30, 201: 10})
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("a")
        assert "9,000 launches" in _lines(pane)[0]
        shown = pane._shown()
        assert shown is not None
        assert set(shown.now.counts(shown.scale, 30)) == {0, 10, 30}
        assert "elapsed" not in pane._tallies


# ---- drawing


def test_bars_are_as_high_as_their_counts() -> None:
    drawn = Bars(np.array([0.0, 1.0, 50.0, 100.0]), 10, UNICODE, log=False)
    rows = ["".join(text for text, _ in drawn.row(row)) for row in range(10)]
    assert rows[0] == "  100 │   █"
    assert rows[5] == "   50 │  ██"
    assert rows[9] == "      │ ▁██"
    assert rows[4].endswith("│   █")


def test_former_counts_are_a_line_over_the_bars() -> None:
    drawn = Bars(
        np.array([100.0, 100.0]), 10, ASCII, log=False, line=np.array([50.0, 0.0]), cursor=None
    )
    rows = ["".join(text for text, _ in drawn.row(row)) for row in range(10)]
    assert [row[7:] for row in rows].count("-#") == 1
    assert rows[5].endswith("|-#")


def test_log_counts_show_what_is_rare() -> None:
    rare = np.array([100.0, 1_000_000.0])
    linear = Bars(rare, 20, ASCII, log=False)
    log = Bars(rare, 20, ASCII, log=True)
    height = {
        name: sum("".join(text for text, _ in bars.row(row))[7] != " " for row in range(20))
        for name, bars in (("linear", linear), ("log", log))
    }
    assert height["linear"] == 1 < height["log"]


@pytest.mark.parametrize("size", [(80, 24), (160, 40)])
async def test_the_baseline_is_drawn_too(size: tuple[int, int]) -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=size) as pilot:
        pane = await _pane(pilot)
        await pilot.press("b")
        assert watch.frame is not None and watch.frame.warps_table is not None
        slower = make_frame(serial=2)
        assert slower.warps_table is not None
        slower.warps_table.elapsed *= 2
        watch.frame = slower
        await pilot.pause(0.2)
        shown = pane._shown()
        assert shown is not None and shown.before is not None
        assert shown.scale.low <= shown.before.low < shown.now.low < shown.scale.high
        bars = _lines(pane)[1:-3]
        assert any("─" in line for line in bars)


@pytest.mark.parametrize("size", SIZES)
async def test_ascii_stays_ascii(size: tuple[int, int]) -> None:
    app = GpuwatchApp(FakeWatch(), picker=False, ascii_only=True)
    async with app.run_test(size=size) as pilot:
        pane = await _pane(pilot)
        for key in ("left", "x", "x", "a", "v"):
            await pilot.press(key)
            assert all(line.isascii() for line in _lines(pane))
