"""Kernels that go wrong on a real GPU: the screen's process stays, and a new worker goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.frame import Status
from gpuwatch.engine.options import Options

pytestmark = pytest.mark.gpu

KERNELS = {
    "wild": "out[1ll << 40] = 1;",
    "misaligned": "*(int *)((char *)out + 1) = 1;",
    "trap": 'asm volatile("trap;");',
    "refused": "assert(out == nullptr);",
    "endless": "while (*(volatile int *)out == 0) { }",
}
PROGRAM = """\
#include <cassert>
__global__ void fine(int *out) {{ out[threadIdx.x] = threadIdx.x; }}
__global__ void {name}(int *out) {{ {body} }}
int main()
{{
    int *out;
    cudaMalloc(&out, 4096);
    fine<<<4, 64>>>(out);
    {name}<<<4, 64>>>(out);
    return cudaDeviceSynchronize();
}}
"""


def _source(folder: Path, name: str) -> Path:
    path = folder / f"{name}.cu"
    path.write_text(PROGRAM.format(name=name, body=KERNELS[name]))
    return path


@contextmanager
def _watch(source: Path, kernel: str) -> Iterator[WorkerClient]:
    options = Options(str(source), device="cuda", kernel=kernel, timeout=1.0)
    with WorkerClient(options) as client:
        yield client


def _until(client: WorkerClient, state: str, seconds: float = 60.0) -> Status:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = client.status()
        if status.state == state and (state != "running" or client.latest() is not None):
            return status
        time.sleep(0.02)
    raise AssertionError(f"not {state} but {client.status()}")


@pytest.mark.parametrize("name", list(KERNELS))
def test_a_fault_is_told_and_the_next_worker_runs_another_kernel(tmp_path: Path, name: str) -> None:
    with _watch(_source(tmp_path, name), name) as client:
        status = _until(client, "failed")
        assert status.error is not None
        words = "did not end within 1 s" if name == "endless" else f"{name}"
        assert words in status.error.render()
        assert "ctrl+r" in status.error.hint or "--timeout" in status.error.hint
        client.select(kernel="fine")
        begun = time.monotonic()
        client.restart()
        _until(client, "running")
        print(f"{name}: runs again after {time.monotonic() - begun:.2f} s")
        frame = client.latest()
        assert frame is not None and frame.kernel.startswith("fine")
        assert (frame.missing, frame.dropped) == (0, 0)


def test_a_killed_worker_leaves_nothing_on_the_card(tmp_path: Path) -> None:
    with _watch(_source(tmp_path, "trap"), "fine") as client:
        _until(client, "running")
        process = client.process_id
    assert process is not None
    shown = subprocess.run(
        ["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert str(process) not in shown.split()


@pytest.mark.parametrize("name", list(KERNELS))
def test_the_report_of_a_faulty_kernel_is_one_message(tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-m", "gpuwatch", "report", str(_source(tmp_path, name))]
    done = subprocess.run(
        [*command, "-k", name, "-d", "cuda", "--timeout", "1"],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "gpuwatch: error: the kernel" in done.stderr
    assert "Traceback" not in done.stderr
