"""Programs of several source files, and programs that are already built."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from capturing import captured, simulate

from gpuwatch.device import open_device
from gpuwatch.errors import UserError
from gpuwatch.launch import capture, read_ptx
from gpuwatch.launch.build import place_runtime
from gpuwatch.ptx import parse
from gpuwatch.toolchain import find

MAIN = """
#include <cuda_runtime.h>
__global__ void from_other(int *p);
extern __device__ int step;
__device__ int twice(int x);
static __device__ __noinline__ int own(int x) { return x + 1; }
__global__ void from_main(int *p) { p[threadIdx.x] = own(twice(threadIdx.x)) + step; }
void launch_more(int *p);
int main() {
  int *p, value = 100;
  cudaMalloc(&p, 128);
  cudaMemcpyToSymbol(step, &value, sizeof value);
  from_main<<<1, 32>>>(p);
  from_other<<<2, 16>>>(p);
  launch_more(p);
  return cudaDeviceSynchronize();
}
"""
OTHER = """
__device__ int step = 1;
static __device__ __noinline__ int own(int x) { return x + 2; }
__device__ __noinline__ int twice(int x) { return own(x) * 2 - 4; }
__global__ void from_other(int *p) { p[threadIdx.x] = own(threadIdx.x); }
void launch_more(int *p) { from_other<<<3, 16>>>(p); }
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    main, other = tmp_path / "main.cu", tmp_path / "other.cu"
    main.write_text(MAIN)
    other.write_text(OTHER)
    return main, other


def test_kernels_and_functions_may_lie_in_other_files(files: tuple[Path, Path]) -> None:
    found, ptx = captured(files[0], link=files[1:])
    assert found.status == 0
    assert [(one.kernel, one.grid[0]) for one in found.listed] == [
        ("_Z9from_mainPi", 1),
        ("_Z10from_otherPi", 2),
        ("_Z10from_otherPi", 3),
    ]
    (output,) = simulate(ptx, found.launches[0])
    assert np.array_equal(output.view(np.int32), np.arange(32) * 2 + 1 + 100)


def test_a_file_that_is_missing_is_named(files: tuple[Path, Path]) -> None:
    main, _ = files
    main.write_text("void helper();\n__global__ void k() {}\nint main() { helper(); }\n")
    with pytest.raises(UserError, match="helper") as caught:
        captured(main)
    assert "--link" in caught.value.hint


def test_two_definitions_of_one_name_are_told(files: tuple[Path, Path]) -> None:
    main, other = files
    other.write_text(OTHER + "__global__ void from_main(int *p) {}\n")
    with pytest.raises(UserError, match=r"main\.cu and other\.cu both define _Z9from_mainPi"):
        captured(main, link=[other])


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a shared runtime to link with."""
    folder = tmp_path_factory.mktemp("runtime")
    place_runtime(find(), folder)
    return folder


PROGRAM = """
#include <cuda_runtime.h>
#include <cstdlib>
__global__ void scale(float *p, float by) { p[threadIdx.x] *= by; }
int main(int count, char **words) {
  float *p;
  cudaMalloc(&p, 256);
  scale<<<count, 64>>>(p, atof(words[1]));
  return cudaGetLastError();
}
"""


def built(folder: Path, *flags: str | Path) -> Path:
    source = folder / "program.cu"
    source.write_text(PROGRAM)
    program = folder / "program"
    command = [find().nvcc, "-arch=sm_86", "-cudadevrt=none", "-o", program, source, *flags]
    subprocess.run(command, check=True, capture_output=True)
    return program


@pytest.mark.parametrize("packed", ["default", "speed", "none"])
def test_a_built_program_is_captured(tmp_path: Path, runtime: Path, packed: str) -> None:
    program = built(tmp_path, "-cudart=shared", "-L", runtime, f"-compress-mode={packed}")
    toolchain = find()
    target = open_device("sim:a10")[0]
    module = parse(read_ptx(toolchain, program, "sm_86"), "program.ptx")
    found = capture(toolchain, program, module, target.answers, ["1.5"])
    (launch,) = found.launches
    assert (launch.grid, launch.block) == ((2, 1, 1), (64, 1, 1))
    assert np.frombuffer(launch.parameters[8:], np.float32).tolist() == [1.5]


def test_what_a_built_program_lacks_is_told(tmp_path: Path, runtime: Path) -> None:
    toolchain = find()
    program = built(tmp_path, "-cudart=shared", "-L", runtime)
    with pytest.raises(UserError, match="PTX for sm_86 and above, not for sm_75"):
        read_ptx(toolchain, program, "sm_75")
    text = read_ptx(toolchain, program, "sm_90")
    without = Path(shutil.which("true") or "/bin/true")
    with pytest.raises(UserError, match="linked in statically") as caught:
        target = open_device("sim:a10")[0]
        capture(toolchain, without, parse(text, "program.ptx"), target.answers)
    assert "-cudart shared" in caught.value.hint
    with pytest.raises(UserError, match="holds no PTX"):
        read_ptx(toolchain, without, "sm_86")
