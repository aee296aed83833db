"""The tour of a kiosk, screenshots, the command palette, and what is remembered."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fake_watch import GEMM, TILED, FakeWatch
from textual.command import CommandPalette, Hit

from gpuwatch.errors import UserError
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.keymap import Keymap, Where
from gpuwatch.tui.kiosk import Caption, Stop, Tour, next_stop
from gpuwatch.tui.layout import Wish, remembered, wish_of
from gpuwatch.tui.live_screen import LiveScreen
from gpuwatch.tui.log_pane import LogPane
from gpuwatch.tui.palette import KeyCommands, command_text
from gpuwatch.tui.remembered import Remembered, recall, remember, state_file
from gpuwatch.tui.warp_pane import WarpPane


def test_the_time_at_a_stop_counts_from_its_first_frame() -> None:
    tour = Tour(10.0)
    assert not tour.due(0.0, arrived=False)
    assert not tour.due(50.0, arrived=True)
    assert tour.part(55.0) == 0.5
    assert not tour.due(59.0, arrived=True)
    assert tour.due(60.0, arrived=True)
    assert not tour.due(61.0, arrived=True)


def test_the_tour_goes_through_probes_then_kernels_then_sources() -> None:
    watch = FakeWatch()
    watch.probe_list = watch.probe_list[:3]
    watch.probe_list[1] = replace(watch.probe_list[1], problem="cannot")
    first, _, third = (probe.name for probe in watch.probe_list)
    assert next_stop(watch, GEMM, first) == Stop(third)
    assert next_stop(watch, GEMM, third) == Stop(first, kernel=TILED)
    watch.kernel_list = watch.kernel_list[:1]
    assert next_stop(watch, GEMM, third) == Stop(first)
    watch.source_list.append("other.cu")
    assert next_stop(watch, GEMM, third) == Stop(first, source="other.cu")
    watch.source_list.pop()
    watch.probe_list = watch.probe_list[:1]
    assert next_stop(watch, GEMM, first) is None


async def test_a_kiosk_goes_on_by_itself_and_says_what_is_shown() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False, kiosk=0.1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(1.5)
        caption = app.screen.query_one(Caption)
        titles = [f"{probe.name}: {probe.title}" for probe in watch.probes()]
        assert caption.render_line(0).text.strip() in titles
        assert "gemm_" in caption.render_line(1).text
    assert len(watch.calls) >= 3
    assert watch.calls[0] == "select None warp_duration"


async def test_the_caption_changes_with_the_first_frame_of_the_new_probe() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False, kiosk=600.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        watch.hold = True
        await pilot.press("4")
        caption = app.screen.query_one(Caption)
        assert caption.render_line(0).text.strip().startswith("block_sched: ")
        watch.deliver(probe="smem_conflicts")
        await pilot.pause(0.2)
        assert caption.render_line(0).text.strip().startswith("smem_conflicts: ")


async def test_a_screenshot_is_saved_where_asked(tmp_path: Path) -> None:
    app = GpuwatchApp(FakeWatch(), picker=False, shots=tmp_path / "new" / "shots")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("c")
        await pilot.pause(0.2)
    (picture,) = (tmp_path / "new" / "shots").iterdir()
    assert re.fullmatch(r"gemm-block_sched-\d{8}-\d{6}\.svg", picture.name)
    assert "SM&#160;occupancy" in picture.read_text()


async def test_a_screenshot_that_cannot_be_saved_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    app = GpuwatchApp(FakeWatch(), picker=False, shots=tmp_path / "file" / "shots")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("c")
        await pilot.pause(0.2)
        assert any("no screenshot" in notice.message for notice in app._notifications)


async def test_the_palette_finds_an_action_by_its_words() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("ctrl+p")
        await pilot.pause(0.2)
        assert isinstance(app.screen, CommandPalette)
        await pilot.press(*"compiler weaver")
        await pilot.pause(0.8)
        await pilot.press("down", "enter")
        await pilot.pause(0.5)
        assert isinstance(app.screen, LiveScreen)
        assert app.screen.query_one(LogPane).display


async def _best(app: GpuwatchApp, query: str) -> Hit:
    hits = [hit async for hit in KeyCommands(app.screen).search(query)]
    return max((hit for hit in hits if isinstance(hit, Hit)), key=lambda hit: hit.score)


async def test_the_palette_finds_every_row_of_the_key_table() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause(0.2)
        for key in app.keymap.help_keys("live"):
            last_first = " ".join(reversed(key.help.split()))
            for query in (last_first, f"{key.id} {key.help}".strip()):
                assert key.help in str((await _best(app, query)).match_display)
        for name in ("record", "baseline"):
            assert str((await _best(app, name)).match_display).startswith(f"{name}: ")


@pytest.mark.parametrize("where", ["live", "replay", "start", "program", "attached"])
def test_no_command_is_told_twice(where: Where) -> None:
    texts = [command_text(key) for key in Keymap().commands(where)]
    assert len(set(texts)) == len(texts)


async def test_the_palette_presses_a_key_of_the_focused_pane() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        (await _best(app, "select a warp")).command()
        await pilot.pause(0.2)
        assert app.screen.query_one(WarpPane).warp is not None


async def test_the_screen_starts_as_it_was_left() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("s", "S", "g")
        sort = app.screen.query_one(WarpPane).sort
    left = app.remembered
    assert (left.sort, left.below) == (sort, "log")
    again = GpuwatchApp(FakeWatch(), picker=False, remembered=left)
    async with again.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        warps = again.screen.query_one(WarpPane)
        assert (warps.sort, warps.descending) == (sort, left.descending)
        assert again.screen.query_one(LogPane).display


def test_what_is_remembered_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_CONFIG_DIR", str(tmp_path / "config"))
    assert recall() == Remembered()
    state = Remembered("SM", False, True, "source", ("histogram",))
    remember(state)
    assert recall() == state
    assert remembered(wish_of(state), "SM", False) == state
    assert [file.name for file in state_file().parent.iterdir()] == ["state.json"]
    state_file().write_text("{")
    with pytest.raises(UserError, match=r"state\.json cannot be read"):
        recall()


def test_panes_that_are_no_more_are_forgotten() -> None:
    assert wish_of(Remembered(below="gone", hidden=("warps", "gone"))) == Wish(
        hidden=frozenset({"warps"})
    )


@pytest.mark.parametrize("size", [(50, 12), (2, 2), (59, 40)])
async def test_too_small_a_screen_shows_nothing_but_the_size_needed(size: tuple[int, int]) -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.resize_terminal(*size)
        await pilot.pause(0.3)
        shown = [type(child).__name__ for child in app.screen.children if child.display]
        assert shown == ["TooSmall"]
        await pilot.resize_terminal(120, 40)
        await pilot.pause(0.3)
        assert app.screen.query_one(WarpPane).size.height > 3
