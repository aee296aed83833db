"""Filtering the table from the filter line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fake_watch import FakeWatch
from textual.pilot import Pilot
from textual.widgets import Input

from gpuwatch.analysis.filtering import Filter, FilterError
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.filter_bar import FilterBar
from gpuwatch.tui.glyphs import UNICODE
from gpuwatch.tui.live_screen import LiveScreen
from gpuwatch.tui.warp_pane import WarpPane


def _app(watch: FakeWatch | None = None) -> GpuwatchApp:
    return GpuwatchApp(watch or FakeWatch(), picker=False)


async def _type(pilot: Pilot[None], text: str) -> None:
    await pilot.press("slash")
    await pilot.pause()
    pilot.app.screen.query_one(Input).value = text
    await pilot.pause(0.1)


def _pane(app: GpuwatchApp) -> WarpPane:
    return app.screen.query_one(WarpPane)


def _text(pane: WarpPane) -> list[str]:
    return [pane.render_line(y).text for y in range(pane.size.height)]


def _remark(app: GpuwatchApp) -> str:
    bar = app.screen.query_one(FilterBar)
    return next(iter(bar.query("_Remark"))).render_line(0).text  # type: ignore[attr-defined]


async def test_rows_and_title_follow_every_key() -> None:
    watch = FakeWatch()
    app = _app(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        assert watch.frame is not None and watch.frame.warps_table is not None
        on_3 = int((watch.frame.warps_table.sm == 3).sum())
        await _type(pilot, "sm == 3")
        lines = _text(_pane(app))
        assert f"{on_3} of 33,024" in lines[0]
        assert "filter sm == 3" in lines[0]
        assert {line.split()[2] for line in lines[2:] if line.strip()} == {"3"}
        assert f"{on_3} of 33,024" in _remark(app)
        await pilot.press("enter")
        assert app.focused is _pane(app)
        assert f"{on_3} of 33,024" in _text(_pane(app))[0]


async def test_a_fault_is_pointed_at_and_changes_nothing() -> None:
    app = _app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await _type(pilot, "sm == 3")
        before = _pane(app).count_text
        await _type_over(pilot, "sm == 3 and elasped")
        assert _pane(app).count_text == before
        remark = _remark(app)
        assert remark.index("▲") == 3 + len("sm == 3 and ")
        assert "no column 'elasped'; there are warp, block, sm, start, elapsed" in remark
        await pilot.press("enter")
        assert app.screen.query_one(FilterBar).has_class("open")


async def _type_over(pilot: Pilot[None], text: str) -> None:
    pilot.app.screen.query_one(Input).value = text
    await pilot.pause(0.1)


@pytest.mark.parametrize("kept", [False, True])
async def test_escape_shows_all_rows_again(kept: bool) -> None:
    app = _app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await _type(pilot, "sm == 3")
        if kept:
            await pilot.press("enter")
        await pilot.press("escape")
        await pilot.pause(0.1)
        assert _pane(app).count_text == "33,024 of 33,024"
        assert not app.screen.query_one(FilterBar).has_class("open")


async def test_keys_of_the_screen_are_letters_in_the_filter() -> None:
    watch = FakeWatch()
    app = _app(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("slash", "s", "m", "space", "1", "q")
        assert app.is_running
        assert app.screen.query_one(Input).value == "sm 1q"
    assert watch.calls == []


async def test_losses_stay_in_the_title_of_a_filtered_table() -> None:
    watch = FakeWatch()
    assert watch.frame is not None
    watch.frame = replace(watch.frame, missing=17, dropped=5)
    for width in (60, 80, 120):
        app = _app(watch)
        async with app.run_test(size=(width, 24)) as pilot:
            await pilot.pause(0.2)
            await _type(pilot, "elapsed > p50 and sm == 3")
            title = _text(_pane(app))[0]
        assert "missing 17" in title and "dropped 5" in title and " of 33,024" in title


async def test_a_filter_that_the_next_table_cannot_answer_says_so() -> None:
    watch = FakeWatch()
    assert watch.frame is not None and watch.frame.warps_table is not None
    table = watch.frame.warps_table
    table.fields["bytes"] = np.arange(len(table), dtype=np.uint32)
    app = _app(watch)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause(0.2)
        await _type(pilot, "bytes < 100")
        await pilot.press("enter")
        assert _pane(app).count_text == "100 of 33,024"
        watch.advance()
        await pilot.pause(0.2)
        title = _text(_pane(app))[0]
        assert "no column 'bytes' in this table" in title
        assert _pane(app).rows.order is not None
        assert len(_pane(app).rows.order) == 33_024


async def test_a_filtered_selection_is_kept_but_not_shown() -> None:
    app = _app()
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("down")
        warp = _pane(app).warp
        await _type(pilot, f"warp != {warp}")
        assert f"selected {warp} not shown" in _text(_pane(app))[0]
        await pilot.press("escape")
        await pilot.pause(0.1)
        assert _pane(app).selected_row is not None
        assert "not shown" not in _text(_pane(app))[0]


def test_a_fault_far_right_is_told_left_of_its_mark() -> None:
    bar = FilterBar(UNICODE, "filter")
    remark = bar._remark
    with pytest.raises(FilterError) as caught:
        Filter.of("sm == 3 and sm == 4 and sm == 5 and x", ("sm",))
    remark.fault = caught.value
    remark._size = type(remark.size)(50, 1)
    text = "".join(part for part, _ in remark._spans())
    assert text.endswith("▲") and "there are sm" in text and len(text) <= 50


async def test_no_table_no_filter() -> None:
    app = _app(FakeWatch(ready=False))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("slash")
        assert isinstance(app.screen, LiveScreen)
        assert not app.screen.query_one(FilterBar).has_class("open")
