"""What is said of a driver, its GPUs and PyCUDA, for each way in which they can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_libcuda import FakeGpu, FakeLibcuda

from gpuwatch.device.cuda.binding import import_problem, require_fit
from gpuwatch.device.cuda.driver import open_library, require_driver_for, start
from gpuwatch.device.cuda.gpus import chosen, listed, not_opened
from gpuwatch.errors import UserError

MODES = {"default": 0, "prohibited": 2, "exclusive": 3}


def _gpu(name: str = "NVIDIA H200", mode: str = "default") -> FakeGpu:
    gpu = FakeGpu(name)
    gpu.attributes[20] = MODES[mode]
    return gpu


def test_a_missing_library_is_told_apart_from_a_bare_container(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no NVIDIA driver") as none:
        open_library("libno_such.so.1", tmp_path / "absent")
    assert "install NVIDIA's driver" in none.value.hint
    loaded = tmp_path / "version"
    loaded.touch()
    with pytest.raises(UserError) as bare:
        open_library("libno_such.so.1", loaded)
    assert "--gpus all" in bare.value.hint


def test_a_driver_that_starts_tells_its_version() -> None:
    assert start(FakeLibcuda(version=12040)) == "12.4"


@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (34, "stub", "LD_LIBRARY_PATH"),
        (46, "held by another process, or prohibited", "-c DEFAULT"),
        (100, "shows no GPU .CUDA_ERROR_NO_DEVICE, 100", "nvidia-smi -mig 0"),
        (101, "CUDA_VISIBLE_DEVICES", "unset"),
        (304, "device nodes", "nvidia-modprobe"),
        (802, "fabric", "nvidia-fabricmanager"),
        (803, "different releases", "reboot"),
        (804, "cuda-compat", "LD_LIBRARY_PATH"),
        (999, "kernel module", "nvidia-modprobe"),
        (7777, "it refuses .unknown error, 7777", "nvidia-smi"),
    ],
)
def test_a_driver_that_does_not_start_says_why(status: int, message: str, hint: str) -> None:
    with pytest.raises(UserError, match=message) as told:
        start(FakeLibcuda(init=status))
    assert hint in told.value.hint and told.value.status == 2


@pytest.mark.parametrize("driver", ["13.0", "13.2", "14.0"])
def test_a_driver_of_the_toolkits_major_version_or_later_serves(driver: str) -> None:
    require_driver_for("13.1.88", driver)


def test_an_older_driver_is_told_with_the_release_that_it_needs() -> None:
    with pytest.raises(
        UserError, match=r"runs CUDA 12\.9, and nvcc makes code for 13\.0\.88"
    ) as at:
        require_driver_for("13.0.88", "12.9")
    assert "release 580 or newer" in at.value.hint and "a toolkit of CUDA 12" in at.value.hint


def test_every_gpu_is_listed_with_what_is_unusual_about_it() -> None:
    part = _gpu("NVIDIA H200 MIG 1g.18gb")
    library = FakeLibcuda((_gpu(), _gpu("NVIDIA T4", "exclusive"), part))
    assert [gpu.described for gpu in listed(library)] == [
        "NVIDIA H200, sm_90, 132 SMs, 140 GiB",
        "NVIDIA T4, sm_90, 132 SMs, 140 GiB, compute mode Exclusive_Process",
        "NVIDIA H200 MIG 1g.18gb, sm_90, 132 SMs, 140 GiB, a MIG instance",
    ]


def test_a_gpu_that_is_not_there_is_told_with_those_that_are() -> None:
    found = listed(FakeLibcuda((_gpu(), _gpu("NVIDIA T4"))))
    assert chosen(found, 1).name == "NVIDIA T4"
    with pytest.raises(UserError, match="no GPU 2: the driver shows cuda:0 NVIDIA H200, cuda:1"):
        chosen(found, 2)
    with pytest.raises(UserError, match="shows no GPU"):
        chosen([], 0)


def test_of_mig_instances_only_one_is_shown() -> None:
    found = listed(FakeLibcuda((_gpu("NVIDIA H200 MIG 1g.18gb"),)))
    with pytest.raises(UserError) as told:
        chosen(found, 1)
    assert "CUDA_VISIBLE_DEVICES=MIG-" in told.value.hint


def test_a_prohibited_gpu_is_refused_before_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    found = listed(FakeLibcuda((_gpu(mode="prohibited"),)))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(UserError, match="Prohibited") as told:
        chosen(found, 0)
    assert "nvidia-smi -i 0 -c DEFAULT" in told.value.hint
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    with pytest.raises(UserError) as hidden:
        chosen(found, 0)
    assert "nvidia-smi -i 3 -c DEFAULT" in hidden.value.hint


BUSY = "cuDevicePrimaryCtxRetain failed: all CUDA-capable devices are busy or unavailable"


@pytest.mark.parametrize(
    ("gpu", "words", "message", "hint"),
    [
        (_gpu(mode="exclusive"), BUSY, "another process holds GPU 0", "-c DEFAULT"),
        (_gpu(), BUSY, "cannot be opened", "nvidia-smi"),
        (_gpu("A100 MIG 1g.5gb"), BUSY, "the MIG instance", "nvidia-smi -L"),
        (_gpu(mode="exclusive"), "failed: out of memory", "no memory left", "close other"),
    ],
)
def test_a_context_that_is_refused_says_why(
    gpu: FakeGpu, words: str, message: str, hint: str
) -> None:
    told = not_opened(listed(FakeLibcuda((gpu,)))[0], words)
    assert message in told.message and hint in told.hint and told.detail == words


@pytest.mark.parametrize(
    ("problem", "message", "hint"),
    [
        (ModuleNotFoundError("No module named 'pycuda'", name="pycuda"), "not installed", "make"),
        (
            ModuleNotFoundError("No module named 'pycuda._driver'", name="pycuda._driver"),
            "another Python",
            "--force-reinstall",
        ),
        (
            ModuleNotFoundError("No module named 'pytools'", name="pytools"),
            "lacks pytools",
            "pip install pytools",
        ),
        (
            ImportError("_driver.so: undefined symbol: cuCtxCreate_v4"),
            "newer CUDA than the driver's, 12.4",
            "make cuda",
        ),
        (
            ImportError("libcurand.so.11: cannot open shared object file"),
            "cuRAND of another toolkit",
            "make cuda",
        ),
        (ImportError("undefined symbol: _PyUnicode_Ready"), "another Python", "make cuda"),
        (ImportError("numpy.core.multiarray failed to import"), "another numpy", "make cuda"),
        (ImportError("version `CXXABI_1.3.15' not found"), "something else", "make cuda"),
    ],
)
def test_a_pycuda_that_does_not_load_says_why(
    problem: ImportError, message: str, hint: str
) -> None:
    told = import_problem(problem, "12.4")
    assert message in told.message and hint in told.hint


def test_a_pycuda_built_for_a_later_major_version_is_told() -> None:
    require_fit((12, 9, 0), "13.0")
    require_fit((13, 2, 0), "13.0")
    with pytest.raises(UserError, match=r"built for CUDA 13\.0, and the driver is for 12\.4") as at:
        require_fit((13, 0, 0), "12.4")
    assert "make cuda CUDA_HOME=DIR" in at.value.hint
