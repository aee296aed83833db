"""The list of a running program's kernels: order, cursor, filter, header."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_program_watch import KERNELS, PID, FakeProgram, kernel
from program_app import app_of, at_rest, detail, header, lines, settled, under_cursor
from textual.widgets import Input

from gpuwatch.engine.program_kernels import ProgramProcess
from gpuwatch.tui.bars import Footer
from gpuwatch.tui.program_detail import ProgramDetail
from gpuwatch.tui.program_filter import NameBar
from gpuwatch.tui.program_header import LaunchesPerSecond, end_text
from gpuwatch.tui.program_list import ProgramList
from gpuwatch.tui.program_live_screen import ProgramLiveScreen
from gpuwatch.tui.program_screen import ProgramScreen

SIZES = [(80, 24), (120, 40), (200, 60)]
BY_TOTAL = [
    "sm90_xmma", "flash_fwd", "gemm_tiled", "triton_poi", "triton_per", "elementwise",
    "reduce_kernel", "vectorized_eleme", "vectorized_layer", "CatArray",
]  # fmt: skip


# ---- the list


@pytest.mark.parametrize("size", SIZES)
async def test_kernels_are_listed_by_their_total_time(size: tuple[int, int]) -> None:
    app = app_of(FakeProgram())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        found = lines(app)
        starts = [name[:6] if size[0] < 100 else name for name in BY_TOTAL]
        assert all(line[4:].startswith(name) for line, name in zip(found, starts, strict=True))
        titles = app.screen.query_one(ProgramList).render_line(1).text
        assert {"launches", "total▼", "share", "mean"} <= set(titles.split())
        for title in ("<<<grid, block>>>", "regs", "shared", "theor. occ.", "PTX"):
            assert (title in titles) or size[0] < 200
        assert all(len(line) <= size[0] for line in found)
        assert "12.4%" in found[1] and "455 ms" in found[1]
        if size[0] == 200:
            assert "12288, 128 +3" in found[5]
            assert "in the program" in found[5] and "Triton's cache" in found[3]
            assert "0+208.5 KiB" in found[0] and "✗ machine code only" in found[0]


async def test_it_sorts_by_any_column_both_ways() -> None:
    app = app_of(FakeProgram())
    async with app.run_test(size=(200, 60)) as pilot:
        await settled(pilot)
        rows = app.screen.query_one(ProgramList).rows
        seen = {}
        for _ in range(9):
            await pilot.press("s")
            seen[rows.sort] = [one.key for one in rows.shown]
            await pilot.press("S")
            assert [one.key for one in rows.shown] != seen[rows.sort] or rows.sort == "regs"
            await pilot.press("S")
        assert set(seen) == {
            "kernel", "launches", "total", "mean", "<<<grid, block>>>", "regs", "shared",
            "theor. occ.", "PTX",
        }  # fmt: skip
        assert seen["launches"][:2] == ["gemm", "fill"]
        assert seen["mean"][:2] == ["gemm_tiled", "gemm"]
        assert seen["kernel"][0] == "cat"


async def test_unknown_times_come_last_and_are_told() -> None:
    unknown = kernel("odd", "odd()", 10**6, None)
    app = app_of(FakeProgram((unknown, *KERNELS)))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert lines(app)[-1].split()[:4] == ["odd", "1,000,000", "-", "-"]
        await pilot.press("S")
        assert lines(app)[-1].split()[0] == "odd"


async def test_the_cursor_follows_its_kernel() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("end")
        assert "CatArray" in under_cursor(app)
        watch.grow("cat", 1_000_000)
        await settled(pilot)
        assert lines(app)[0].startswith("▶   CatArray")
        watch.grow("gemm", 1_000_000)
        await settled(pilot)
        assert lines(app)[1].startswith("▶   CatArray")
        assert "CatArrayBatchedCopy<at::native::OpaqueType<4u>" in detail(app)


async def test_the_cursor_stays_on_the_first_that_can_be_probed_until_it_is_moved() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert "flash_fwd" in under_cursor(app)
        watch.grow("cat", 1_000_000)
        await settled(pilot)
        assert "CatArray" in under_cursor(app)
        await pilot.press("down", "down", "escape")
        assert "CatArray" in under_cursor(app)


async def test_hundreds_of_kernels_are_scrolled_with_the_cursor_in_sight() -> None:
    many = tuple(kernel(f"k{n:03}", f"kernel_{n:03}()", 1, 1_000.0 - n) for n in range(500))
    watch = FakeProgram(many)
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        page = app.screen.query_one(ProgramList).size.height - 2
        assert len(lines(app)) == page
        await pilot.press("pagedown")
        assert f"kernel_{page:03}" in under_cursor(app)
        await pilot.press("end")
        assert "kernel_499" in under_cursor(app)
        watch.grow("k499", 3)
        await settled(pilot)
        assert lines(app)[0].startswith("▶   kernel_499")
        await pilot.press("home", "down")
        assert lines(app)[1].startswith("▶   kernel_000")
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert "kernel_000" in under_cursor(app)


async def test_a_click_selects_a_title_sorts_and_a_second_click_attaches() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.click(ProgramList, offset=(10, 4))
        assert "gemm_tiled" in under_cursor(app)
        await pilot.click(ProgramList, offset=(8, 1))
        assert app.screen.query_one(ProgramList).rows.sort == "kernel"
        assert not watch.calls
        row = next(y for y, line in enumerate(lines(app)) if "gemm_tiled" in line)
        await pilot.click(ProgramList, offset=(10, row + 2), times=2)
        await settled(pilot)
        assert watch.calls == ["select gemm_tiled None"]
        assert isinstance(app.screen, ProgramLiveScreen)


async def test_a_filter_shows_kernels_with_its_words() -> None:
    app = app_of(FakeProgram())
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("slash", *"Elementwise")
        assert [line[4:10] for line in lines(app)] == ["elemen", "vector"]
        await pilot.press("space", *"fill", "enter")
        assert len(lines(app)) == 1
        pane = app.screen.query_one(ProgramList)
        assert pane.has_focus and "1 of 10" in pane.render_line(0).text
        await pilot.press("slash", "q")
        assert app.screen.query_one(Input).value == "Elementwise fillq"
        assert lines(app) == ["  no kernel's name has Elementwise fillq"]
        await pilot.press("enter")
        assert isinstance(app.screen, ProgramScreen)
        await pilot.press("slash", "escape")
        assert len(lines(app)) == len(KERNELS)
        assert not app.screen.query_one(NameBar).has_class("open")
        await pilot.press("slash", *"cat", "enter", "escape")
        await pilot.pause(0.2)
        assert len(lines(app)) == len(KERNELS)


async def test_a_kernel_without_ptx_says_why_and_opens_nothing() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert "✗ 1 cannot be probed" in app.screen.query_one(ProgramList).render_line(0).text
        await pilot.press("home")
        assert under_cursor(app).startswith("▶ ✗ sm90_xmma")
        assert "no probe can attach: its module holds machine code only" in detail(app)
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert isinstance(app.screen, ProgramScreen)
        assert not watch.calls
        (notice,) = app._notifications
        assert "machine code only" in notice.message and "sm90_xmma" in notice.title


@pytest.mark.parametrize("size", [(60, 16), *SIZES])
async def test_all_lines_have_their_place_at_any_size(size: tuple[int, int]) -> None:
    app = app_of(FakeProgram())
    async with app.run_test(size=(120, 40)) as pilot:
        for step in ((2, 2), (3, 80), (200, 3), size):
            await pilot.resize_terminal(*step)
            await pilot.pause(0.05)
        await settled(pilot)
        assert not app.screen.has_class("too-small")
        footer = app.screen.query_one(Footer).region
        assert (footer.bottom, footer.height) == (size[1], 1)
        assert app.screen.query_one(ProgramDetail).display == (size[1] >= 20)
        assert "flash_fwd" in under_cursor(app)


async def test_ascii_has_no_other_characters() -> None:
    app = app_of(FakeProgram(), ascii_only=True)
    async with app.run_test(size=(200, 60)) as pilot:
        await settled(pilot)
        text = "\n".join([*lines(app), *header(app), detail(app), at_rest(app)])
        assert text.isascii() and "x machine code only" in text


# ---- the header


async def test_before_the_first_launch_it_waits() -> None:
    watch = FakeProgram(())
    watch.state = replace(watch.state, state="starting")
    app = app_of(watch)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert header(app)[0].endswith(" STARTING")
        watch.state = replace(watch.state, state="running")
        await settled(pilot)
        assert lines(app) == ["  waiting for the program's first kernel"]
        assert header(app)[0].startswith(" gpuwatch   python train.py --model gpt2")
        await pilot.press("enter", "down", "d", "escape", "s", "S")
        assert isinstance(app.screen, ProgramScreen)
        watch.end(0)
        await settled(pilot)
        assert lines(app) == ["  the program has launched no kernel that was seen"]


async def test_launches_are_counted_and_their_rate_is_told() -> None:
    watch = FakeProgram()
    app = app_of(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert "10 kernels   40,891 launches   0 launches/s   on NVIDIA H200" in header(app)[1]
        watch.grow("cat", 1_000)
        await settled(pilot)
        assert "41,891 launches" in header(app)[1]
        assert "   0 launches/s" not in header(app)[1]


def test_the_rate_is_that_of_the_last_two_seconds() -> None:
    rate = LaunchesPerSecond()
    assert rate.value is None
    rate.add(10.0, 500)
    assert rate.value is None
    for tenth in range(1, 41):
        rate.add(10.0 + tenth / 10, 500 + tenth * (10 if tenth > 20 else 0))
    assert rate.value == pytest.approx(200, rel=0.1)


async def test_several_processes_and_what_is_not_seen_of_them() -> None:
    watch = FakeProgram((KERNELS[2], replace(KERNELS[9], process=PID + 1)))
    watch.process_list += [
        ProgramProcess(PID + 1, "python worker.py --rank 1", "1"),
        ProgramProcess(PID + 2, "python worker.py --rank 2", None, "a profiler has subscribed"),
        ProgramProcess(PID + 3, "python worker.py --rank 3", "-9", "a profiler has subscribed"),
    ]
    app = app_of(watch)
    async with app.run_test(size=(240, 60)) as pilot:
        await settled(pilot)
        text = "\n".join(header(app))
        assert "4 processes" in text
        assert "41208 python worker.py --rank 1 ended with status 1" in text
        assert "41210 python worker.py --rank 3 was killed by SIGKILL" in text
        assert " NOT ALL SEEN  pid 41209, 41210: a profiler has subscribed" in text
        assert "pid" in app.screen.query_one(ProgramList).render_line(1).text
        assert "41208" in next(line for line in lines(app) if "gemm_tiled" in line)
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert "and 3 more" in header(app)[3] and "NOT ALL SEEN" in header(app)[4]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0, "ended with status 0"), (3, "ended with status 3"), (-11, "was killed by SIGSEGV"),
        (-77, "was killed by signal 77"), (None, "ended"), ("", "ended"),
        ("-9", "was killed by SIGKILL"),
    ],
)  # fmt: skip
def test_how_a_process_ended(status: int | str | None, text: str) -> None:
    assert end_text(status) == text
