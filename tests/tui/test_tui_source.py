"""The source pane: lines, figures, the PTX beside them and what was woven in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_watch import GEMM, FakeWatch

from gpuwatch.analysis.lines import line_figures
from gpuwatch.analysis.maps import MapFigures, SiteRow, all_figures
from gpuwatch.engine.frame import Listing, MarkedLine
from gpuwatch.engine.listing import source_lines
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.source_pane import SourcePane

SOURCE = "\n".join(["// first", "__global__ void gemm_gpu() {", "  a += b[i];", "  c[i] = a;", "}"])
PTX = "\n".join(
    [
        '.file 1 "gemm.cu"',
        ".entry gemm_gpu() {",
        ".loc 1 3 5",
        "ld.global.f32 %f1, [%rd1];",
        "mov.u64 %woven1, 1;",
        ".loc 1 4 5",
        "st.global.f32 [%rd2], %f1;",
        "}",
    ]
)
LISTING = Listing(
    build=1,
    kernel=GEMM,
    probe="gmem_traffic",
    source=SOURCE,
    ptx=PTX,
    inserted=(5,),
    lines=(0, 0, 3, 3, 3, 4, 4, 0),
    sites=((3, "ld.global.f32"), (4, "st.global.f32")),
)


def _map(*rows: SiteRow) -> MapFigures:
    fields = rows[0].values if rows else {}
    columns = {name: np.array([row.values[name] for row in rows]) for name in fields}
    return MapFigures(
        name="traffic", level="site", kind="array", slots=2, records=2, empty=0, missing=0,
        dropped=0, sample=1, fields=all_figures(columns), slot=np.arange(2), columns=columns,
        sites=rows,
    )  # fmt: skip


def _watch() -> FakeWatch:
    watch = FakeWatch()
    watch.texts = LISTING
    rows = (
        SiteRow(3, "ld.global.f32", "", {"sectors": 750, "bytes": 24_000}),
        SiteRow(4, "st.global.f32", "", {"sectors": 250, "bytes": 8_000}),
    )
    assert watch.frame is not None
    watch.frame = replace(watch.frame, maps=(_map(*rows),))
    return watch


def test_ptx_lines_know_their_source_line() -> None:
    assert source_lines(PTX, Path("kernels/gemm.cu")) == LISTING.lines
    assert set(source_lines(PTX, Path("other.cu"))) == {0}


def test_figures_of_one_line_add_up() -> None:
    rows = [SiteRow(line, "ld", "", {"n": n}) for line, n in ((3, 5), (3, 10), (4, 45))]
    figures = line_figures([_map(*rows)])
    assert figures is not None
    assert figures.values == {3: (15,), 4: (45,)}
    assert figures.totals == (60,)
    assert (figures.share(3), figures.share(4), figures.share(5)) == (0.25, 0.75, 0.0)
    assert line_figures([_map()]) is None


def test_maps_of_the_same_fields_are_one_figure() -> None:
    loads = _map(SiteRow(3, "ld", "", {"n": 5}))
    stores = replace(_map(SiteRow(4, "st", "", {"n": 7})), name="stores")
    other = replace(_map(SiteRow(4, "st", "", {"cycles": 9})), name="other")
    figures = line_figures([loads, stores, other])
    assert figures is not None
    assert (figures.maps, figures.values) == (("traffic", "stores"), {3: (5,), 4: (7,)})


@pytest.mark.parametrize("width", [80, 160])
async def test_lines_show_figures_marks_and_what_they_became(width: int) -> None:
    app = GpuwatchApp(_watch(), picker=False)
    async with app.run_test(size=(width, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("p")
        await pilot.pause(0.2)
        pane = app.screen.query_one(SourcePane)
        assert pane.display and pane.has_focus
        assert pane.line == 3
        lines = [pane.render_line(y).text for y in range(pane.size.height)]
        assert "sectors" in lines[0]
        assert "750" in lines[3] and "a += b[i];" in lines[3]
        assert "250" in lines[4] and "c[i] = a;" in lines[4]
        assert any("+ mov.u64 %woven1, 1;" in line for line in lines) == (width == 160)


@pytest.mark.parametrize(("width", "figures"), [(80, 2), (100, 1), (120, 2), (160, 2), (200, 2)])
async def test_enough_of_the_source_shows_beside_figures_and_ptx(width: int, figures: int) -> None:
    watch = _watch()
    text = "  a += b[" + "i" * 90
    watch.texts = replace(LISTING, source=SOURCE.replace("  a += b[i];", text))
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(width, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("p")
        await pilot.pause(0.2)
        pane = app.screen.query_one(SourcePane)
        line = pane.render_line(3).text
        source = line[: width * 5 // 8 - 1] if width >= 100 else line
        shown = source[source.index("  a += b[") :]
        assert len(shown) >= 36
        assert ("750" in source, "24.0k" in source) == (True, figures > 1)
        assert ("bytes" in pane.render_line(0).text) == (figures > 1)
        assert (".entry" in pane.render_line(2).text) == (width >= 100)


async def test_the_cursor_goes_from_probe_to_probe_and_stays_in_the_text() -> None:
    app = GpuwatchApp(_watch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("p")
        pane = app.screen.query_one(SourcePane)
        await pilot.press("home")
        assert pane.line == 1
        await pilot.press("n")
        assert pane.line == 3
        await pilot.press("n")
        assert pane.line == 4
        await pilot.press("n")
        assert pane.line == 3
        await pilot.press("N")
        assert pane.line == 4
        await pilot.press("end", "down", "pagedown")
        assert pane.line == 5
        await pilot.press("p")
        assert not pane.display


async def test_a_ptx_file_is_its_own_source() -> None:
    watch = _watch()
    watch.texts = replace(LISTING, source="")
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("p")
        await pilot.pause(0.2)
        pane = app.screen.query_one(SourcePane)
        lines = [pane.render_line(y).text for y in range(pane.size.height)]
        assert sum("ld.global.f32" in line for line in lines) == 1
        assert any(line.startswith("+ mov.u64") for line in lines)


async def test_without_texts_it_says_so() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("p")
        await pilot.pause(0.2)
        pane = app.screen.query_one(SourcePane)
        assert "not known yet" in pane.render_line(2).text
        await pilot.press("down", "n", "pageup", "end")
        assert pane.line == 1


REASON = "split: 1 global load of 16 bytes in PTX, 2 of 4 in machine code"


@pytest.mark.parametrize(("ascii_only", "differs"), [(False, "\N{NOT EQUAL TO}"), (True, "!")])
async def test_lines_that_ptxas_changed_are_marked(ascii_only: bool, differs: str) -> None:
    watch = _watch()
    watch.texts = replace(LISTING, marked=(MarkedLine("traffic", "", 3, REASON),))
    app = GpuwatchApp(watch, picker=False, ascii_only=ascii_only)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("p")
        await pilot.pause(0.2)
        pane = app.screen.query_one(SourcePane)
        lines = [pane.render_line(y).text for y in range(pane.size.height)]
        assert [number for number, line in enumerate(lines) if differs in line[:9]][:1] == [3]
        assert f"{differs} {REASON}" in lines[-1]
        await pilot.press("down")
        assert (
            f"{differs} machine code differs from PTX at line 3"
            in pane.render_line(pane.size.height - 1).text
        )


async def test_why_no_line_is_marked_is_said() -> None:
    watch = _watch()
    watch.texts = replace(LISTING, unmarked="lines are not marked: there is no nvdisasm")
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("p")
        await pilot.pause(0.2)
        pane = app.screen.query_one(SourcePane)
        assert "there is no nvdisasm" in pane.render_line(pane.size.height - 1).text


async def test_the_cursor_stays_above_the_remark() -> None:
    watch = _watch()
    source = "\n".join([SOURCE, *("// more" for _ in range(200))])
    watch.texts = replace(LISTING, source=source, marked=(MarkedLine("traffic", "", 3, REASON),))
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("p", "end")
        await pilot.pause(0.2)
        pane = app.screen.query_one(SourcePane)
        rows = [pane.render_line(y).text for y in range(1, pane.size.height - 1)]
        assert any(f" {pane.line} " in row[:7] for row in rows)
