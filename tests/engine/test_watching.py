"""Saving a source while it is watched, and switching between sources."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from worker_support import until

from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.options import Options
from gpuwatch.engine.watching import Saves, local_files
from gpuwatch.probe.catalogue import folder

SIZES = ("128", "128", "128")


def _frame(watch: WorkerClient) -> Frame:
    until(lambda: watch.latest() is not None or watch.status().state == "failed")
    frame = watch.latest()
    assert frame is not None, watch.status().error
    return frame


def _write(path: Path, text: str) -> None:
    """As editors do: a new file in the place of the old one."""
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    copy = tmp_path / "gemm.cu"
    shutil.copy(folder("kernels") / "gemm.cu", copy)
    return copy


@pytest.fixture
def watch(source: Path) -> Iterator[WorkerClient]:
    with WorkerClient(Options(str(source), device="sim:a10", arguments=SIZES)) as client:
        yield client


def test_included_files_are_found_however_deep(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.cu").write_text('#include "inner/b.cuh"\n#include <cstdio>\n#include "no.h"\n')
    (tmp_path / "inner/b.cuh").write_text('  #  include "c.cuh"\n')
    (tmp_path / "inner/c.cuh").write_text('#include "b.cuh"\n')
    names = {file.name for file in local_files([tmp_path / "a.cu"])}
    assert names == {"a.cu", "b.cuh", "c.cuh"}


def test_a_name_that_no_file_can_have_is_left_out(tmp_path: Path) -> None:
    source = tmp_path / "a.cu"
    source.write_text(f'#include "{"a" * 300}"\n')
    assert local_files([source]) == {source}
    assert not Saves([source]).changed()


def test_saves_are_noticed_once_and_a_missing_file_is_waited_for(tmp_path: Path) -> None:
    file, header = tmp_path / "a.cu", tmp_path / "b.cuh"
    header.write_text("1")
    file.write_text('#include "b.cuh"\n')
    saves = Saves([file])
    assert not saves.changed()
    header.write_text("22")
    assert saves.changed()
    assert not saves.changed()
    text = file.read_text()
    file.unlink()
    assert not saves.changed()
    file.write_text(text + "\n")
    assert saves.changed()


def test_a_saved_source_takes_over(watch: WorkerClient, source: Path) -> None:
    before = _frame(watch)
    text = source.read_text()
    _write(source, text.replace("float sum = 0.0f;", "float sum = 1.0f;"))
    until(lambda: (frame := watch.latest()) is not None and frame.build != before.build)
    after = _frame(watch)
    assert (after.mangled, after.probe) == (before.mangled, before.probe)
    assert watch.status().state == "running"
    assert watch.status().error is None
    listing = watch.listing()
    assert listing is not None


def test_an_error_is_told_while_the_former_kernel_runs_on(
    watch: WorkerClient, source: Path
) -> None:
    before = _frame(watch)
    text = source.read_text()
    _write(source, text.replace("__global__", "__global__ nonsense", 1))
    until(lambda: watch.status().error is not None)
    assert watch.status().state == "running"
    error = watch.status().error
    assert error is not None and error.at is not None
    launches = _frame(watch).launches
    until(lambda: _frame(watch).launches > launches)
    assert _frame(watch).build == before.build
    _write(source, text + "\n")
    until(lambda: _frame(watch).build != before.build)
    assert watch.status().error is None


def test_a_source_that_did_not_compile_at_first_is_mended(source: Path) -> None:
    text = source.read_text()
    source.write_text(text.replace("__global__", "__global__ nonsense", 1))
    with WorkerClient(Options(str(source), device="sim:a10", arguments=SIZES)) as watch:
        until(lambda: watch.status().state == "failed")
        _write(source, text)
        until(lambda: watch.latest() is not None)
        assert watch.status().state == "running"


def test_switching_between_two_sources(source: Path) -> None:
    other = str(folder("kernels") / "gemm_tiled.cu")
    options = Options(str(source), device="sim:a10", arguments=SIZES, others=(other,))
    with WorkerClient(options) as watch:
        first = _frame(watch)
        watch.select(source=other)
        second = _frame(watch)
        assert watch.source() == second.source == other
        assert second.build != first.build
        assert second.probe == first.probe
        watch.select(source=str(source))
        assert _frame(watch).build == first.build
        assert watch.sources() == (str(source), other)


def test_launches_that_a_build_assumed_wrongly_are_mended(tmp_path: Path) -> None:
    source = tmp_path / "scaled.cu"
    text = """\
#include <cstdio>
__global__ void scaled(float *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f; }
int main()
{
    int number = 0;
    FILE *file = fopen("NUMBER", "r");
    if (!file || fscanf(file, "%d", &number) != 1) return 1;
    float *out;
    cudaMalloc(&out, 4096 * sizeof(float));
    scaled<<<number, 64>>>(out);
    return cudaDeviceSynchronize();
}
"""
    number = tmp_path / "number"
    source.write_text(text.replace("NUMBER", str(number)))
    number.write_text("4")
    with WorkerClient(Options(str(source), device="sim:a10")) as watch:
        before = _frame(watch)
        assert before.grid == (4, 1, 1)
        number.write_text("8")
        _write(source, source.read_text().replace("1.0f", "2.0f"))
        until(lambda: (frame := watch.latest()) is not None and frame.grid == (8, 1, 1))
        after = _frame(watch)
        assert after.build == before.build + 1
        assert watch.status().error is None
