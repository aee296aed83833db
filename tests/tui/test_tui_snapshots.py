"""What whole screens look like, cell by cell, over the fake watch's fixed data."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_program_watch import FakeProgram
from fake_watch import FakeWatch
from textual.pilot import Pilot

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.program_header import ProgramHeader
from gpuwatch.tui.program_screen import ProgramScreen

Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours and theme are the app's own, whatever the caller's shell asks for."""
    for name in ("NO_COLOR", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)


async def _settle(pilot: Pilot[None]) -> None:
    await pilot.pause(0.3)


@pytest.mark.parametrize(
    ("picker", "size"),
    [
        pytest.param(False, (80, 24), id="live_80x24"),
        pytest.param(False, (120, 40), id="live_120x40"),
        pytest.param(False, (40, 10), id="too_small_40x10"),
        pytest.param(True, (120, 40), id="start_120x40"),
    ],
)
def test_screen(snap_compare: Compare, picker: bool, size: tuple[int, int]) -> None:
    app = GpuwatchApp(FakeWatch(), picker=picker)
    assert snap_compare(app, terminal_size=size, run_before=_settle)


@pytest.mark.parametrize("typed", ["", "hist f"], ids=["all", "found"])
def test_help(snap_compare: Compare, typed: str) -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    keys = ["question_mark", *("space" if key == " " else key for key in typed)]
    assert snap_compare(app, terminal_size=(80, 24), press=keys, run_before=_settle)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
@pytest.mark.parametrize(
    "keys",
    [
        pytest.param((), id="list"),
        pytest.param(("down", "enter"), id="attached"),
        pytest.param(("down", "enter", "k", "slash", *"gemm", "enter"), id="filtered"),
    ],
)
def test_program(snap_compare: Compare, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    async def press(pilot: Pilot[None]) -> None:
        header = pilot.app.screen.query_one(ProgramHeader)
        while "launches/s" not in header.render_line(1).text:
            await _settle(pilot)
        for key in keys:
            await _settle(pilot)
            await pilot.press(key)
        await _settle(pilot)

    app = GpuwatchApp(FakeProgram(), first=lambda: ProgramScreen("block_sched"))
    assert snap_compare(app, terminal_size=size, run_before=press)
