"""The app over the fake program, and what its screens say."""

from __future__ import annotations

from fake_program_watch import FakeProgram
from textual.pilot import Pilot

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.bars import StatusLine
from gpuwatch.tui.program_detail import ProgramDetail
from gpuwatch.tui.program_header import ProgramHeader
from gpuwatch.tui.program_list import ProgramList
from gpuwatch.tui.program_screen import ProgramScreen


def app_of(watch: FakeProgram, **given: object) -> GpuwatchApp:
    return GpuwatchApp(watch, first=ProgramScreen, **given)  # type: ignore[arg-type]


def lines(app: GpuwatchApp) -> list[str]:
    """Rows of the list, without its titles and what is blank."""
    pane = app.screen.query_one(ProgramList)
    texts = [pane.render_line(y).text.rstrip() for y in range(2, pane.size.height)]
    return [text for text in texts if text]


def under_cursor(app: GpuwatchApp) -> str:
    return next(line for line in lines(app) if line.startswith("▶"))


def header(app: GpuwatchApp) -> list[str]:
    pane = app.screen.query_one(ProgramHeader)
    return [pane.render_line(y).text.rstrip() for y in range(pane.size.height)]


def detail(app: GpuwatchApp) -> str:
    pane = app.screen.query_one(ProgramDetail)
    return "\n".join(pane.render_line(y).text.rstrip() for y in range(pane.size.height))


def at_rest(app: GpuwatchApp) -> str:
    return app.screen.query_one(StatusLine).render_line(0).text


async def settled(pilot: Pilot[None]) -> None:
    await pilot.pause(0.3)
