"""Each preset's own view in the Maps pane: at three sizes, in colours and without."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from fake_watch import FakeWatch
from map_figures import cells_map, line_map
from preset_maps import PRESETS, access_counts, accesses, frame_of, traffic
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from gpuwatch.analysis.access_map import access_map
from gpuwatch.analysis.maps import MapFigures
from gpuwatch.analysis.summary import Column, Section, sections_of
from gpuwatch.tui import maps_pane
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.glyphs import ASCII, UNICODE, Glyphs
from gpuwatch.tui.heat_map import GUTTER, heat_lines
from gpuwatch.tui.maps_pane import MapsPane
from gpuwatch.tui.paint import Span
from gpuwatch.tui.summary_lines import change_text, summary_lines

SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")


def _app(probe: str, *, ascii_only: bool = False) -> GpuwatchApp:
    watch = FakeWatch()
    watch.frame = frame_of(probe)
    return GpuwatchApp(watch, picker=False, ascii_only=ascii_only)


def _shown(app: GpuwatchApp) -> list[str]:
    pane = app.screen.query_one(MapsPane)
    return [pane.render_line(row).text.rstrip() for row in range(pane.size.height)]


def _texts(lines: list[list[Span]]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("probe", PRESETS)
async def test_views(snapshot: SnapshotAssertion, probe: str, size: tuple[int, int]) -> None:
    app = _app(probe)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.2)
        assert "\n".join(_shown(app)) == snapshot


@pytest.mark.parametrize("probe", PRESETS)
async def test_views_in_ascii(snapshot: SnapshotAssertion, probe: str) -> None:
    app = _app(probe, ascii_only=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        text = "\n".join(_shown(app))
    assert not re.search(r"[^\x00-\x7f]", text)
    assert text == snapshot


async def test_a_probe_of_other_maps_keeps_its_lists() -> None:
    watch = FakeWatch()
    mine = line_map("mine", {7: {"requests": 10, "bytes": 320, "sectors": 10}})
    watch.frame = frame_of("mine.py", (mine,))
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        assert _shown(app)[1].startswith(" mine  reduce per line")


# ---- figures


@pytest.mark.parametrize("width", [44, 60, 78, 118, 198])
@pytest.mark.parametrize("probe", PRESETS)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_rows_fit_and_keep_their_share(probe: str, width: int, glyphs: Glyphs) -> None:
    sections = sections_of(PRESETS[probe])
    lines = list(summary_lines(sections, sections, glyphs, width, modelled=True))
    assert all(cell_len(text) <= width for text in _texts(lines))
    shares = sum(len(section.parts) for section in sections if section.barred)
    assert sum(text.count("%") for text in _texts(lines)) >= shares


def test_an_efficiency_above_all_is_explained_where_there_is_room() -> None:
    lines = {7: {"requests": 10, "bytes": 2_048, "sectors": 40}}
    sections = sections_of([line_map("global_loads", lines)])
    for width, shown in ((80, True), (44, False)):
        head = _texts(list(summary_lines(sections, (), UNICODE, width, modelled=False)))[0]
        assert ("over 100 %: lanes share words" in head) is shown


def test_short_numbers_before_fewer_columns() -> None:
    def heads(width: int) -> tuple[str, str]:
        lines = _texts(list(summary_lines(sections, (), UNICODE, width, modelled=False)))
        return lines[1], lines[2]

    sections = sections_of(traffic())
    assert "2,097,152" in heads(118)[1]
    assert "sectors" in heads(78)[0] and "2.10M" in heads(78)[1]
    assert "sectors" not in heads(60)[0] and "bytes moved" in heads(60)[0]
    assert "requests" in heads(44)[0] and "coalescing" in heads(44)[0]


def test_the_baseline_stands_below_with_the_difference() -> None:
    lines = _texts(
        list(
            summary_lines(
                sections_of(traffic()), sections_of(traffic(share=3)), UNICODE, 118, modelled=False
            )
        )
    )
    loads, before, change = lines[2:5]
    assert loads.split()[:5] == ["loads", "2,097,152", "268,435,456", "8,388,608", "268,435,456"]
    assert before.split()[:4] == ["before", "2,097,152", "268,435,456", "16,777,216"]
    assert change.split() == ["change", "=", "=", "-50.0%", "-50.0%", "+50.0", "pt"]


@pytest.mark.parametrize(("now", "before"), [(1, 32), (32, 1)])
def test_estimates_are_marked_in_the_rows_of_the_sampled_launch(now: int, before: int) -> None:
    def sections(sample: int) -> tuple[Section, ...]:
        lines = {7: {"requests": 10, "bytes": 320, "sectors": 10}}
        return sections_of([line_map("global_loads", lines, sample)])

    made = summary_lines(sections(now), sections(before), UNICODE, 118, modelled=False)
    head, _, loads, former, *_ = _texts(list(made))
    assert ("~" in head) == ("~" in loads) == (now > 1)
    assert ("~" in former) == (before > 1)


async def test_b_puts_the_former_values_beside_the_new_ones() -> None:
    app = _app("gmem_traffic")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        assert not any("before" in line for line in _shown(app))
        await pilot.press("b")
        assert isinstance(app.feed, FakeWatch) and app.feed.frame is not None
        app.feed.frame = replace(app.feed.frame, serial=9, maps=traffic(share=2))
        await pilot.pause(0.2)
        change = next(line for line in _shown(app) if "change" in line)
        assert change.split() == ["change", "=", "=", "+50.0%", "+50.0%", "-33.3", "pt"]
        await pilot.press("b")
        await pilot.pause(0.2)
        assert not any("before" in line for line in _shown(app))


async def test_the_figures_of_the_baseline_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def counted(maps: Sequence[MapFigures]) -> tuple[Section, ...]:
        seen.append(maps)
        return sections_of(maps)

    monkeypatch.setattr(maps_pane, "sections_of", counted)
    app = _app("gmem_traffic")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("b")
        await pilot.pause(0.2)
        assert isinstance(app.feed, FakeWatch) and app.feed.frame is not None
        for share in (2, 3, 4):
            frame = app.feed.frame
            app.feed.frame = replace(frame, serial=frame.serial + 1, maps=traffic(share))
            seen.clear()
            await pilot.pause(0.2)
            assert seen == [app.feed.frame.maps]


@pytest.mark.parametrize(
    ("form", "then", "now", "text"),
    [
        ("count", 100, 100, "="), ("count", 100, 112, "+12.0%"), ("count", 100, 50, "-50.0%"),
        ("count", 100, 250, "x2.5"), ("count", 0, 5, ""), ("count", None, 5, ""),
        ("share", 0.5, 0.625, "+12.5 pt"), ("mean", 4.0, 3.0, "-25.0%"),
    ],
)  # fmt: skip
def test_changes(form: str, then: float | None, now: float, text: str) -> None:
    column = Column("", "", form=form)  # type: ignore[arg-type]
    assert change_text(column, then, now, "x") == text


async def test_modelled_and_sampled_are_said() -> None:
    app = _app("mem_latency")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        lines = _shown(app)
    assert "modelled" in lines[1] and "~ estimated from 1 in 32" in lines[1]
    assert "~" in lines[3]


async def test_lines_are_made_once_for_a_frame_and_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(*arguments: object, **options: object) -> object:
        made.append(1)
        return heat_lines(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(maps_pane, "heat_lines", counted)
    app = _app("dmat")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        before = len(made)
        app.screen.query_one(MapsPane).refresh()
        await pilot.press("space")
        await pilot.pause(0.2)
        assert len(made) == before
        await pilot.resize_terminal(100, 30)
        await pilot.pause(0.2)
        assert len(made) > before


# ---- heat map


def _heat(width: int, height: int, *, colours: bool, glyphs: Glyphs = UNICODE) -> list[list[Span]]:
    found = access_map(accesses()[0])
    assert found is not None
    return list(heat_lines(found, glyphs, width, height, modelled=True, colours=colours))


@pytest.mark.parametrize(("width", "height"), [(78, 17), (118, 33), (198, 53), (60, 9)])
@pytest.mark.parametrize("colours", [True, False])
def test_the_heat_map_fills_the_pane(width: int, height: int, colours: bool) -> None:
    lines = _heat(width, height, colours=colours)
    assert len(lines) == height
    cells = [sum(cell_len(text) for text, _ in line) for line in lines[1:-3]]
    assert set(cells) == {width - 1}
    assert all(cell_len(text) <= width for text in _texts(lines))


def test_each_cell_of_the_heat_map_is_that_of_the_counts() -> None:
    counts = access_counts()[3:43, :42]
    lines = _texts(_heat(GUTTER + 1 + 42, 44, colours=False, glyphs=ASCII))[1:-3]
    shades = np.array([list(line[GUTTER:]) for line in lines])
    assert shades.shape == counts.shape
    assert ((shades == " ") == (counts == 0)).all()
    assert set(shades[17]) == {"@"}
    assert shades[0][0] == "." and shades[39][39] == "="


def test_times_between_whole_microseconds_are_not_rounded() -> None:
    found = access_map(cells_map({(18, 0): 1, (19, 1): 1}))
    assert found is not None
    lines = list(heat_lines(found, ASCII, 80, 9, modelled=True, colours=False))
    assert _texts(lines)[-2].split() == ["0", "2.5", "5", "7.5", "us"]


def test_half_blocks_show_two_rows_of_pages() -> None:
    """Pages 17 and below: one full row in the upper half of a line, the diagonal in both."""
    lines = _heat(GUTTER + 1 + 42, 24, colours=True)[1:-3]
    assert len(lines) == 20
    assert "▄" in "".join(text for text, _ in lines[8])
    styles = {style for line in lines for text, style in line if "█" in text or "▀" in text}
    assert len(styles) > 5


@pytest.mark.parametrize("colour", [True, False])
async def test_shades_where_there_are_no_colours(
    monkeypatch: pytest.MonkeyPatch, colour: bool
) -> None:
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    app = _app("dmat")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        text = "\n".join(_shown(app))
    assert ("▀" in text) == colour
    assert ("░" in text and "▓" in text) == (not colour)
    assert "page_by_time" not in text and "..030000" in text and "accesses in a cell  1 " in text


async def test_old_cells_are_told_by_shades_when_all_is_grey() -> None:
    app = _app("dmat")
    assert isinstance(app.feed, FakeWatch)
    app.feed.hold = True
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("3")
        await pilot.pause(0.2)
        assert "▓" in "\n".join(_shown(app))
