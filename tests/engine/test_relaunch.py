"""Another launch of a kernel: given in a form, or another one of the program's own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from worker_support import PATIENCE_SECONDS, until

from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.options import Options
from gpuwatch.engine.readings import MapReader
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.launch import LaunchForm
from gpuwatch.probe.model import Program

ADD = "_Z3addPii"
FORM = LaunchForm("2", "64", "0", (("data", "i32[n]:zeros"), ("n", "128")))
TOO_LARGE = replace(FORM, shared="1000000")
KERNEL = """\
__global__ void add(int *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += 1;
}
"""
MAIN = """\
int main() {
    int *data;
    cudaMalloc(&data, 512);
    add<<<1, 32>>>(data, 32);
    add<<<2, 64>>>(data, 128);
}
"""


def _options(path: Path, text: str = KERNEL) -> Options:
    path.write_text(text)
    return Options(source=str(path), device="sim:a10")


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Session]:
    session = Session(_options(tmp_path / "add.cu"))
    session.give(ADD, FORM)
    yield session
    session.close()


def test_a_given_launch_takes_the_place_of_the_former(given: Session) -> None:
    given.give(ADD, replace(FORM, grid="4"))
    given.step()
    assert given.frame().grid == (4, 1, 1)
    assert given.kernels()[0].grid == (4, 1, 1)


def test_a_given_launch_that_cannot_run_leaves_the_former(given: Session) -> None:
    given.step()
    with pytest.raises(UserError, match="1000000 bytes of shared memory"):
        given.give(ADD, TOO_LARGE)
    given.step()
    frame = given.frame()
    assert (frame.grid, frame.launches, frame.shared_bytes) == ((2, 1, 1), 3, 0)
    (choice,) = given.kernels()
    assert choice.grid == (2, 1, 1)
    assert choice.form is not None and choice.form.shared == "0"


def test_a_first_launch_that_cannot_run_is_not_kept(tmp_path: Path) -> None:
    session = Session(_options(tmp_path / "add.cu"))
    with pytest.raises(UserError, match="1000000 bytes of shared memory"):
        session.give(ADD, TOO_LARGE)
    (choice,) = session.kernels()
    assert not choice.ready and session.selected == ("", "")
    session.close()


def test_a_launch_that_cannot_be_remembered_leaves_the_former(given: Session) -> None:
    given.select(probe="warp_duration")
    refusing = patch("gpuwatch.engine.given.remember", side_effect=UserError("read-only"))
    with refusing, pytest.raises(UserError, match="read-only"):
        given.give(ADD, replace(FORM, grid="4"), "block_sched")
    given.step()
    frame = given.frame()
    assert (frame.grid, frame.probe) == ((2, 1, 1), "warp_duration")
    assert given.kernels()[0].grid == (2, 1, 1)


def test_a_relaunch_of_what_is_selected_shows_at_once(given: Session) -> None:
    given.give(ADD, replace(FORM, grid="4"))
    assert given.has_frame
    assert given.frame().grid == (4, 1, 1)


def test_a_probe_that_was_prepared_for_a_former_launch_is_not_attached(given: Session) -> None:
    waits, goes_on = threading.Event(), threading.Event()

    def held(program: Program, *others: Any) -> MapReader:
        if program.name == "warp_duration" and not waits.is_set():
            waits.set()
            assert goes_on.wait(PATIENCE_SECONDS)
        return MapReader(program, *others)

    with patch("gpuwatch.engine.build.MapReader", held):
        prepare = partial(given.build.prepare, ADD, "warp_duration", lambda _text: None)
        beside = threading.Thread(target=prepare)
        beside.start()
        assert waits.wait(PATIENCE_SECONDS)
        given.give(ADD, replace(FORM, grid="4"))
        goes_on.set()
        beside.join()
    assert [probe for _, probe in given.build.probeds] == [given.selected[1]]
    given.select(probe="warp_duration")
    given.step()
    frame = given.frame()
    assert (frame.grid, frame.warps, frame.missing) == ((4, 1, 1), 8, 0)


def test_another_launch_of_the_program_that_cannot_attach_leaves_the_former(
    tmp_path: Path,
) -> None:
    session = Session(_options(tmp_path / "add.cu", KERNEL + MAIN))
    session.prepare()
    with pytest.raises(UserError, match="no_such_probe"):
        session.choose_launch(1, "no_such_probe")
    session.step()
    assert session.frame().grid == session.kernels()[0].grid == (1, 1, 1)
    session.choose_launch(1)
    session.step()
    assert session.frame().grid == session.kernels()[0].grid == (2, 1, 1)
    session.close()


def test_another_launch_of_a_saved_source_tells_its_progress_as_any_does(tmp_path: Path) -> None:
    told: list[str] = []
    session = Session(_options(tmp_path / "add.cu", KERNEL + MAIN), told.append)
    session.prepare()
    beside: list[str] = []
    session.adopt(session.compile(session.source, beside.append))
    told.clear()
    beside.clear()
    session.choose_launch(1)
    assert "running add.cu to capture its launches" in told and beside == []
    session.close()


def test_presets_that_could_not_attach_are_tried_with_another_launch(tmp_path: Path) -> None:
    large = MAIN.replace("add<<<1, 32>>>", "add<<<3000, 256>>>")
    options = replace(_options(tmp_path / "add.cu", KERNEL + large), probe="gmem_traffic")
    with WorkerClient(replace(options, map_limit=100_000)) as watch:

        def refused() -> set[str]:
            return {one.name for one in watch.probes() if "the limit is" in one.problem}

        until(lambda: "block_sched" in refused())
        watch.select(launch=1)
        until(lambda: (frame := watch.latest()) is not None and frame.grid == (2, 1, 1))
        until(lambda: "block_sched" not in refused())


def test_the_worker_tells_why_and_goes_on(tmp_path: Path) -> None:
    watch = WorkerClient(_options(tmp_path / "add.cu"))
    try:
        until(lambda: bool(watch.kernels()))
        watch.give(ADD, FORM)
        until(lambda: watch.latest() is not None)
        watch.give(ADD, TOO_LARGE)
        until(lambda: watch.status().error is not None)
        assert "1000000 bytes of shared memory" in str(watch.status().error)
        until(lambda: watch.latest() is not None)
        first = watch.latest()
        until(lambda: watch.latest() is not first)
        later = watch.latest()
        assert later is not None and later.grid == (2, 1, 1)
        assert "internal error" not in str(watch.status().error)
    finally:
        watch.close()
