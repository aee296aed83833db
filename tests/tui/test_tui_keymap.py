"""The user's own keys on the screen."""

from __future__ import annotations

import pytest
from fake_watch import FakeWatch
from textual.screen import Screen
from textual.widgets import Input, Static

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.bars import Footer, Header
from gpuwatch.tui.filter_bar import FilterBar
from gpuwatch.tui.kernel_picker import KernelPicker
from gpuwatch.tui.keymap import Keymap, Where, normal_name
from gpuwatch.tui.live_screen import LiveScreen
from gpuwatch.tui.program_live_screen import ProgramLiveScreen
from gpuwatch.tui.program_screen import ProgramScreen
from gpuwatch.tui.replay_screen import ReplayScreen
from gpuwatch.tui.start_screen import StartScreen


def app_with(**changed: str) -> GpuwatchApp:
    keymap = Keymap({name.replace("_", "-"): keys for name, keys in changed.items()})
    return GpuwatchApp(FakeWatch(), picker=False, keymap=keymap)


def test_the_keys_as_they_come_do_not_clash() -> None:
    assert list(Keymap().clashes()) == []


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"pause": "k"}, "k"),
        ({"pause": "f9", "sort": "f9"}, "f9"),
        ({"reset": "plus"}, "plus"),
        ({"help": "3"}, "3"),
        ({"play": "p"}, "p"),
        ({"kernel": "space", "pause": "f9"}, "space"),
        ({"start": "tab"}, "tab"),
        ({"detach": "t"}, "t"),
        ({"watch": "slash"}, "slash"),
        ({"pause": "ctrl+q"}, "ctrl+q"),
        ({"quit": "ctrl+c"}, None),
    ],
)
def test_a_key_of_two_actions_is_a_clash(changed: dict[str, str], key: str | None) -> None:
    assert {clash.key for clash in Keymap(changed).clashes()} == ({key} if key else set())


@pytest.mark.parametrize(
    ("where", "screen"),
    [
        ("start", StartScreen),
        ("live", LiveScreen),
        ("replay", ReplayScreen),
        ("program", ProgramScreen),
        ("attached", ProgramLiveScreen),
    ],
)
def test_every_key_of_the_tables_is_bound_to_what_the_screen_does(
    where: Where, screen: type[Screen[None]]
) -> None:
    bound = screen._merged_bindings
    assert bound is not None
    for key in Keymap(several=True).of(where):
        does = {getattr(GpuwatchApp, f"action_{key.action.partition('(')[0]}", None)}
        does.add(getattr(screen, f"action_{key.action.partition('(')[0]}", None))
        assert not key.action or "." in key.action or does != {None}, key.action
        if key.action and key not in Keymap().table["everywhere"]:
            for name in key.names:
                assert key.action in {one.action for one in bound.key_to_bindings[name]}


def test_two_keys_may_be_swapped() -> None:
    assert list(Keymap({"kernel": "s", "sort": "k"}).clashes()) == []


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("?", "question_mark"), ("+", "plus"), ("P", "P"), ("f12", "f12"), ("ctrl+t", "ctrl+t"),
        ("question_mark", "question_mark"), ("comma", "comma"), ("shift+up", "shift+up"),
        ("é", "é"), ("shift+s", ""), ("hyper+s", ""), ("crtl+r", ""), ("f99", ""), ("ctrl+", ""),
    ],
)  # fmt: skip
def test_names_of_keys(key: str, name: str) -> None:
    assert normal_name(key) == name


async def test_another_key_does_it_and_the_former_no_more() -> None:
    app = app_with(pause="P,f9")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)

        def paused() -> bool:
            return "PAUSED" in app.screen.query_one(Header).render_line(0).text

        for key, wanted in (("space", False), ("P", True), ("f9", False)):
            await pilot.press(key)
            await pilot.pause(0.2)
            assert paused() == wanted
        assert " P/f9 pause " in app.screen.query_one(Footer).render_line(0).text


async def test_swapped_keys_do_each_others_work() -> None:
    app = app_with(pause="k", kernel="space", play="f9")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("k")
        await pilot.pause(0.2)
        assert "PAUSED" in app.screen.query_one(Header).render_line(0).text
        await pilot.press("space")
        await pilot.pause(0.2)
        assert isinstance(app.screen, KernelPicker)
        await pilot.press("space")
        await pilot.pause(0.2)
        assert isinstance(app.screen, LiveScreen)


async def test_a_key_that_became_a_letter_is_text_in_the_filter() -> None:
    app = app_with(restart="R", filter="f5")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("slash", "R")
        assert isinstance(app.feed, FakeWatch)
        assert app.feed.calls == ["restart"]
        assert not app.screen.query_one(FilterBar).has_class("open")
        await pilot.press("f5", "R")
        assert app.screen.query_one(Input).value == "R"
        assert app.feed.calls == ["restart"]


async def test_help_and_palette_show_the_changed_keys() -> None:
    app = app_with(help="f1", timeline="ctrl+t")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("question_mark")
        assert isinstance(app.screen, LiveScreen)
        await pilot.press("f1", *"timeline")
        await pilot.pause(0.2)
        text = str(app.screen.query_one(Static).content)
        assert "ctrl+t  blocks over time" in text
    commands = {key.action: key.text for key in app.keymap.commands("live")}
    assert (commands["timeline"], commands["help"]) == ("ctrl+t", "f1")


async def test_quit_from_a_dialog_has_the_changed_key() -> None:
    app = app_with(quit="f10")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("k", "q")
        await pilot.pause(0.2)
        assert isinstance(app.screen, KernelPicker)
        await pilot.press("f10")
        await pilot.pause(0.2)
        assert not app.is_running


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_every_key_that_quits_does_so_in_order(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    done = []
    monkeypatch.setattr(GpuwatchApp, "action_finish", lambda _: done.append(key))
    app = app_with()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press(key)
        assert done == [key] and app.is_running


@pytest.mark.parametrize("changed", [{}, {"pause": "P"}, {"play": "P"}])
async def test_a_replay_plays_where_the_live_screen_pauses(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str]
) -> None:
    done = []
    monkeypatch.setattr(ReplayScreen, "action_play", lambda _: done.append("play"))
    monkeypatch.setattr(ReplayScreen, "action_pause", lambda _: done.append("pause"))
    app = GpuwatchApp(FakeWatch(), picker=False, screen=ReplayScreen, keymap=Keymap(changed))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("space", "P")
        assert done == ["play"]
    told = {key.action: key.text for key in app.keymap.of("replay")}
    assert "pause" not in told
    assert told["play"] == changed.get("play", "space")
