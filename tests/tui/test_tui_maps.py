"""The maps of a probe on the live screen."""

from __future__ import annotations

from dataclasses import replace
from typing import cast
from unittest.mock import Mock

import numpy as np
import pytest
from fake_watch import FakeWatch, make_frame
from textual.app import App

from gpuwatch.analysis.maps import MapFigures, SiteRow, all_figures, hist_buckets
from gpuwatch.engine.frame import Frame
from gpuwatch.tui import maps_pane
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.glyphs import UNICODE
from gpuwatch.tui.maps_pane import MapsPane, Widths, map_lines


def _figures(kind: str = "reduce", level: str = "kernel", **columns: list[int]) -> MapFigures:
    arrays = {name: np.array(values, np.uint64) for name, values in columns.items()}
    count = len(next(iter(arrays.values())))
    return MapFigures(
        name="loads",
        level=level,
        kind=kind,
        slots=count,
        records=count,
        empty=0,
        missing=0,
        dropped=0,
        sample=1,
        fields=all_figures(arrays),
        slot=np.arange(count),
        columns=dict(arrays),
    )


def _app(frame: Frame) -> App[None]:
    watch = FakeWatch()
    watch.frame = frame
    return GpuwatchApp(watch, picker=False)


def _text(figures: MapFigures, columns: int = 100) -> list[str]:
    lines = map_lines([figures], UNICODE, Widths.of(columns))
    return ["".join(text for text, _ in line) for line in lines]


def test_totals_are_exact_beyond_64_bits() -> None:
    text = "\n".join(_text(_figures(bytes=[2**63, 2**63, 5])))
    assert f"{2**64 + 5:,}" in text


def test_sampled_totals_are_scaled_and_marked() -> None:
    figures = _figures(bytes=[10, 20])
    figures.sample = 64
    figures.fields = all_figures(figures.columns, 64)
    lines = _text(figures)
    assert "1 in 64 sampled" in lines[0]
    assert "~1,920" in lines[2]


def test_sites_show_line_figures_and_instruction() -> None:
    figures = _figures("reduce", "site", bytes=[10, 40])
    figures.sites = (
        SiteRow(12, "ld.global.f32", "", {"bytes": 10}),
        SiteRow(13, "st.global.f32", "helper", {"bytes": 40}),
    )
    lines = _text(figures)
    assert any(line.split()[:2] == ["12", "10"] and "ld.global.f32" in line for line in lines)
    assert any("st.global.f32 in helper" in line and "█" * 10 in line for line in lines)


def test_buckets_between_the_first_and_last_used_one_show() -> None:
    figures = _figures("hist", "kernel", count=[0, 3, 0, 9, 0])
    figures.buckets = hist_buckets(
        np.array([[0, 3, 0, 9, 0]], np.uint64), np.array([0, 1, 2, 4, 8, 16.0])
    )
    lines = _text(figures)
    assert [line.split()[0] for line in lines[1:]] == ["1", "2", "4"]
    assert lines[3].split()[3] == "9"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_a_probe_without_times_shows_its_maps_alone(size: tuple[int, int]) -> None:
    frame = replace(
        make_frame(), warps_table=None, sms=None, elapsed=None, maps=(_figures(bytes=[7]),)
    )
    app = _app(frame)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        pane = app.screen.query_one(MapsPane)
        assert pane.display and pane.size.width == size[0]
        assert not app.screen.query_one("#warps").display
        assert any("loads" in pane.render_line(row).text for row in range(3))


async def test_maps_beside_the_warps_only_where_there_is_room() -> None:
    frame = replace(make_frame(), maps=(_figures(bytes=[7]),))
    app = _app(frame)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert app.screen.query_one(MapsPane).display
        assert app.screen.query_one("#warps").display
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert not app.screen.query_one(MapsPane).display


async def test_maps_are_written_out_when_they_are_in_view(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Mock(side_effect=map_lines)
    monkeypatch.setattr(maps_pane, "map_lines", written)
    app = _app(replace(make_frame(), maps=(_figures(bytes=[7]),)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        pane = app.screen.query_one(MapsPane)
        assert not pane.display
        written.reset_mock()
        cast(FakeWatch, cast(GpuwatchApp, app).feed).advance()
        await pilot.pause(0.2)
        written.assert_not_called()


async def test_a_pane_that_comes_into_view_while_paused_has_the_new_width() -> None:
    frame = replace(make_frame(), maps=(_figures(bytes=[7]),))
    app = _app(frame)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("space")
        pane = app.screen.query_one(MapsPane)
        for width in (120, 250, 120):
            await pilot.resize_terminal(width, 40)
            await pilot.pause(0.1)
            lines = [pane.render_line(row).text.rstrip() for row in range(pane.size.height)]
            wanted = map_lines(frame.maps, UNICODE, Widths.of(pane.size.width))
            texts = ["".join(text for text, _ in line) for line in wanted]
            assert lines[1 : len(texts) + 1] == [text[: pane.size.width].rstrip() for text in texts]


def test_means_are_written_as_in_a_report() -> None:
    assert "1,234,568" in "\n".join(_text(_figures(bytes=[1_234_567, 1_234_569, 1_234_569])))
