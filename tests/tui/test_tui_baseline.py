"""The present against a pinned baseline."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from fake_watch import FakeWatch, make_frame
from textual.widgets import Static

from gpuwatch.engine.frame import Status
from gpuwatch.errors import Location, UserError
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.bars import Footer, Header, StatusLine
from gpuwatch.tui.comparison import Baseline, speed_text, speedup, with_delta
from gpuwatch.tui.live_screen import LiveScreen
from gpuwatch.tui.record_table import DELTA, table_of
from gpuwatch.tui.warp_pane import WarpPane


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.43, "1.43x faster"), (0.91, "0.91x"), (1.0, "1.00x")]
)
def test_speed_is_said_in_one_word(ratio: float, text: str) -> None:
    assert speed_text(ratio, "x") == text


def test_speed_is_of_the_plain_builds() -> None:
    before = replace(make_frame(), seconds_plain=3e-3, seconds_probed=9.0)
    now = replace(make_frame(), seconds_plain=2e-3, seconds_probed=1.0)
    assert speedup(before, now) == pytest.approx(1.5)
    assert speedup(replace(before, seconds_plain=0.0), now) is None


def test_each_warp_is_compared_with_itself() -> None:
    before, now = make_frame(serial=1), make_frame(serial=2)
    table = with_delta(table_of(now), Baseline.of(before))
    assert table is not None and before.warps_table is not None and now.warps_table is not None
    expected = 100 * (now.warps_table.elapsed / before.warps_table.elapsed - 1)
    assert np.allclose(table.columns[DELTA], expected)
    assert table.measured[0] == "elapsed"
    assert DELTA not in table.measured


def test_a_warp_that_the_baseline_misses_has_no_delta() -> None:
    before = Baseline.of(make_frame(serial=1))
    assert before.table is not None
    kept = np.arange(len(before.table)) != 7
    columns = {name: values[kept] for name, values in before.table.columns.items()}
    short = replace(before.table, columns=columns, ids=before.table.ids[kept])
    table = with_delta(table_of(make_frame(serial=2)), Baseline(before.frame, short))
    assert table is not None
    assert np.flatnonzero(np.isnan(table.columns[DELTA])).tolist() == [7]


def test_launches_of_another_shape_are_compared_with_the_median() -> None:
    before = make_frame(serial=1)
    other = replace(make_frame(serial=2), grid=(43, 32, 1))
    table = with_delta(table_of(other), Baseline.of(before))
    assert table is not None and before.warps_table is not None
    median = np.median(before.warps_table.elapsed)
    expected = 100 * (table.columns["elapsed"] / median - 1)
    assert np.allclose(table.columns[DELTA], expected)


async def test_pinning_and_dropping() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        header, warps = app.screen.query_one(Header), app.screen.query_one(WarpPane)
        await pilot.press("b")
        watch.advance()
        assert watch.frame is not None
        watch.frame = replace(watch.frame, seconds_plain=watch.frame.seconds_plain / 1.43)
        await pilot.pause(0.2)
        assert "1.43\u00d7 faster" in header.render_line(2).text
        assert "modelled" in header.render_line(2).text
        assert DELTA in warps.render_line(1).text
        assert "%" in warps.render_line(2).text
        await pilot.press("b")
        await pilot.pause(0.2)
        assert "faster" not in header.render_line(2).text
        assert DELTA not in warps.render_line(1).text


@pytest.mark.parametrize(
    ("kernel", "build", "pinned", "said"),
    [
        ("gemm_gpu(const float *, int)", 1, False, True),
        ("scale(float *, int)", 1, False, False),
        ("scale(float *, int)", 0, True, True),
        ("scale(float *, int)", 1, True, True),
    ],
)
async def test_a_kernel_of_another_name_is_faster_only_than_a_pinned_one(
    kernel: str, build: int, pinned: bool, said: bool
) -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        assert watch.frame is not None and watch.frame.kernel.startswith("gemm_gpu(")
        if pinned:
            await pilot.press("b")
        watch.advance()
        former = watch.frame
        faster = former.seconds_plain / 5
        watch.frame = replace(former, build=build, kernel=kernel, seconds_plain=faster)
        await pilot.pause(0.2)
        assert ("5.00\u00d7 faster" in app.screen.query_one(Header).render_line(2).text) is said


async def test_the_former_build_becomes_the_baseline() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        former = watch.frame
        watch.advance()
        assert watch.frame is not None and former is not None
        watch.frame = replace(watch.frame, build=1, seconds_plain=former.seconds_plain * 1.25)
        await pilot.pause(0.2)
        assert isinstance(app.screen, LiveScreen)
        assert "0.80\u00d7" in app.screen.query_one(Header).render_line(2).text


async def test_what_was_not_compared_yet_is_not_claimed() -> None:
    watch = FakeWatch()
    assert watch.frame is not None
    watch.frame = replace(watch.frame, outputs_identical=None, seconds_plain=0.0)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause(0.2)
        header = app.screen.query_one(Header)
        text = "\n".join(header.render_line(y).text for y in range(header.size.height))
        assert "outputs identical not yet" in text
        assert re.search(r"modelled \? . \S+", text)
        assert "\u00d7" not in text


async def test_the_other_source_is_one_key_away() -> None:
    watch = FakeWatch()
    watch.source_list = ["kernels/gemm.cu", "kernels/gemm_tiled.cu"]
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("o")
        await pilot.pause(0.2)
        header = app.screen.query_one(Header)
        assert watch.calls == ["select None None kernels/gemm_tiled.cu"]
        assert "gemm_tiled.cu" in header.render_line(0).text
        assert "1.00\u00d7" in header.render_line(2).text
        await pilot.press("o")
        assert watch.calls[-1] == "select None None kernels/gemm.cu"


async def test_the_header_names_the_source_of_what_is_shown() -> None:
    watch = FakeWatch()
    watch.source_list = ["kernels/gemm.cu", "kernels/gemm_tiled.cu"]
    assert watch.frame is not None
    watch.frame = replace(watch.frame, source="kernels/gemm.cu")
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        watch.hold = True
        await pilot.press("o")
        await pilot.pause(0.2)
        assert watch.source() == "kernels/gemm_tiled.cu"
        assert " gemm.cu " in app.screen.query_one(Header).render_line(0).text


async def test_tab_goes_to_the_next_of_several_sources_and_shift_tab_to_another_pane() -> None:
    watch = FakeWatch()
    watch.source_list = ["kernels/gemm.cu", "kernels/gemm_tiled.cu"]
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        assert " tab source " in app.screen.query_one(Footer).render_line(0).text
        before = app.screen.focused
        await pilot.press("tab")
        assert watch.calls == ["select None None kernels/gemm_tiled.cu"]
        assert app.screen.focused is before
        await pilot.press("shift+tab")
        assert app.screen.focused is not before
        await pilot.press("slash", "tab")
        assert len(watch.calls) == 1
        await pilot.press("escape", "question_mark", *"source")
        await pilot.pause(0.2)
        told = str(app.screen.query_one(Static).content)
        assert "tab  the next of several sources" in told and "shift+tab  go to another" in told


async def test_tab_goes_to_the_next_pane_with_one_source() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        assert " tab " not in app.screen.query_one(Footer).render_line(0).text
        before = app.screen.focused
        await pilot.press("tab")
        assert app.screen.focused is not before
        assert watch.calls == []
        texts = {key.text: key.help for key in app.keymap.help_keys("live")}
        assert texts["tab"] == "go to the next pane" and "shift+tab" not in texts


@pytest.mark.parametrize("width", [80, 160])
async def test_a_preset_that_cannot_attach_is_marked_and_says_why(width: int) -> None:
    watch = FakeWatch()
    reason = "the kernel has no access to shared memory"
    watch.probe_list[3] = replace(watch.probe_list[3], problem=reason)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(width, 40)) as pilot:
        await pilot.pause(0.2)
        line = app.screen.query_one(Header).render_line(1).text
        assert "4\u2717" in line
        assert "\u2717 smem_conflicts: the kernel has" in line
        await pilot.press("4")
        await pilot.pause(0.2)
        assert watch.calls == []
        assert reason in [notice.message for notice in app._notifications]


async def test_the_reason_shown_is_that_of_the_preset_pressed_last() -> None:
    watch = FakeWatch()
    for place, reason in ((3, "gemm_gpu has no ld.shared"), (5, "gemm_gpu has no bar.sync")):
        watch.probe_list[place] = replace(watch.probe_list[place], problem=reason)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause(0.2)
        header = app.screen.query_one(Header)
        assert "✗ smem_conflicts: gemm_gpu has no ld.shared" in header.render_line(1).text
        await pilot.press("6")
        await pilot.pause(0.2)
        assert "✗ barrier_wait: gemm_gpu has no bar.sync" in header.render_line(1).text
        assert "no ld.shared" not in header.render_line(1).text


@pytest.mark.parametrize("fatal", [False, True])
async def test_an_error_without_a_place_says_that_saving_tries_again(fatal: bool) -> None:
    """Unless the worker is gone."""
    watch = FakeWatch()
    error = UserError("the kernel k did not end within 10 s", status=1, fatal=fatal)
    watch.now = Status("failed", error.message, error)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        told = str(app.screen.query_one("#banner-text", Static).content)
        assert ("saving the file tries again" in told) is not fatal


async def test_an_error_in_a_saved_source_leaves_the_former_build_in_view() -> None:
    watch = FakeWatch()
    error = UserError("identifier x is undefined", at=Location("gemm.cu", 3, 5, "    x += 1;"))
    watch.now = Status("running", error=error)
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        screen = app.screen
        assert screen.query_one("#banner").display
        assert not screen.query_one(WarpPane).stale
        assert "the former build runs on" in screen.query_one(StatusLine).render_line(0).text
        watch.now = Status("running", aside="compiling gemm.cu")
        await pilot.pause(0.2)
        assert not screen.query_one("#banner").display
        assert "compiling gemm.cu" in screen.query_one(StatusLine).render_line(0).text
        watch.now = Status("running", error=error)
        await pilot.press("q")
    assert app.return_code == 0
