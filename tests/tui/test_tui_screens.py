"""The screens over the fake watch, driven through Textual's Pilot."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from fake_watch import GEMM, H200, TILED, FakeWatch

from gpuwatch.analysis.ordering import Ordering
from gpuwatch.engine.frame import Status
from gpuwatch.errors import UserError
from gpuwatch.tui import live_screen
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.bars import Footer, Header
from gpuwatch.tui.glyphs import brief
from gpuwatch.tui.histogram_pane import HistogramPane
from gpuwatch.tui.kernel_picker import KernelPicker
from gpuwatch.tui.live_screen import LiveScreen
from gpuwatch.tui.log_pane import LogPane
from gpuwatch.tui.occupancy_pane import OccupancyPane
from gpuwatch.tui.record_table import table_of
from gpuwatch.tui.theme import GREY
from gpuwatch.tui.warp_pane import WarpPane


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("rows", [1_000, 150_000])
def test_ordering_is_stable_and_ranks_agree(rows: int, descending: bool) -> None:
    values = np.random.default_rng(1).integers(-50, 50, rows)
    expected = np.argsort(-values if descending else values, kind="stable")
    ordering = Ordering(values, descending=descending)
    assert ordering.rows(500, 40).tolist() == expected[500:540].tolist()
    assert ordering.rank(int(expected[537])) == 537


async def test_start_screen_goes_live() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert isinstance(app.screen, LiveScreen)
    assert watch.calls == [f"select {GEMM} block_sched"]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_every_sm_is_in_view(size: tuple[int, int]) -> None:
    app = GpuwatchApp(FakeWatch(H200), picker=False)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.2)
        pane = app.screen.query_one(OccupancyPane)
        text = "".join(pane.render_line(y).text for y in range(1, pane.size.height - 1))
        numbers = len(re.findall(r"(?<= )\d{2}(?= )", text))
        assert "131 " in text or text.count("■") == 132 or numbers >= 132


async def test_selection_follows_the_warp() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("down", "down")
        pane = app.screen.query_one(WarpPane)
        warp = pane.warp
        assert warp is not None
        watch.advance()
        await pilot.pause(0.2)
        assert pane.warp == warp
        shown = [pane.render_line(y).text for y in range(2, pane.size.height)]
        assert next(line for line in shown if line.startswith("▶")).split()[1] == str(warp)


async def test_pause_keeps_the_frame_and_counts_on() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("space")
        watch.advance()
        await pilot.pause(0.2)
        headline = app.screen.query_one(Header).render_line(0).text
        assert "PAUSED" in headline
        assert "at launch 128, now 129" in headline


async def test_probe_switch_greys_the_old_frame_until_the_new_one() -> None:
    watch = FakeWatch()
    watch.hold = True
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("3")
        pane = app.screen.query_one(WarpPane)
        assert pane.stale
        watch.deliver(probe="gmem_traffic")
        await pilot.pause(0.2)
        assert not pane.stale
        text = "".join(pane.render_line(y).text for y in range(pane.size.height))
        assert "gmem_traffic records no start and elapsed" in text


@pytest.mark.parametrize("first", ["block_sched", "gmem_traffic"])
async def test_all_of_the_former_probe_is_grey_and_called_by_its_name(first: str) -> None:
    watch = FakeWatch()
    watch.deliver(probe=first)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause(0.2)
        header = app.screen.query_one(Header)
        assert f"of {first}" not in header.render_line(2).text
        watch.hold = True
        await pilot.press("4")
        await pilot.pause(0.2)
        assert header.render_line(2).text.startswith(f" of {first}: ")
        former = [header.render_line(2)]
        for pane in app.screen.query("Pane, WarpPane, MapsPane"):
            if pane.display and not isinstance(pane, LogPane):
                former += [pane.render_line(y) for y in range(pane.size.height)]
        colours = {
            part.style.color.name
            for line in former
            for part in line
            if part.text.strip() and part.style is not None and part.style.color is not None
        }
        assert colours == {GREY}
        watch.deliver(probe="smem_conflicts")
        await pilot.pause(0.2)
        assert "of " not in header.render_line(2).text


async def test_a_recorded_launch_has_a_place_and_no_rate() -> None:
    watch = FakeWatch()
    assert watch.frame is not None
    watch.frame = replace(watch.frame, recorded=(9, 10))
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause(0.2)
        headline = app.screen.query_one(Header).render_line(0).text
        assert "launch 9 of 10 " in headline and "/s" not in headline
        await pilot.press("b")
        watch.frame = replace(watch.frame, recorded=(10, 10), seconds_plain=1e-3)
        await pilot.pause(0.2)
        assert "than launch 9" in app.screen.query_one(Header).render_line(2).text


async def test_kernel_picker_selects() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("k")
        await pilot.pause(0.2)
        assert isinstance(app.screen, KernelPicker)
        await pilot.press("down", "enter")
        await pilot.pause(0.2)
    assert watch.calls == [f"select {TILED} None"]


async def test_failure_shows_a_banner_and_sets_the_status() -> None:
    watch = FakeWatch()
    watch.now = Status("failed", "", UserError("illegal address", status=1))
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        assert app.screen.query_one("#banner").display
        await pilot.press("ctrl+r")
        assert watch.calls == ["restart"]
        await pilot.press("q")
    assert app.return_code == 1


@pytest.mark.parametrize("picker", [False, True])
async def test_no_size_crashes(picker: bool) -> None:
    app = GpuwatchApp(FakeWatch(), picker=picker)
    async with app.run_test(size=(120, 40)) as pilot:
        for size in [(2, 2), (60, 16), (59, 15), (3, 80), (200, 3), (200, 60), (2, 2), (80, 24)]:
            await pilot.resize_terminal(*size)
            await pilot.pause(0.05)
        assert not app.screen.has_class("too-small")


async def test_every_column_sorts_both_ways() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        pane = app.screen.query_one(WarpPane)
        seen = set()
        for _ in range(7):
            await pilot.press("s")
            before = pane.descending
            await pilot.press("S")
            assert pane.descending != before
            seen.add(pane.sort)
        assert seen == {"warp", "block", "SM", "start", "elapsed", "avg", "n"}


@pytest.mark.parametrize("width", [80, 120, 200])
async def test_a_simulated_device_is_always_labelled(width: int) -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(width, 30)) as pilot:
        await pilot.pause(0.2)
        assert " MODELLED " in app.screen.query_one(Header).render_line(0).text


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40), (200, 60)])
async def test_header_says_what_probing_costs(size: tuple[int, int]) -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.2)
        line = app.screen.query_one(Header).render_line(2).text
    for part in ("identical yes", "33,024/33,024", "missing 0", "dropped 0", "\u00d71.01"):
        assert part in line
    assert ("32 → 34" in line) == (size[0] >= 120)


async def test_lost_records_come_before_other_figures_in_a_narrow_header() -> None:
    watch = FakeWatch()
    assert watch.frame is not None
    watch.frame = replace(watch.frame, missing=1_234)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause(0.2)
        line = app.screen.query_one(Header).render_line(2).text
    assert "missing 1,234" in line


async def test_percentiles_are_in_the_title_and_under_the_axis() -> None:
    for size in ((60, 16), (120, 40)):
        app = GpuwatchApp(FakeWatch(), picker=False)
        async with app.run_test(size=size) as pilot:
            await pilot.pause(0.2)
            pane = app.screen.query_one(HistogramPane)
            lines = [pane.render_line(y).text for y in range(pane.size.height)]
        assert lines[-1].split() == ["p50", "p90", "p99"]
        assert ("p99" in lines[0]) == (size[0] >= 120)


@pytest.mark.parametrize(
    ("number", "text"),
    [(950, "950"), (999.6, "1.00k"), (9_996, "10.0k"), (188_472, "188k"), (999_600, "1.00M")],
)
def test_brief_numbers_have_three_digits(number: float, text: str) -> None:
    assert brief(number) == text


@pytest.mark.parametrize("size", [(60, 16), (100, 24), (120, 40)])
async def test_a_long_error_leaves_all_lines_in_view(size: tuple[int, int]) -> None:
    watch = FakeWatch(ready=False)
    error = UserError("gemm.cu does not compile\n" + "more\n" * 30)
    watch.now = Status("failed", "gemm.cu does not compile", error)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.2)
        screen = app.screen
        assert screen.query_one("#banner").size.height >= 4
        assert screen.query_one(OccupancyPane).size.height >= 2
        assert screen.query_one(WarpPane).size.height >= 2
        footer = screen.query_one(Footer).region
        assert (footer.bottom, footer.height) == (size[1], 1)
        assert ">" not in screen.query_one(Header).render_line(0).text


async def test_a_maximised_pane_takes_the_room_of_all() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        for kind in (OccupancyPane, HistogramPane, WarpPane):
            pane = app.screen.query_one(kind)
            pane.focus()
            before = pane.size.area
            await pilot.press("m")
            await pilot.pause(0.2)
            assert tuple(pane.size) == (120, 35)
            await pilot.press("m")
            await pilot.pause(0.2)
            assert pane.size.area == before


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_quits_out_of_a_dialog(key: str) -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("k")
        assert not isinstance(app.screen, LiveScreen)
        await pilot.press(key)
        await pilot.pause(0.2)
        assert app.return_code == 0
        assert not app.is_running


async def test_no_picker_opens_before_the_kernels_are_known() -> None:
    watch = FakeWatch(ready=False)
    watch.kernel_list = []
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("k")
        assert isinstance(app.screen, LiveScreen)


async def test_the_table_of_a_frame_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Mock(side_effect=table_of)
    monkeypatch.setattr(live_screen, "table_of", made)
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        watch.advance()
        await pilot.pause(0.2)
        assert app.screen.query_one(WarpPane).view.frame is watch.frame  # type: ignore[union-attr]
        assert made.call_count == 2
