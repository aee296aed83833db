"""The warp table: frozen order, selection, header clicks, records without times, size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fake_watch import FakeWatch, make_frame
from textual.pilot import Pilot

from gpuwatch.analysis.filtering import Filter
from gpuwatch.analysis.maps import MapFigures, all_figures
from gpuwatch.engine.frame import Frame
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.arrangement import Arrangement
from gpuwatch.tui.record_table import table_of
from gpuwatch.tui.warp_pane import WarpPane


def _figures(level: str, slot: list[int], slots: int, **columns: list[int]) -> MapFigures:
    arrays = {name: np.array(values, np.uint64) for name, values in columns.items()}
    return MapFigures(
        name="own",
        level=level,
        kind="array",
        slots=slots,
        records=len(slot),
        empty=0,
        missing=0,
        dropped=0,
        sample=1,
        fields=all_figures(arrays),
        slot=np.array(slot),
        columns=dict(arrays),
    )


def _untimed(*maps: MapFigures) -> Frame:
    return replace(make_frame(probe="gmem_traffic"), maps=maps)


def _rows(pane: WarpPane) -> list[list[str]]:
    lines = (pane.render_line(y).text for y in range(2, pane.size.height))
    return [line.replace("▶", " ").split() for line in lines if line.strip()]


async def _shown(pilot: Pilot[None]) -> WarpPane:
    await pilot.pause(0.2)
    return pilot.app.screen.query_one(WarpPane)


# ---- which table


def test_records_of_warps_without_times_become_a_table() -> None:
    table = table_of(_untimed(_figures("warp", [0, 1, 30], 48, smid=[4, 5, 6], bytes=[9, 8, 7])))
    assert table is not None
    assert list(table.columns) == ["warp", "block", "SM", "bytes"]
    assert table.columns["block"].tolist() == [0, 0, 1]
    assert (table.expected, table.unit, table.measured) == (48, "warp", ("bytes",))


def test_threads_and_blocks_too() -> None:
    threads = table_of(_untimed(_figures("thread", [0, 767, 768], 1536, hits=[1, 2, 3])))
    assert threads is not None and threads.columns["block"].tolist() == [0, 0, 1]
    blocks = table_of(_untimed(_figures("block", [2, 5], 1376, hits=[1, 2])))
    assert blocks is not None and list(blocks.columns) == ["block", "hits"]


def test_several_records_of_a_slot_are_told_apart() -> None:
    table = table_of(_untimed(_figures("warp", [3, 3, 3, 4], 48, x=[1, 2, 3, 4])))
    assert table is not None
    assert table.columns["record"].tolist() == [0, 1, 2, 0]
    assert len(set(table.ids.tolist())) == 4
    assert [table.row_of(one) for one in table.ids.tolist()] == [0, 1, 2, 3]


def test_maps_of_sites_and_the_kernel_make_no_table() -> None:
    assert table_of(_untimed(_figures("site", [0, 1], 2, bytes=[1, 2]))) is None
    assert table_of(None) is None


def test_fields_called_like_other_columns_keep_apart() -> None:
    frame = make_frame()
    assert frame.warps_table is not None
    frame.warps_table.fields.update(n=np.zeros(33_024), SM=np.ones(33_024))
    table = table_of(frame)
    assert table is not None
    assert list(table.columns)[-2:] == ["n_", "SM_"]
    assert len(table.by_lower_name()) == len(table.columns)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_own_records_sort_and_filter_on_the_screen(size: tuple[int, int]) -> None:
    watch = FakeWatch()
    watch.frame = _untimed(
        _figures("warp", [0, 1, 2, 3], 4, smid=[7, 7, 8, 8], bytes=[10, 40, 20, 30])
    )
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=size) as pilot:
        pane = await _shown(pilot)
        assert [row[0] for row in _rows(pane)] == ["1", "3", "2", "0"]
        assert pane.render_line(0).text.split()[1] == "Warps"
        pane.filter_by(Filter.of("sm == 8", ("warp", "sm", "bytes")))
        assert [row[0] for row in _rows(pane)] == ["3", "2"]


# ---- frozen order


def test_a_frozen_order_keeps_rows_while_values_change() -> None:
    rows = Arrangement()
    rows.take(table_of(make_frame(serial=1)))
    rows.set_filter(Filter.of("elapsed > p90", ("elapsed",)))
    rows.freeze(True)
    assert rows.order is not None and rows.table is not None
    kept = rows.table.ids[rows.order.rows(0, 5_000)].tolist()
    rows.take(table_of(make_frame(serial=2)))
    assert rows.table.ids[rows.order.rows(0, 5_000)].tolist() == kept
    rows.freeze(False)
    assert rows.order is not None
    assert rows.table.ids[rows.order.rows(0, 5_000)].tolist() != kept


def test_a_frozen_order_leaves_out_warps_that_are_gone() -> None:
    rows = Arrangement()
    frame = make_frame()
    rows.take(table_of(frame))
    rows.freeze(True)
    assert rows.order is not None and rows.table is not None
    first = rows.table.ids[rows.order.rows(0, 3)].tolist()
    table = table_of(make_frame(serial=2))
    assert table is not None
    left = table.ids != first[0]
    table.ids = table.ids[left]
    table.columns = {name: values[left] for name, values in table.columns.items()}
    rows.take(table)
    assert table.ids[rows.order.rows(0, 2)].tolist() == first[1:]


def test_another_kind_of_table_thaws() -> None:
    rows = Arrangement()
    rows.take(table_of(make_frame()))
    rows.freeze(True)
    rows.take(table_of(_untimed(_figures("warp", [0, 1], 4, bytes=[1, 2]))))
    assert not rows.frozen and rows.sort == "bytes"


async def test_f_freezes_and_the_title_says_so() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _shown(pilot)
        await pilot.press("f")
        before = [row[0] for row in _rows(pane)]
        watch.advance()
        await pilot.pause(0.2)
        assert [row[0] for row in _rows(pane)] == before
        assert " FROZEN " in pane.render_line(0).text
        await pilot.press("f")
        assert [row[0] for row in _rows(pane)] != before


# ---- selection, clicks


async def test_selection_follows_the_warp_through_sorting_and_launches() -> None:
    watch = FakeWatch()
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _shown(pilot)
        await pilot.press("end", "up", "up")
        warp = pane.warp
        for key in ("s", "S", "s"):
            watch.advance()
            await pilot.press(key)
            await pilot.pause(0.1)
            marked = [pane.render_line(y).text for y in range(2, pane.size.height)]
            line = next(text for text in marked if text.startswith("▶"))
            assert line.split()[1] == str(warp) == str(pane.warp)


async def test_header_clicks_sort_and_reverse() -> None:
    app = GpuwatchApp(FakeWatch(), picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _shown(pilot)
        x = pane.render_line(1).text.index("SM")
        await pilot.click(WarpPane, offset=(x, 1))
        assert (pane.sort, pane.descending) == ("SM", False)
        assert {row[2] for row in _rows(pane)} == {"0"}
        await pilot.click(WarpPane, offset=(x, 1))
        assert (pane.sort, pane.descending) == ("SM", True)
        assert {row[2] for row in _rows(pane)} == {"71"}


async def test_a_million_rows_scroll_to_both_ends() -> None:
    watch = FakeWatch()
    assert watch.frame is not None
    count = 1_000_000
    values = np.random.default_rng(5).integers(0, 10**6, count).astype(np.uint64)
    figures = _figures("thread", [0], count, cycles=[0])
    figures.slot, figures.columns = np.arange(count), {"cycles": values}
    watch.frame = replace(_untimed(figures), block=(1024, 1, 1), grid=(977, 1, 1))
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _shown(pilot)
        ordered = np.sort(values)
        assert _rows(pane)[0][2] == f"{ordered[-1]:,}"
        await pilot.press("end")
        assert _rows(pane)[-1][2] == f"{ordered[0]:,}"
        await pilot.press("pageup", "pageup")
        page = [int(row[2].replace(",", "")) for row in _rows(pane)]
        assert page == sorted(page, reverse=True)


async def test_values_that_are_no_numbers_do_not_break_the_table() -> None:
    frame = make_frame()
    odd = np.tile([np.nan, np.inf, -np.inf, 1.0], 33_024 // 4)
    figures = _figures("warp", [0], 33_024, x=[0])
    figures.slot, figures.columns = np.arange(33_024), {"x": odd}
    watch = FakeWatch()
    watch.frame = replace(frame, warps_table=None, sms=None, elapsed=None, maps=(figures,))
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await _shown(pilot)
        assert {row[-1] for row in _rows(pane)} == {"inf"}
