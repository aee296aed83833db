"""What each pane says at three sizes, in Unicode and in ASCII, over the fake watch's fixed data."""

from __future__ import annotations

import re

import numpy as np
import pytest
from fake_watch import A10, H200, FakeWatch
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from gpuwatch.analysis.maps import MapFigures, all_figures
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.bars import Header
from gpuwatch.tui.pane import Drawing

SIZES = [(80, 24), (120, 40), (200, 60)]
SCENES: dict[str, tuple[str, ...]] = {
    "all": (),
    "timeline": ("t",),
    "log": ("x", "x", "a"),
    "filter": ("slash", *"sm==3", "enter"),
    "selected": ("down", "f"),
}


def _pane_texts(app: GpuwatchApp) -> str:
    """The lines of every visible pane, without blanks at their ends."""
    parts = []
    for name in ("occupancy", "timeline", "histogram", "warps", "maps"):
        pane = app.screen.query_one(f"#{name}")
        if isinstance(pane, Drawing) and pane.display and pane.region.area:
            lines = (pane.render_line(y).text.rstrip() for y in range(pane.size.height))
            parts.append("\n".join([f"[{name} {pane.size.width}x{pane.size.height}]", *lines]))
    return "\n".join(parts)


async def _at_rest(pilot: Pilot[None]) -> str:
    """The texts once a frame is shown and two looks see the same."""
    app = pilot.app
    assert isinstance(app, GpuwatchApp)
    before = ""
    for _ in range(100):
        await pilot.pause(0.2)
        shown = app.screen.query_one(Header).render_line(2).text.strip()
        text = _pane_texts(app)
        if shown and text == before:
            return text
        before = text
    raise AssertionError("the panes do not come to rest")


def _watch(device: object, *, untimed: bool) -> FakeWatch:
    watch = FakeWatch(device)  # type: ignore[arg-type]
    frame = watch.frame
    assert frame is not None and frame.warps_table is not None
    if untimed:
        columns = {
            "smid": frame.warps_table.sm.astype(np.uint32),
            "bytes": (frame.warps_table.elapsed % 4_096).astype(np.uint32),
        }
        frame.maps = (
            MapFigures(
                "loads", "warp", "array", 33_024, 33_024, 0, 0, 0, 1,
                all_figures(columns), frame.warps_table.warp, dict(columns),
            ),
        )  # fmt: skip
        frame.warps_table = frame.sms = frame.elapsed = None
    return watch


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", SCENES)
async def test_panes(snapshot: SnapshotAssertion, scene: str, size: tuple[int, int]) -> None:
    app = GpuwatchApp(_watch(A10, untimed=False), picker=False)
    async with app.run_test(size=size) as pilot:
        await _at_rest(pilot)
        for key in SCENES[scene]:
            await pilot.press(key)
        text = await _at_rest(pilot)
    assert text == snapshot


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("kind", ["h200_ascii", "untimed"])
async def test_other_devices_and_probes(
    snapshot: SnapshotAssertion, kind: str, size: tuple[int, int]
) -> None:
    watch = _watch(H200, untimed=kind == "untimed")
    app = GpuwatchApp(watch, picker=False, ascii_only=kind == "h200_ascii")
    async with app.run_test(size=size) as pilot:
        text = await _at_rest(pilot)
    if kind == "h200_ascii":
        assert not re.search(r"[^\x00-\x7f]", text)
    assert text == snapshot
