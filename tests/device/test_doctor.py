"""The doctor on machines with and without GPUs, a fake driver answering."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from fake_libcuda import FakeGpu, FakeLibcuda
from rich.console import Console

from gpuwatch import doctor as module
from gpuwatch.analysis.time_axis import TimeAxis
from gpuwatch.device.cuda import driver, gpus
from gpuwatch.device.cuda.binding import import_problem
from gpuwatch.errors import UserError
from gpuwatch.toolchain import nvidia_smi
from gpuwatch.toolchain.targets import target_problem

PARTED = "0, NVIDIA H200, 580.95.05, Enabled\n"


def _no_pycuda() -> None:
    raise import_problem(ModuleNotFoundError(name="pycuda"), "13.0")


@pytest.fixture(autouse=True)
def _without_pycuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "import_pycuda", _no_pycuda)


def _said(monkeypatch: pytest.MonkeyPatch, library: FakeLibcuda, smi: str = "") -> str:
    for place in (driver, gpus):
        monkeypatch.setattr(place, "open_library", lambda: library)
    monkeypatch.setattr(nvidia_smi, "ask", lambda: nvidia_smi.parse(smi))
    output = io.StringIO()
    assert module.doctor(Console(file=output, width=300)) == 0
    return output.getvalue()


def test_several_gpus_are_listed_without_pycuda(monkeypatch: pytest.MonkeyPatch) -> None:
    old, closed = FakeGpu("Tesla V100"), FakeGpu("NVIDIA H200")
    old.attributes |= {16: 80, 75: 7, 76: 0}
    closed.attributes[20] = 2
    smi = "0, NVIDIA H200, 580.95.05, [N/A]\n"
    text = _said(monkeypatch, FakeLibcuda((FakeGpu(), old, closed)), smi)
    assert "ok       driver: CUDA 13.0, release 580.95.05" in text
    assert "missing  PyCUDA: PyCUDA is not installed" in text
    assert "pip install '.[cuda]'" in text
    assert "ok       cuda:0: NVIDIA H200, sm_90, 132 SMs" in text
    assert "ok       nvcc for cuda:0: makes code for sm_90" in text
    assert "missing  nvcc for cuda:1: nvcc" in text and "its oldest is sm_75" in text
    assert "missing  cuda:2: GPU 2 takes no programs" in text


class _Opened:
    closed = 0

    def get_version(self) -> tuple[int, int, int]:
        return 13, 0, 0

    def close(self) -> None:
        _Opened.closed += 1


def test_with_pycuda_each_gpu_is_opened_and_its_time_axis_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    axis = TimeAxis(np.zeros(132, np.int64), 0.5, 32.0, 9.0, 0.0, drift_ns=12.0, drift_seconds=1.0)
    opened: list[str] = []

    def name_of(spec: str) -> str:
        opened.append(spec)
        if spec == "cuda:1":
            raise UserError("another process holds GPU 1", hint="end it")
        return spec

    monkeypatch.setattr(module, "import_pycuda", _Opened)
    monkeypatch.setattr(module, "_name_of", name_of)
    monkeypatch.setattr(module, "open_cuda", lambda _index: _Opened())
    answers = iter((axis, None))
    monkeypatch.setattr(module, "measure_twice", lambda *_: next(answers))
    text = _said(monkeypatch, FakeLibcuda((FakeGpu(),) * 3))
    assert "ok       PyCUDA: built for CUDA 13.0" in text
    assert "missing  cuda:1: another process holds GPU 1" in text
    assert "time axis of cuda:0: timer steps of 32 ns, fit within 9.0 ns, SMs moved 12 ns" in text
    assert "time axis of cuda:1" not in text
    assert "missing  time axis of cuda:2" in text
    assert opened == ["sim", "cuda:0", "cuda:1", "cuda:2"] and _Opened.closed == 2


def test_an_old_driver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    text = _said(monkeypatch, FakeLibcuda(version=12040))
    assert "missing  driver for this toolkit: the NVIDIA driver is older" in text
    assert "release 580 or newer" in text


def test_mig_mode_without_an_instance_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    text = _said(monkeypatch, FakeLibcuda((), init=100), PARTED)
    assert "missing  driver: GPU 0 (NVIDIA H200) is in MIG mode" in text
    assert "nvidia-smi mig -i 0 -cgi 0 -C" in text
    other = _said(monkeypatch, FakeLibcuda((), init=100), PARTED + PARTED.replace("En", "Dis"))
    assert "the driver shows no GPU" in other
    closed = _said(monkeypatch, FakeLibcuda((), init=304), PARTED)
    assert "device nodes are missing" in closed and "MIG mode" not in closed


class _Silent(FakeLibcuda):
    def cuDeviceGetCount(self, _count: object) -> int:  # noqa: N802
        return 999


def test_a_driver_that_does_not_tell_of_its_gpus_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = _said(monkeypatch, _Silent(names={999: b"CUDA_ERROR_UNKNOWN"}))
    words = "does not tell of its GPUs: cuDeviceGetCount gives CUDA_ERROR_UNKNOWN, 999"
    assert f"missing  driver: the NVIDIA driver {words}" in text
    assert "Nsight Compute" in text


def test_an_nvidia_smi_that_cannot_run_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_bytes(b"no program")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nvidia_smi.ask() == []


def test_what_nvidia_smi_says_is_read() -> None:
    (one,) = nvidia_smi.parse(PARTED + "\nsome warning\n")
    assert (one.index, one.release, one.mig) == (0, "580.95.05", True)


@pytest.mark.parametrize(
    ("arch", "words"), [("sm_70", "oldest is sm_75"), ("sm_130", "newest is sm_90"), ("90", None)]
)
def test_targets_beyond_the_toolkit_are_told(arch: str, words: str | None) -> None:
    problem = target_problem(arch, (75, 80, 90), "13.0.88")
    assert problem is None if words is None else problem is not None and words in problem.message
    assert target_problem(arch, (), "13.0.88") is None
