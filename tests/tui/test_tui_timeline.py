"""The timeline pane: swapping in, zoom and pan, lanes, filtering by SM and block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_watch import H200, FakeWatch
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from gpuwatch.analysis.time_axis import TimeAxis
from gpuwatch.analysis.timeline import block_spans
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.gantt import Gantt, Row, Window, first_to_show, rows_of
from gpuwatch.tui.glyphs import ASCII, UNICODE
from gpuwatch.tui.timeline_pane import TimelinePane
from gpuwatch.tui.warp_pane import WarpPane

SIZES = [(80, 24), (120, 40), (200, 60)]


def _spans(rows: list[tuple[int, int, int]], sms: int = 3):
    sm, start, elapsed = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    return block_spans(sm.astype(np.int32), np.arange(len(rows)), start, elapsed, sms)


SPANS = _spans([(0, 0, 50), (0, 0, 30), (0, 40, 60), (1, 500, 100), (2, 0, 100)])


def _text(gantt: Gantt, row: Row) -> str:
    return "".join(text for text, _ in gantt.row(row, None))


async def _pane(pilot: Pilot[None]) -> TimelinePane:
    await pilot.pause(0.2)
    await pilot.press("t")
    await pilot.pause(0.1)
    pane = pilot.app.screen.query_one(TimelinePane)
    pane.focus()
    await pilot.pause()
    return pane


def _lines(pane: TimelinePane) -> list[str]:
    return [pane.render_line(y).text for y in range(pane.size.height)]


# ---- pure


@given(
    st.lists(
        st.one_of(st.sampled_from([0.5, 2.0]), st.sampled_from([-0.25, 0.25, 3.0])), max_size=30
    )
)
def test_no_zoom_or_pan_leaves_the_span(steps: list[float]) -> None:
    window = Window()
    for step in steps:
        window = window.zoomed(step, 0.01) if step in (0.5, 2.0) else window.panned(step)
        assert -1e-9 <= window.low < window.high <= 1 + 1e-9
        assert window.high - window.low >= 0.01 - 1e-9


def test_zooming_out_undoes_zooming_in() -> None:
    window = Window().zoomed(0.5, 0.01).zoomed(2.0, 0.01)
    assert (window.low, window.high) == (0.0, 1.0)


def test_lines_open_the_sm_under_the_cursor_or_all() -> None:
    assert [(row.sm, row.lane) for row in rows_of(SPANS, 0, 9, (0,))] == [
        (0, None), (0, 0), (0, 1), (1, None), (2, None),
    ]  # fmt: skip
    assert [(row.sm, row.lane) for row in rows_of(SPANS, 0, 9, None)][3:] == [
        (1, None), (1, 0), (2, None), (2, 0),
    ]  # fmt: skip
    assert len(rows_of(SPANS, 0, 2, None)) == 2


@given(st.integers(0, 2), st.integers(0, 2), st.integers(1, 6), st.booleans())
def test_the_cursor_is_always_in_sight(first: int, cursor: int, height: int, opened: bool) -> None:
    top = first_to_show(SPANS, first, cursor, height, opened)
    rows = rows_of(SPANS, top, height, (cursor,) if opened else ())
    assert cursor in {row.sm for row in rows}


def test_blocks_are_drawn_where_they_ran() -> None:
    gantt = Gantt(SPANS, 0, 100, 20, ASCII, (5, 1, 1))
    rows = rows_of(SPANS, 0, 9, (0,))
    assert _text(gantt, rows[1]) == "|0========----------"
    assert _text(gantt, rows[2]) == "|1====--|2=========="
    assert _text(gantt, rows[3]) == ASCII.upward[2] * 20


def test_a_block_that_began_before_the_window_keeps_its_number() -> None:
    gantt = Gantt(SPANS, 60, 100, 20, ASCII, (5, 1, 1))
    rows = rows_of(SPANS, 0, 9, (0,))
    assert _text(gantt, rows[2]) == "2" + "=" * 19


def test_a_lane_with_more_blocks_than_cells_shows_how_full_it_is() -> None:
    spans = _spans([(0, at * 10, 5) for at in range(100)], 1)
    gantt = Gantt(spans, 0, 1_000, 10, UNICODE, (100, 1, 1))
    row = rows_of(spans, 0, 9, (0,))[1]
    assert _text(gantt, row) == "━" * 10


# ---- on the screen


@pytest.mark.parametrize("size", SIZES)
async def test_t_swaps_the_timeline_in_and_out(size: tuple[int, int]) -> None:
    app = GpuwatchApp(FakeWatch(H200), picker=False)
    async with app.run_test(size=size) as pilot:
        pane = await _pane(pilot)
        assert pane.display and not app.screen.query_one("#occupancy").display
        lines = _lines(pane)
        assert "Timeline" in lines[0] and "100% of" in lines[0]
        assert lines[1].split()[0] == "0"
        assert all(len(line) == pane.size.width for line in lines)
        await pilot.press("t")
        await pilot.pause(0.1)
        assert not pane.display
        assert app.focused is app.screen.query_one("#occupancy")


async def test_maximised_the_other_takes_its_place() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("m")
        await pilot.pause(0.1)
        assert tuple(pane.size) == (120, 35)
        await pilot.press("t")
        await pilot.pause(0.1)
        assert tuple(app.screen.query_one("#occupancy").size) == (120, 35)


@pytest.mark.parametrize("size", SIZES)
async def test_cursor_zoom_and_pan(size: tuple[int, int]) -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=size) as pilot:
        pane = await _pane(pilot)
        await pilot.press("down", "down", "plus", "plus")
        assert (pane.cursor, pane.window) == (2, Window(0.375, 0.625))
        assert "25% of" in _lines(pane)[0]
        await pilot.press("right", "right")
        assert pane.window == Window(0.5, 0.75)
        await pilot.press("minus", "0")
        assert pane.window == Window()
        await pilot.press("pagedown", "pagedown", "pagedown", "pagedown", "pagedown", "pagedown")
        assert any(line.split()[:1] == [str(pane.cursor)] for line in _lines(pane))


async def test_zoom_ends_where_a_cell_is_a_cycle() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _pane(pilot)
        for _ in range(60):
            pane.action_zoom(-1)
        assert "cell 1 " in _lines(pane)[0]
        assert len(_lines(pane)[-1].split()) >= 1


async def test_enter_filters_by_the_sm_and_a_click_by_the_block() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("down", "enter")
        await pilot.pause(0.1)
        table = app.screen.query_one(WarpPane)
        assert table.filter_text == "sm == 1"
        lines = _lines(pane)
        at = next(y for y, line in enumerate(lines) if "│(" in line)
        x = lines[at].index("│(")
        shown = lines[at][x + 1 : lines[at].index(")", x) + 1]
        await pilot.click(TimelinePane, offset=(x + 1, at))
        await pilot.pause(0.1)
        assert table.filter_text == f"block == {shown}"
        assert table.count_text == "24 of 33,024"


async def test_no_size_breaks_it() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False, ascii_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("e")
        for size in ((60, 16), (80, 24), (61, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.1)
            assert all(line.isascii() for line in _lines(pane))


async def test_a_probe_without_sms_says_so() -> None:
    watch = FakeWatch()
    assert watch.frame is not None
    watch.frame.sms = None
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _pane(pilot)
        await pilot.press("plus", "down", "enter", "right")
        assert "records no SM" in "".join(_lines(pane))
        assert app.screen.query_one(WarpPane).filter_text == ""


# ---- on one axis


def _on_axis(watch: FakeWatch, axis: TimeAxis) -> FakeWatch:
    assert watch.frame is not None
    watch.frame.time_axis = axis
    return watch


def _measured(watch: FakeWatch, **others: Any) -> TimeAxis:
    """An axis whose zero is the launch's first start."""
    assert watch.frame is not None and watch.frame.warps_table is not None
    origin = np.full(132, int(watch.frame.warps_table.start.min()), np.int64)
    values = {"drift_ns": 41.0, "drift_seconds": 2.0, **others}
    return TimeAxis(origin, 1 / 1.98, 32.0, 9.2, 1e-6, **values)


async def test_with_a_common_axis_times_are_microseconds() -> None:
    watch = FakeWatch(H200)
    app = GpuwatchApp(_on_axis(watch, _measured(watch)), picker=False)
    async with app.run_test(size=(200, 60)) as pilot:
        pane = await _pane(pilot)
        title = _lines(pane)[0]
        assert "us, +-9 ns" in title and "cycles" not in title and "drift" not in title
        longest = pane._longest(pane._blocks())  # type: ignore[arg-type]
        assert f"{longest / 1980:.5g}"[:4] in title
        await pilot.press(*["plus"] * 40)
        ticks = [float(label) for label in _lines(pane)[-1].split()]
        assert len(ticks) > 2 and ticks == sorted(set(ticks))


async def test_sms_that_start_late_are_drawn_late() -> None:
    watch = FakeWatch(H200)
    assert watch.frame is not None and watch.frame.warps_table is not None
    table = watch.frame.warps_table
    axis = _measured(watch)
    span = int((table.start + table.elapsed).max() - table.start.min())
    axis.origin[1] -= span
    app = GpuwatchApp(_on_axis(watch, axis), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _pane(pilot)
        spans = pane._blocks()
        assert spans is not None
        assert spans.begin[spans.of_sm(1)].min() >= span
        assert spans.begin[spans.of_sm(0)].min() < span // 10


async def test_an_sm_of_its_own_rate_is_drawn_by_it() -> None:
    watch = FakeWatch(H200)
    rates = np.full(132, 1 / 1.98)
    rates[1] *= 3
    app = GpuwatchApp(_on_axis(watch, _measured(watch, rates=rates)), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        spans = (await _pane(pilot))._blocks()
        assert spans is not None
        slow, usual = (spans.of_sm(sm) for sm in (1, 0))
        assert spans.end[slow].max() > 2.5 * spans.end[usual].max()
        took = spans.end - spans.begin
        assert took[slow].min() > 2 * took[usual].max()


@pytest.mark.parametrize(
    "width, words", [(80, "SMs drift"), (200, "SM clocks drift too much for one axis")]
)
async def test_clocks_that_drift_too_much_are_shown_one_by_one(width: int, words: str) -> None:
    watch = FakeWatch(H200)
    axis = _measured(watch, drift_ns=1e9)
    axis.origin[1] -= 5_000_000
    app = GpuwatchApp(_on_axis(watch, axis), picker=False)
    async with app.run_test(size=(width, 40)) as pilot:
        pane = await _pane(pilot)
        title = _lines(pane)[0]
        assert "cycles" in title and "us," not in title
        assert words in title
        spans = pane._blocks()
        assert spans is not None
        assert [int(spans.begin[spans.of_sm(sm)].min()) for sm in range(132)] == [0] * 132


async def test_modelled_time_is_labelled() -> None:
    app = GpuwatchApp(_on_axis(FakeWatch(), TimeAxis.shared(72, 1.695e9)), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        assert "us, modelled" in _lines(await _pane(pilot))[0]
