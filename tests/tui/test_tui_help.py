"""The help: what it tells, how it is searched and scrolled."""

from __future__ import annotations

import pytest
from fake_watch import FakeWatch
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Input, Static

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.help import Entry, Help, found
from gpuwatch.tui.keymap import KEYS, Keymap, Where
from gpuwatch.tui.live_screen import LiveScreen

ENTRIES = [Entry.of(key) for key in Keymap().help_keys("live")]


def names(query: str) -> list[str]:
    return [entry.name for entry in found(ENTRIES, query)]


@pytest.mark.parametrize("where", ["start", "live", "replay", "program", "attached"])
def test_every_key_is_told(where: Where) -> None:
    keymaps = [Keymap(several=several) for several in (False, True)]
    told = {(key.text, key.help) for keymap in keymaps for key in keymap.help_keys(where)}
    own = (*KEYS[where], *KEYS["everywhere"])
    assert told >= {(key.text, key.help) for key in own if key.help}
    assert ("space", "freeze the view; launches go on") in told or where != "live"


@pytest.mark.parametrize(
    ("query", "first"),
    [("/", ["/"]), ("S", ["S"]), ("ctrl+r", ["ctrl+r"]), ("esc", ["esc"]), ("n", ["n/N"])],
)
def test_a_key_finds_its_action_first(query: str, first: list[str]) -> None:
    assert names(query)[: len(first)] == first


def test_all_words_must_be_there_in_any_order_and_case() -> None:
    assert names("Histogram FIELD") == names("field histo") == ["v"]
    assert {"x", "v", "a"} <= set(names("histogram"))
    assert names("histogram nonsense") == []
    assert names("") == [entry.name for entry in ENTRIES]


def test_an_action_is_found_by_what_the_keymap_calls_it() -> None:
    assert names("unhide") == ["H"]


async def _shown(pilot: Pilot[None]) -> str:
    await pilot.pause(0.2)
    return str(pilot.app.screen.query_one(Static).content)


async def test_typing_filters_and_esc_closes() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("question_mark")
        assert "freeze the view" in await _shown(pilot)
        await pilot.press("q", "u", "i", "t")
        text = await _shown(pilot)
        assert "suspend" not in text
        assert "ctrl+c/ctrl+q  quit" in text
        await pilot.press(*"xyz")
        assert await _shown(pilot) == "No key and no word begins so."
        await pilot.press("escape")
        await pilot.pause(0.2)
        assert isinstance(app.screen, LiveScreen)
        assert app.is_running


async def test_it_scrolls_to_its_end_and_back_to_the_top_of_what_is_found() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("question_mark")
        await pilot.pause(0.2)
        lines = app.screen.query_one(VerticalScroll)
        assert lines.max_scroll_y > 0
        await pilot.press("down")
        assert lines.scroll_offset.y == 1
        await pilot.press(*["pagedown"] * 9)
        await pilot.pause(0.2)
        assert lines.scroll_offset.y == lines.max_scroll_y
        await pilot.press("k")
        await pilot.pause(0.2)
        assert lines.scroll_offset.y == 0


@pytest.mark.parametrize("picker", [False, True])
async def test_ctrl_c_quits_out_of_the_help(picker: bool) -> None:
    app = GpuwatchApp(FakeWatch(), picker=picker)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("question_mark", "q")
        await pilot.pause(0.2)
        assert isinstance(app.screen, Help)
        assert app.screen.query_one(Input).value == "q"
        await pilot.press("ctrl+c")
        await pilot.pause(0.2)
        assert not app.is_running
