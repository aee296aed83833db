"""The log pane."""

from __future__ import annotations

from dataclasses import replace

from fake_watch import FakeWatch

from gpuwatch.engine.frame import LogEntry
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.log_pane import LogPane


def _texts(pane: LogPane) -> list[str]:
    return [pane.render_line(y).text.rstrip() for y in range(pane.size.height)]


async def test_everybody_who_said_something_is_named() -> None:
    watch = FakeWatch()
    watch.entries = [
        LogEntry(0.0, "worker", "compiling gemm.cu"),
        LogEntry(1.0, "toolchain", "ptxas info: Used 32 registers\nptxas info: 0 bytes spill"),
    ]
    assert watch.frame is not None
    watch.frame = replace(watch.frame, printed="hello from lane 0\n")
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("g")
        await pilot.pause(0.2)
        pane = app.screen.query_one(LogPane)
        lines = _texts(pane)
        assert "4 lines" in lines[0]
        assert lines[1].endswith("worker    compiling gemm.cu")
        assert lines[2].endswith("toolchain ptxas info: Used 32 registers")
        assert lines[3].strip() == "ptxas info: 0 bytes spill"
        assert lines[4].endswith("kernel    hello from lane 0")


async def test_the_newest_line_is_in_view_until_one_scrolls_away() -> None:
    watch = FakeWatch()
    watch.entries = [LogEntry(float(n), "worker", f"entry {n}") for n in range(100)]
    app = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("g")
        await pilot.pause(0.2)
        pane = app.screen.query_one(LogPane)
        assert any("entry 99" in line for line in _texts(pane))
        watch.entries.append(LogEntry(100.0, "worker", "entry 100"))
        await pilot.pause(0.2)
        assert any("entry 100" in line for line in _texts(pane))
        await pilot.press("home")
        await pilot.pause(0.4)
        watch.entries.append(LogEntry(101.0, "worker", "entry 101"))
        await pilot.pause(0.2)
        lines = _texts(pane)
        assert lines[1].endswith("entry 0")
        assert not any("entry 101" in line for line in lines)
