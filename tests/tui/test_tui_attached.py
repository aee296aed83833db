"""The live screen of a running program's kernel: attaching, detaching, going back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_program_watch import KERNELS, PID, FakeProgram
from program_app import app_of, at_rest, header, lines, settled, under_cursor
from textual.widgets import Static

from gpuwatch.engine.frame import Status
from gpuwatch.errors import UserError
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.bars import Footer, Header
from gpuwatch.tui.keymap import Keymap
from gpuwatch.tui.palette import KeyCommands
from gpuwatch.tui.program_live_screen import ProgramLiveScreen
from gpuwatch.tui.program_screen import ProgramScreen
from gpuwatch.tui.source_pane import SourcePane
from gpuwatch.tui.warp_pane import WarpPane


async def test_an_ended_program_leaves_list_and_last_frame() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("down", "enter")
        await settled(pilot)
        watch.end(-11)
        await settled(pilot)
        assert " ENDED " in app.screen.query_one(Header).render_line(0).text
        assert "the program was killed by SIGSEGV" in at_rest(app)
        assert not app.screen.has_class("failed")
        assert not app.screen.query_one(WarpPane).stale
        await pilot.press("2", "d", "k")
        await settled(pilot)
        assert watch.calls == ["select gemm_tiled None"]
        assert header(app)[0].endswith(" KILLED BY SIGSEGV")
        assert "launches/s" not in header(app)[1]
        assert len(lines(app)) == len(KERNELS)
        await pilot.press("down", "enter", "d")
        assert watch.calls == ["select gemm_tiled None"]
        assert isinstance(app.screen, ProgramScreen)
        await pilot.press("up", "enter")
        await settled(pilot)
        assert isinstance(app.screen, ProgramLiveScreen)
        assert "gemm_tiled" in app.screen.query_one(Header).render_line(0).text


@pytest.mark.parametrize("attached", [False, True])
async def test_an_error_of_the_watch_is_shown(attached: bool) -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        if attached:
            await pilot.press("enter")
        error = UserError("ptxas refused the probed kernel", hint="try another probe", status=3)
        watch.now = Status("failed", "ptxas refused", error)
        await settled(pilot)
        banner = str(app.screen.query_one("#banner-text", Static).content)
        assert app.screen.query_one("#banner").display
        assert "ptxas refused the probed kernel" in banner and "q quits" in banner
        assert ("k goes back" in banner) == attached
        assert "worker" not in banner
        watch.now = Status("running")
        await settled(pilot)
        assert not app.screen.query_one("#banner").display
        watch.now = Status("failed", "ptxas refused", error)
        await pilot.press("q")
    assert app.return_code == 3


# ---- attaching


async def test_enter_attaches_and_k_goes_back_with_the_probe_attached() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert "no probe is attached" in at_rest(app)
        await pilot.press("down", "enter")
        await settled(pilot)
        assert isinstance(app.screen, ProgramLiveScreen)
        assert watch.calls == ["select gemm_tiled None"]
        texts = [app.screen.query_one(Header).render_line(y).text for y in range(3)]
        assert "python train.py" in texts[0] and "> gemm_tiled <<<" in texts[0]
        assert "probed 1,234 of 56,789 launches" in texts[2]
        assert "identical" not in "".join(texts)
        await pilot.press("r", "w", "k")
        await settled(pilot)
        assert isinstance(app.screen, ProgramScreen)
        assert watch.calls[1:] == ["reset", "record 10"]
        assert under_cursor(app).startswith("▶ ■ gemm_tiled")
        assert "■ block_sched is attached to gemm_tiled" in at_rest(app)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ProgramLiveScreen)
        assert watch.calls[3:] == []


async def test_probes_are_chosen_in_the_list_and_in_the_live_screen() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("2", "enter")
        await settled(pilot)
        await pilot.press("3", "k")
        await settled(pilot)
        assert " 3 gmem_traffic " in header(app)[2]
        await pilot.press("down", "enter")
        await settled(pilot)
    assert watch.calls == [
        "select flash warp_duration",
        "select flash gmem_traffic",
        "select gemm_tiled gmem_traffic",
    ]


async def test_the_first_probe_may_be_given() -> None:
    watch = FakeProgram()
    app = GpuwatchApp(watch, first=lambda: ProgramScreen("divergence"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert header(app)[2].endswith("6 barrier_wait   7 divergence")
        await pilot.press("enter")
        assert watch.calls == ["select flash divergence"]


async def test_d_detaches_in_the_list() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("d")
        assert watch.calls == []
        await pilot.press("enter", "k", "d")
        await settled(pilot)
        assert watch.calls[1:] == ["detach"]
        assert "■" not in under_cursor(app)
        assert "no probe is attached" in at_rest(app)


async def test_d_detaches_in_the_live_screen_and_a_digit_attaches_again() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        await pilot.press("d", "d")
        await settled(pilot)
        assert watch.calls == ["select flash None", "detach"]
        headline = app.screen.query_one(Header).render_line(0).text
        assert " DETACHED " in headline and "/s" not in headline
        assert app.screen.query_one(WarpPane).stale
        await pilot.press("2")
        await settled(pilot)
        assert watch.calls[2:] == ["select flash warp_duration"]
        assert " DETACHED " not in app.screen.query_one(Header).render_line(0).text
        assert not app.screen.query_one(WarpPane).stale


async def test_another_kernels_frame_is_old_until_the_new_one_comes() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("enter", "k")
        await settled(pilot)
        watch.hold = True
        watch.now = Status("waiting", "waiting for the program to launch it")
        await pilot.press("down", "enter")
        await settled(pilot)
        assert app.screen.query_one(WarpPane).stale
        assert "switching to gemm_tiled" in at_rest(app)
        watch.deliver("gemm_tiled")
        await settled(pilot)
        assert not app.screen.query_one(WarpPane).stale


async def test_a_kernel_that_is_not_launched_is_waited_for() -> None:
    watch = FakeProgram()
    watch.hold = True
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        watch.now = Status("waiting", "waiting for the program to launch it")
        await pilot.press("enter")
        await settled(pilot)
        assert "waiting for the program to launch it" in at_rest(app)
        watch.process_list[0] = replace(watch.process_list[0], status="1")
        await settled(pilot)
        assert f"process {PID} ended with status 1" in at_rest(app)


async def test_keys_without_a_meaning_do_nothing_and_are_not_offered() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert not app._notifications
        await pilot.press("l", "o")
        await settled(pilot)
        assert isinstance(app.screen, ProgramLiveScreen)
        assert not app._notifications
        assert watch.calls == ["select flash None"]
        assert " k kernels  d detach " in app.screen.query_one(Footer).render_line(0).text
        await pilot.press("p")
        await settled(pilot)
        assert app.screen.query_one(SourcePane).display
        shown = app.screen.focused
        await pilot.press("tab")
        assert app.screen.focused is not shown
        await pilot.press("ctrl+r")
        assert watch.calls[1:] == ["select flash None"]
    told = {key.action for key in app.keymap.help_keys("attached")}
    assert told.isdisjoint({"edit_launch", "other_source", "source_or_pane", "pick_kernel"})
    assert {"to_list", "detach", "record", "reset", "probe(1)", "finish"} <= told


async def test_help_and_palette_tell_the_keys_of_where_they_are_opened() -> None:
    app = app_of(FakeProgram())
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("question_mark")
        await pilot.pause(0.2)
        text = str(app.screen.query_one(Static).content)
        assert "attach the probe to the kernel" in text and "theoretical occupancy" in text
        await pilot.press("escape", "enter")
        await settled(pilot)
        await pilot.press("question_mark")
        await pilot.pause(0.2)
        text = str(app.screen.query_one(Static).content)
        assert "back to the list" in text and "Identical" not in text
        await pilot.press("escape")
        await pilot.pause(0.2)
        hits = [hit async for hit in KeyCommands(app.screen).search("detach")]
        assert any("take the probe off" in str(hit.text) for hit in hits)


async def test_the_users_keys_count_here_too() -> None:
    watch = FakeProgram()
    app = app_of(watch, keymap=Keymap({"kernel": "f2", "detach": "D", "watch": "f3"}))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("f3")
        await settled(pilot)
        await pilot.press("d", "k")
        assert isinstance(app.screen, ProgramLiveScreen)
        await pilot.press("D", "f2")
        await settled(pilot)
        assert isinstance(app.screen, ProgramScreen)
    assert watch.calls == ["select flash None", "detach"]


@pytest.mark.parametrize("attached", [False, True])
async def test_quits_from_both_screens(attached: bool) -> None:
    app = app_of(FakeProgram())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        if attached:
            await pilot.press("enter")
            await settled(pilot)
        await pilot.press("q")
        await pilot.pause(0.2)
        assert not app.is_running
    assert app.return_code == 0
