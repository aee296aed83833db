"""The occupancy pane: choosing an SM, sparklines; and which panes are on the screen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fake_watch import A10, H200, FakeWatch
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from gpuwatch.engine.report import occupancy_mean
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.layout import PANES, Content, Wish, available, shown
from gpuwatch.tui.occupancy_pane import OccupancyPane, cell_layout
from gpuwatch.tui.warp_pane import WarpPane

SIZES = [(80, 24), (120, 40), (200, 60)]


async def _focused(pilot: Pilot[None]) -> OccupancyPane:
    await pilot.pause(0.2)
    pane = pilot.app.screen.query_one(OccupancyPane)
    pane.focus()
    await pilot.pause()
    return pane


def _rows(app: GpuwatchApp) -> str:
    return app.screen.query_one(WarpPane).filter_text


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("device", [A10, H200], ids=["a10", "h200"])
async def test_arrows_and_enter_filter_by_an_sm(size: tuple[int, int], device: object) -> None:
    app = GpuwatchApp(FakeWatch(device), picker=False)  # type: ignore[arg-type]
    async with app.run_test(size=size) as pilot:
        pane = await _focused(pilot)
        await pilot.press("right", "right", "down", "enter")
        await pilot.pause(0.1)
        sm = 1 + pane._layout.columns
        assert _rows(app) == f"sm == {sm}"
        assert f" SM {sm} " in pane.render_line(pane.size.height - 1).text
        await pilot.press("enter")
        await pilot.pause(0.1)
        assert _rows(app) == ""


@pytest.mark.parametrize("size", SIZES)
async def test_a_click_on_an_sm_filters_by_it(size: tuple[int, int]) -> None:
    app = GpuwatchApp(FakeWatch(H200), picker=False)
    async with app.run_test(size=size) as pilot:
        pane = await _focused(pilot)
        layout = pane._layout
        x, y = layout.left + layout.width * 2 + layout.width // 2, 3
        await pilot.click(OccupancyPane, offset=(x, y))
        await pilot.pause(0.1)
        assert _rows(app) == f"sm == {2 * layout.columns + 2}"
        for beyond in ((0, 0), (pane.size.width - 1, pane.size.height)):
            assert pane.index_at(*beyond) is None


async def test_the_cursor_stays_on_the_device() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _focused(pilot)
        await pilot.press("right", "left", "up")
        assert pane.cursor == 0
        for _ in range(100):
            pane.action_move(0, 1)
        assert pane.cursor is not None and pane.cursor < 72


@given(st.integers(1, 600), st.integers(8, 250), st.integers(1, 70))
def test_every_layout_holds_all_cells_that_fit(sms: int, width: int, height: int) -> None:
    layout = cell_layout(sms, width, height)
    assert layout.left + layout.columns * layout.width <= max(width, 10)
    if layout.style != "dot":
        assert layout.columns * height >= sms


async def test_sparklines_show_when_there_is_room() -> None:
    for device, size, wanted in ((A10, (200, 60), True), (A10, (120, 40), False)):
        app = GpuwatchApp(FakeWatch(device), picker=False)
        async with app.run_test(size=size) as pilot:
            pane = await _focused(pilot)
            line = pane.render_line(1).text
            assert any(glyph in line for glyph in "▁▂▃▅▆▇") == wanted
            assert ("right: warps over" in pane.render_line(pane.size.height - 1).text) == wanted


async def test_sparklines_in_ascii() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False, ascii_only=True)
    async with app.run_test(size=(200, 60)) as pilot:
        pane = await _focused(pilot)
        assert pane.render_line(1).text.isascii()
        assert "#" in pane.render_line(1).text


@pytest.mark.parametrize("size", [(160, 40), (200, 60)])
async def test_each_sm_is_compared_with_the_baseline(size: tuple[int, int]) -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=size) as pilot:
        pane = await _focused(pilot)
        await pilot.press("b")
        assert watch.frame is not None and watch.frame.sms is not None
        before = watch.frame.sms.occupancy
        sms = replace(watch.frame.sms, occupancy=before - 0.1)
        watch.frame = replace(watch.frame, sms=sms, serial=9)
        await pilot.pause(0.2)
        lines = [pane.render_line(y).text for y in range(pane.size.height)]
        assert f"before {before.mean() * 100:.1f}%" in lines[0]
        assert sum(line.count(" -10") for line in lines[1:]) == 72
        assert all(len(line) == pane.size.width for line in lines)


async def test_the_mean_is_the_report_s_over_the_sms_that_ran_a_warp() -> None:
    watch = FakeWatch()
    assert watch.frame is not None and watch.frame.sms is not None
    idle = np.arange(72) >= 4
    sms = replace(
        watch.frame.sms,
        warps=np.where(idle, 0, watch.frame.sms.warps),
        occupancy=np.where(idle, 0.0, 0.083),
    )
    watch.frame = replace(watch.frame, sms=sms)
    assert occupancy_mean(watch.frame) == pytest.approx(0.083)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 40)) as pilot:
        pane = await _focused(pilot)
        title = pane.render_line(0).text
        assert "mean 8.3% of 4 SMs used " in title and "min 8% SM 0" in title
        await pilot.resize_terminal(80, 24)
        await pilot.pause(0.1)
        title = pane.render_line(0).text
        assert "mean 8.3%" in title and "used" not in title


async def test_idle_cycles_are_those_of_a_warp() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _focused(pilot)
        assert "idle 1.196k cycles/warp" in pane.render_line(pane.size.height - 1).text


# ---- which panes


CONTENTS = st.builds(Content, st.booleans(), st.booleans(), st.booleans()).filter(
    lambda content: content.timed or content.table or content.maps
)
WISHES = st.builds(
    Wish,
    st.sampled_from([None, *PANES]),
    st.frozensets(st.sampled_from(PANES)),
    st.booleans(),
)


@given(CONTENTS, WISHES, st.integers(60, 250), st.integers(16, 70))
def test_some_pane_with_content_is_always_shown(
    content: Content, wish: Wish, width: int, height: int
) -> None:
    panes = shown(content, wish, width, height)
    assert panes and panes <= available(content, wish)
    if wish.maximised in available(content, wish):
        assert panes == {wish.maximised}


def test_hidden_panes_are_left_out_where_others_remain() -> None:
    wish = Wish(hidden=frozenset(("histogram", "maps")))
    assert shown(Content(), wish, 120, 40) == {"occupancy", "warps"}
    assert shown(Content(timed=False, table=False, maps=True), wish, 120, 40) == {"maps"}
    assert "timeline" in shown(Content(), Wish(timeline=True), 120, 40)
    assert "occupancy" not in shown(Content(), Wish(timeline=True), 120, 40)


@pytest.mark.parametrize("size", SIZES)
async def test_panes_hide_and_come_back(size: tuple[int, int]) -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=size) as pilot:
        pane = await _focused(pilot)
        await pilot.press("h")
        await pilot.pause(0.1)
        assert not pane.display
        assert app.focused is app.screen.query_one(WarpPane)
        await pilot.press("h")
        await pilot.pause(0.1)
        assert not app.screen.query_one(WarpPane).display
        await pilot.press("h", "h")
        await pilot.pause(0.1)
        assert [name for name in PANES if app.screen.query_one(f"#{name}").display]
        await pilot.press("H")
        await pilot.pause(0.1)
        assert pane.display and app.screen.query_one(WarpPane).display


@pytest.mark.parametrize("keys", ["t", "tm", "x/", "ha", "m"])
async def test_no_sequence_of_sizes_crashes(keys: str) -> None:
    watch = FakeWatch(H200)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await _focused(pilot)
        await pilot.press(*("slash" if key == "/" else key for key in keys))
        for size in [(2, 2), (60, 16), (59, 15), (3, 80), (200, 3), (200, 60), (2, 2), (80, 24)]:
            await pilot.resize_terminal(*size)
            watch.advance()
            await pilot.pause(0.05)
        assert not app.screen.has_class("too-small")
        assert app.is_running
