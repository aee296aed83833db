"""A report's figures next to those of a profiler that answers by table."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from gpuwatch.engine import hardware_counters
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.options import Options
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError

SOURCE = r"""
#include <cstdio>
__global__ void twice(float *x) { x[threadIdx.x] = 2.0f * x[threadIdx.x]; }
__global__ void other(float *x) { x[threadIdx.x] += 1.0f; }
int main()
{
    float *x;
    cudaMalloc(&x, 1024);
    twice<<<1, 32>>>(x);
    other<<<1, 32>>>(x);
    twice<<<2, 64>>>(x);
    twice<<<3, 64>>>(x);
    return cudaDeviceSynchronize();
}
"""
TWICE = "_Z5twicePf"
FAKE = r"""#!/bin/sh
echo "$@" >"{folder}/given"
echo "$CUDA_VISIBLE_DEVICES" >"{folder}/visible"
for word; do metrics=$before; [ "$before" = --metrics ] && list=$word; before=$word; done
"$before" >/dev/null
echo '"ID","Kernel Name","'$(echo $list | sed 's/,/","/g')'"'
echo '"",""'$(echo $list | sed 's/[^,]*,\{{0,1\}}/,"unit"/g')
echo '"0","twice"'$(echo $list | sed 's/[^,]*,\{{0,1\}}/,"24"/g')
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Frame, WatchedProgram]]:
    source = tmp_path_factory.mktemp("program") / "twice.cu"
    source.write_text(SOURCE)
    options = Options(str(source), device="sim:h200", probe="gmem_traffic", launch=3)
    session = Session(options)
    try:
        session.prepare()
        session.step()
        yield session.frame(), session.program
    finally:
        session.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tool = tmp_path / "bin" / "ncu"
    tool.parent.mkdir()
    tool.write_text(FAKE.format(folder=tmp_path))
    tool.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


def _on_gpu(frame: Frame, index: int = 0) -> Frame:
    return replace(frame, device=replace(frame.device, kind="cuda", profile=str(index)))


def test_ours_and_ncus_stand_side_by_side(
    watched: tuple[Frame, WatchedProgram], folder: Path
) -> None:
    frame, program = watched
    counters = hardware_counters.count(program, _on_gpu(frame))
    assert counters.launch == 3
    shown = {row.figure: (row.ours, row.ncu) for row in counters.rows}
    assert shown == {
        "global load requests": (6, 24),
        "global load sectors": (24, 24),
        "global store requests": (6, 24),
        "global store sectors": (24, 24),
        "registers": (frame.registers_plain, 24),
    }
    given = (folder / "given").read_text()
    assert f"--kernel-name {TWICE} --launch-skip 2 --launch-count 1" in given
    assert "warps_active" not in given
    output = io.StringIO()
    hardware_counters.render(counters, Console(file=output, width=160))
    assert "global load requests" in output.getvalue() and "-18" in output.getvalue()
    assert "ptxas may split" in output.getvalue()
    (first, *_) = hardware_counters.as_json(counters)["ncu"]["figures"]
    assert (first["ours"], first["ncu"], first["difference"]) == (6, 24, -18)


def test_the_program_runs_on_the_gpu_that_is_watched(
    watched: tuple[Frame, WatchedProgram], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, program = watched
    hardware_counters.count(program, _on_gpu(frame, 1))
    assert (folder / "visible").read_text() == "1\n"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    hardware_counters.count(program, _on_gpu(frame, 1))
    assert (folder / "visible").read_text() == "7\n"


def test_a_simulated_gpu_has_no_counters(watched: tuple[Frame, WatchedProgram]) -> None:
    with pytest.raises(UserError, match="simulated") as told:
        hardware_counters.count(watched[1], watched[0])
    assert hardware_counters.as_json(told.value) == {
        "ncu": {"error": told.value.message, "hint": told.value.hint}
    }
    assert hardware_counters.as_json(None) == {}


def test_a_refusal_of_ncu_is_passed_on(watched: tuple[Frame, WatchedProgram], folder: Path) -> None:
    words = "==ERROR== ERR_NVGPUCTRPERM - no"
    (folder / "bin" / "ncu").write_text(f"#!/bin/sh\necho '{words}'\nexit 1\n")
    with pytest.raises(UserError, match="ERR_NVGPUCTRPERM"):
        hardware_counters.count(watched[1], _on_gpu(watched[0]))
