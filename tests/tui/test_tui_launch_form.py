"""The form that asks how a kernel is launched, and the list of a program's launches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_watch import GEMM, KERNELS, FakeWatch
from textual.app import App
from textual.widgets import Input

from gpuwatch.engine.frame import LaunchChoice
from gpuwatch.launch import LaunchForm
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.launch_form import LaunchFormScreen
from gpuwatch.tui.lists import kernel_options, split_choice
from gpuwatch.tui.live_screen import LiveScreen

FORM = LaunchForm("cdiv(n, 256)", "256", "0", (("x", "f32[n]:uniform"), ("n", "1024")))
ASKED = replace(KERNELS[0], grid=None, block=None, form=FORM, ready=False)


def _watch() -> FakeWatch:
    watch = FakeWatch()
    watch.kernel_list = [ASKED]
    return watch


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 16)])
async def test_a_kernel_without_a_launch_is_asked_for_before_it_starts(
    size: tuple[int, int],
) -> None:
    watch = _watch()
    app: App[None] = GpuwatchApp(watch)
    async with app.run_test(size=size) as pilot:
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, LaunchFormScreen)
        fields = list(app.screen.query(Input))
        assert [field.value for field in fields] == [
            "cdiv(n, 256)", "256", "0", "f32[n]:uniform", "1024",
        ]  # fmt: skip
        fields[4].value = "512"
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, LiveScreen)
    given = [call for call in watch.calls if call.startswith("give")]
    assert given == [
        f"give {GEMM} cdiv(n, 256) 256 {{'x': 'f32[n]:uniform', 'n': '512'}}",
    ]


async def test_escape_leaves_the_form_without_a_launch() -> None:
    watch = _watch()
    app: App[None] = GpuwatchApp(watch)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("enter")
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, LaunchFormScreen | LiveScreen)
    assert not [call for call in watch.calls if call.startswith("give")]


async def test_l_edits_the_launch_of_a_running_kernel() -> None:
    watch = _watch()
    watch.kernel_list = [replace(ASKED, ready=True)]
    app: App[None] = GpuwatchApp(watch, picker=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("l")
        await pilot.pause()
        assert isinstance(app.screen, LaunchFormScreen)


def test_every_shape_of_a_kernel_is_a_choice_of_its_own() -> None:
    shapes = (
        LaunchChoice(0, (4, 1, 1), (64, 1, 1), 0, 3),
        LaunchChoice(5, (8, 1, 1), (64, 1, 1), 0, 1),
    )
    ids = [option.id for option in kernel_options([replace(KERNELS[0], shapes=shapes)])]
    assert [split_choice(one) for one in ids] == [(GEMM, None), (GEMM, 0), (GEMM, 5)]
