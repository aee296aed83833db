"""Unmodified programs on a real GPU: what they give is the same with and without gpuwatch."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.engine.program_session import ProgramOptions
from gpuwatch.engine.program_watch import RunningProgram
from gpuwatch.probe.catalogue import folder
from gpuwatch.toolchain import find
from gpuwatch.trace import Trace

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 240.0


@dataclass(frozen=True)
class Ran:
    status: int
    output: str
    errors: str
    values: dict[str, Any]

    def kernel(self, part: str) -> dict[str, Any]:
        return next(one for one in self.values["kernels"] if part in one["name"])

    def frame(self, part: str) -> dict[str, Any]:
        return next(one for one in self.values["frames"] if part in one["kernel"])


def bare(*command: str | Path) -> Ran:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return Ran(done.returncode, done.stdout, done.stderr, {})


def gpuwatch(*words: str | Path) -> Ran:
    return bare(sys.executable, "-m", "gpuwatch", *words)


def watched(folder: Path, *words: str | Path) -> Ran:
    """`gpuwatch run` with JSON; words as behind it, -- included."""
    report = folder / "run.json"
    done = gpuwatch("run", "--json", report, *words)
    return Ran(done.status, done.output, done.errors, json.loads(report.read_text()))


@functools.cache
def arch() -> str:
    """That of the GPU. `-arch=native` would leave out the PTX."""
    asked = bare("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    return "sm_" + asked.output.split()[0].replace(".", "")


def built(name: str, tmp: Path, *flags: str) -> Path:
    source = PROGRAMS / f"{name}.cu"
    source = source if source.exists() else folder("kernels") / f"{name}.cu"
    program = tmp / name
    words = [find().nvcc, "-O2", f"-arch={arch()}", "-std=c++17", *flags, source, "-o", program]
    subprocess.run(list(map(str, words)), check=True, timeout=SECONDS)
    return program


def needs(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


@pytest.mark.parametrize("runtime", ["static", "shared"])
def test_the_articles_program(tmp_path: Path, runtime: str) -> None:
    program = built("gemm", tmp_path, "-cudart", runtime)
    plain = bare(program)
    listed = watched(tmp_path, "--", program)
    assert (listed.status, listed.output) == (plain.status, plain.output)
    gemm = listed.kernel("gemm")
    assert gemm["launches"] == 1 and gemm["probeable"] and gemm["origin"] == "in the program"
    assert gemm["total_seconds"] > 1e-5
    ran = watched(tmp_path, "-k", "gemm", "--", program)
    assert (ran.status, ran.output) == (plain.status, plain.output)
    frame = ran.frame("gemm")
    assert frame["records"] == frame["warps"] == 32768 and not frame["missing"]
    assert frame["attached"]["probed"] == 1
    moved = watched(tmp_path, "-k", "gemm", "-p", "gmem_traffic", "--", program)
    loads = next(one for one in moved.frame("gemm")["maps"] if one["name"] == "global_loads")
    assert loads["fields"]["sectors"]["total"] == 167_772_160
    assert moved.output == plain.output


@pytest.mark.parametrize("probe", ["block_sched", "warp_duration", "gmem_traffic", "instr_mix"])
def test_variables_of_the_module_are_the_programs_own(tmp_path: Path, probe: str) -> None:
    program = built("variables", tmp_path)
    plain = bare(program)
    ran = watched(tmp_path, "-k", "with_variables", "-p", probe, "--", program)
    assert plain.status == 7
    assert (ran.status, ran.output) == (plain.status, plain.output)
    assert ran.frame("with_variables")["attached"]["probed"] == 20


@pytest.mark.parametrize(
    ("way", "kernel", "probed"),
    [
        ("threads", "add_one", 800),
        ("shapes", "add_one", 20),
        ("cooperative", "together", 5),
        ("cluster", "in_clusters", 1),
    ],
)
def test_ways_of_launching(tmp_path: Path, way: str, kernel: str, probed: int) -> None:
    program = built("ways", tmp_path, "-lpthread")
    plain = bare(program, way)
    assert plain.status == 0
    ran = watched(tmp_path, "-k", kernel, "--", program, way)
    assert (ran.status, ran.output) == (plain.status, plain.output)
    assert ran.kernel(kernel)["probed"] == probed, ran.errors


def test_a_kernel_that_waits_for_later_launches(tmp_path: Path) -> None:
    """A probe that is put on meanwhile waits for it, the launches do not."""
    program = built("persistent", tmp_path)
    plain = bare(program, "400")
    assert plain.status == 0
    watch = RunningProgram(ProgramOptions((str(program), "400")))
    try:
        _wait(lambda: any(one.launches > 20 for one in watch.program_kernels()))
        key = next(one.key for one in watch.program_kernels() if "add_one" in one.name)
        watch.select(key, "block_sched")
        _wait(lambda: watch.program().state == "ended")
        frame = watch.latest()
        assert frame is not None and frame.records == 32 and not frame.missing
        assert watch.program().status == 0
        assert Path(watch.program().output).read_text() == plain.output
    finally:
        watch.close()
        watch.remove()


def _wait(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not done():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_reset_device_begins_anew(tmp_path: Path) -> None:
    program = built("ways", tmp_path, "-lpthread")
    plain = bare(program, "reset", "shapes")
    ran = watched(tmp_path, "-k", "add_one", "--", program, "reset", "shapes")
    assert (ran.status, ran.output) == (plain.status, plain.output)
    assert ran.kernel("add_one")["probed"] == 25, ran.errors


def test_every_device(tmp_path: Path) -> None:
    names = bare("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").output.splitlines()
    if len(names) < 2:
        pytest.skip("there is one GPU")
    program = built("ways", tmp_path, "-lpthread")
    plain = bare(program, "devices")
    ran = watched(tmp_path, "-k", "add_one", "--", program, "devices")
    assert (ran.status, ran.output) == (plain.status, plain.output)
    assert ran.kernel("add_one")["probed"] == 10 * len(names)


def test_graphs_are_left_alone_and_told(tmp_path: Path) -> None:
    program = built("ways", tmp_path, "-lpthread")
    plain = bare(program, "graph")
    ran = watched(tmp_path, "-k", "add_one", "--", program, "graph")
    assert (ran.status, ran.output) == (plain.status, plain.output)
    kernel = ran.kernel("add_one")
    assert (kernel["launches"], kernel["in_graphs"], kernel["probed"]) == (15, 15, 0)


def test_a_fault_of_the_program_stays_its_own(tmp_path: Path) -> None:
    program = built("ways", tmp_path, "-lpthread")
    plain = bare(program, "shapes", "fault")
    ran = watched(tmp_path, "-k", "add_one", "--", program, "shapes", "fault")
    assert plain.status == 3
    assert (ran.status, ran.output) == (plain.status, plain.output)


def test_torch_and_triton(tmp_path: Path) -> None:
    needs("torch")
    needs("triton")
    command = sys.executable, PROGRAMS / "tensors.py"
    plain = bare(*command)
    listed = watched(tmp_path, "--", *command)
    assert listed.output == plain.output and len(plain.output) == 65
    assert listed.kernel("gemm")["why"] and listed.kernel("softmax")["why"]
    assert listed.kernel("gemm")["registers"] and listed.kernel("softmax")["occupancy"]
    assert listed.kernel("add")["origin"] == "Triton's cache"
    for probe in ("block_sched", "gmem_traffic"):
        ran = watched(tmp_path, "-k", "add", "-p", probe, "--", *command)
        assert ran.output == plain.output
        assert ran.frame("add")["attached"]["probed"] == 30
    moved = {one["name"]: one for one in ran.frame("add")["maps"]}
    assert moved["global_loads"]["fields"]["sectors"]["total"] == 2 * (1 << 20) * 4 // 32


def test_cupys_raw_kernel(tmp_path: Path) -> None:
    needs("cupy")
    command = sys.executable, PROGRAMS / "raw_kernel.py"
    plain = bare(*command)
    for probe in ("block_sched", "gmem_traffic"):
        ran = watched(tmp_path, "-k", "scaled_add", "-p", probe, "--", *command)
        assert ran.output == plain.output and len(plain.output) == 65
        assert ran.frame("scaled_add")["attached"]["probed"] == 50


def test_jax(tmp_path: Path) -> None:
    needs("jax")
    command = sys.executable, PROGRAMS / "jitted.py"
    plain = bare(*command)
    listed = watched(tmp_path, "--", *command)
    assert listed.output == plain.output and len(plain.output) == 65
    assert listed.kernel("loop_add_fusion")["launches"] == 20
    ran = watched(tmp_path, "-k", "loop_add_fusion", "--", *command)
    assert ran.output == plain.output
    assert "machine code only" in ran.kernel("loop_add_fusion")["why"]
    assert "machine code only" in ran.errors


def test_a_recorded_trace_is_read_by_its_readers(tmp_path: Path) -> None:
    program = built("ways", tmp_path, "-lpthread")
    trace = tmp_path / "trace"
    ran = gpuwatch("record", "-k", "add_one", "-p", "warp_duration", "-o", trace, "--", program,
                   "shapes")  # fmt: skip
    assert ran.output == bare(program, "shapes").output, ran.errors
    found = Trace(trace)
    assert len(found.results) == 20
    assert len(list((trace / "kernel").iterdir())) == 2
    events = (trace / "event.log").read_text()
    assert "uses CUDA" in events and "program ends with status 0" in events
    read = bare(sys.executable, trace / "read.py", found.results[0])
    assert read.status == 0, read.errors
    shown = gpuwatch("report", trace, "--json")
    assert json.loads(shown.output)["records"] == (1 << 16) // 32


def test_a_stored_launch_is_made_again(tmp_path: Path) -> None:
    program, stored = built("variables", tmp_path), tmp_path / "stored"
    ran = gpuwatch("capture", "-k", "with_variables", "--launch", "3", "-o", stored, "--", program)
    assert ran.output == bare(program).output and ran.status == 7, ran.errors
    figures = []
    for device in ("cuda", "sim:h200"):
        shown = gpuwatch("report", stored, "-d", device, "-p", "gmem_traffic", "--json")
        assert shown.status == 0, shown.errors
        values = json.loads(shown.output)
        assert values["outputs_identical"] is True
        figures.append({one["name"]: one["fields"] for one in values["maps"]})
    assert figures[0] == figures[1]


def test_gpuwatch_killed_leaves_the_program_running(tmp_path: Path) -> None:
    program = built("many", tmp_path)
    output = tmp_path / "output"
    words = [sys.executable, "-m", "gpuwatch", "run", "--no-screen", "-k", "nothing", "--",
             program, "300000", "100000"]  # fmt: skip
    with output.open("wb") as file:
        child = subprocess.Popen(list(map(str, words)), stdout=file, stderr=subprocess.DEVNULL)
    time.sleep(2.5)
    child.kill()
    child.wait()
    for _ in range(200):
        if b"us a launch" in output.read_bytes():
            break
        time.sleep(0.1)
    assert re.fullmatch(r"[\d.]+ us a launch\n", output.read_text())


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    shared = Path("/dev/shm")
    before = set(shared.glob("gpuwatch-run-*")) if os.access(shared, os.W_OK) else set()
    watched(tmp_path, "-k", "gemm", "--", built("gemm", tmp_path))
    assert set(shared.glob("gpuwatch-run-*")) <= before
    if shutil.which("nvidia-smi"):
        listed = bare("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader")
        assert not listed.output.strip()
