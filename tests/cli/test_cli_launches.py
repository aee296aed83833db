"""Launches given on the command line, chosen among many, and what kernels print."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import run

from gpuwatch.cli.printed import KeptOutput

SAXPY = """\
__global__ void saxpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
MANY = """\
__global__ void fill(int *p, int n, int v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = v + i;
}
int main()
{
    int *p;
    cudaMalloc(&p, 4096 * 4);
    for (int n = 256; n <= 1024; n *= 2) fill<<<n / 128, 128>>>(p, n, 3);
    return cudaDeviceSynchronize();
}
"""
GIVEN = ("--arg", "a=2.5", "--arg", "x=f32[n]:uniform", "--arg", "y=f32[n]:iota", "--arg")


def _report(*arguments: str | Path) -> dict[str, object]:
    done = run("report", *arguments, "-d", "sim:a10", "-n", "1", "--json")
    assert done.returncode == 0, done.stderr
    values: dict[str, object] = json.loads(done.stdout)
    return values


@pytest.fixture
def saxpy(tmp_path: Path) -> Path:
    path = tmp_path / "saxpy.cu"
    path.write_text(SAXPY)
    return path


def test_a_launch_from_flags(saxpy: Path) -> None:
    values = _report(saxpy, "--grid", "cdiv(n,256)", "--block", "256", *GIVEN, "n=5000")
    assert values["launch"] == {"grid": [20, 1, 1], "block": [256, 1, 1], "shared_bytes": 0}
    assert values["records"] == 160
    assert values["outputs_identical"] is True


def test_a_launch_from_the_file_beside_the_source(saxpy: Path) -> None:
    saxpy.with_suffix(".launch.toml").write_text(
        '[sizes]\nn = 640\n\n[saxpy]\ngrid = "n // 64"\nblock = 64\n\n'
        '[saxpy.args]\na = 1.5\nx = "f32[n]:ones"\ny = "f32[n]:zeros"\nn = "n"\n'
    )
    assert _report(saxpy)["blocks"] == 10


def test_the_kernels_as_json_tell_the_whole_form(saxpy: Path) -> None:
    saxpy.with_suffix(".launch.toml").write_text(
        '[sizes]\nn = 640\n\n[saxpy]\ngrid = "n // 64"\nblock = 64\ncluster = 2\n'
        'cooperative = true\n\n[saxpy.args]\na = 1.5\nx = "f32[n]:ones"\n'
        'y = "f32[n]:zeros"\nn = "n"\n'
    )
    done = run("kernels", saxpy, "-d", "sim:h200", "--json")
    (kernel,) = json.loads(done.stdout)
    assert kernel["form"] == {
        "grid": "n // 64",
        "block": "64",
        "shared": "0",
        "arguments": {"a": "1.5", "x": "f32[n]:ones", "y": "f32[n]:zeros", "n": "n"},
        "cluster": "2",
        "cooperative": True,
        "sizes": {"n": 640},
        "folder": str(saxpy.parent.resolve()),
    }


def test_without_a_launch_the_message_shows_how_to_give_one(saxpy: Path) -> None:
    done = run("report", saxpy, "-d", "sim:a10")
    assert done.returncode == 2
    assert "nothing says how to launch saxpy" in done.stderr
    assert "--arg 'x=f32[1048576]:uniform'" in done.stderr
    assert "saxpy.launch.toml" in done.stderr


def test_a_mistake_in_a_flag_is_shown_with_a_caret(saxpy: Path) -> None:
    done = run("report", saxpy, "-d", "sim", "--grid", "4", "--block", "64", *GIVEN, "n=1.5")
    assert done.returncode == 2
    assert "^" in done.stderr and "Traceback" not in done.stderr


def test_the_launches_of_a_kernel_are_listed_and_can_be_chosen(tmp_path: Path) -> None:
    source = tmp_path / "many.cu"
    source.write_text(MANY)
    listed = run("kernels", source, "-d", "sim:a10")
    assert "launched 3 times in 3 shapes" in listed.stdout
    assert "--launch 2     <<<8x1, 128x1>>>  launched once" in listed.stdout
    assert _report(source)["blocks"] == 2
    assert _report(source, "--launch", "2")["blocks"] == 8
    missing = run("report", source, "-d", "sim:a10", "--launch", "3")
    assert missing.returncode == 2
    assert "made no launch 3: it made 3" in missing.stderr


def test_a_limit_on_map_memory_says_what_would_fit(saxpy: Path) -> None:
    done = run(
        "report", saxpy, "-d", "sim", "--map-limit", "8k",
        "--grid", "64", "--block", "256", *GIVEN, "n=16384",
    )  # fmt: skip
    assert done.returncode == 2
    assert "the limit is 8.00 KiB" in done.stderr
    assert "sample=" in done.stderr and "reduce" in done.stderr


def test_output_of_the_process_is_kept_apart(capfd: pytest.CaptureFixture[str]) -> None:
    with KeptOutput() as kept:
        os.write(1, b"from a kernel\n")
    os.write(1, b"from gpuwatch\n")
    assert kept.text == "from a kernel\n"
    assert capfd.readouterr().out == "from gpuwatch\n"
