"""What a program's own main() launches, noted without a GPU."""

from __future__ import annotations

import dataclasses
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwatch.device import open_device
from gpuwatch.errors import UserError
from gpuwatch.launch import Capture, capture
from gpuwatch.launch.exchange import request
from gpuwatch.probe.catalogue import folder
from gpuwatch.ptx import parse
from gpuwatch.toolchain import compile_to_ptx, find

Run = Callable[..., Capture]


@pytest.fixture(autouse=True)
def _leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Temporary files go to a folder that must be empty afterwards."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield
    assert list(temporary.iterdir()) == []


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Captures a program given as source text or as the name of a shipped kernel."""

    def captured(
        program: str, *arguments: str, device: str = "sim:a10", timeout: float = 60.0
    ) -> Capture:
        source = folder("kernels") / f"{program}.cu"
        if "\n" in program:
            source = tmp_path / "program.cu"
            source.write_text(program)
        toolchain = find()
        target = open_device(device)[0]
        text = compile_to_ptx(toolchain, source, target.info.arch)
        module = parse(text, "program.ptx")
        return capture(toolchain, source, module, target.answers, arguments, timeout=timeout)

    return captured


@pytest.mark.parametrize(
    ("kernel", "device", "grid", "block"),
    [
        ("gemm", "sim:a10", (32, 43, 1), (32, 24, 1)),
        ("gemm", "sim:h200", (32, 32, 1), (32, 32, 1)),
        ("gemm_tiled", "sim:a10", (32, 32, 1), (32, 32, 1)),
    ],
)
def test_the_device_decides_the_launch_shape(
    run: Run, kernel: str, device: str, grid: tuple[int, ...], block: tuple[int, ...]
) -> None:
    found = run(kernel, device=device)
    (launch,) = found.launches
    assert (launch.grid, launch.block) == (grid, block)
    assert [buffer.nbytes for buffer in launch.buffers] == [4 << 20] * 3
    assert [place.offset for place in launch.relocations] == [0, 8, 16]
    assert launch.parameters[24:] == struct.pack("<3i", 1024, 1024, 1024)


def test_arguments_reach_the_program(run: Run) -> None:
    (launch,) = run("gemm", "96", "64", "32").launches
    assert launch.parameters[24:] == struct.pack("<3i", 96, 64, 32)


def test_structs_small_scalars_and_constants_arrive(run: Run) -> None:
    found = run("""
#include <cuda_runtime.h>
struct Pair { double x; char tag; };
__constant__ int table[2];
__global__ void mixed(char a, short b, Pair p, float *out) {
  out[threadIdx.x] = a + b + p.x + p.tag + table[0];
}
int main() {
  int values[2] = {7, 9};
  float *out;
  cudaMemcpyToSymbol(table, values, sizeof values);
  cudaMalloc(&out, 256);
  mixed<<<1, 32>>>(1, -2, Pair{2.5, 'q'}, out);
  return cudaDeviceSynchronize() != cudaSuccess;
}
""")
    (launch,) = found.launches
    assert launch.parameters[0:1] == b"\x01"
    assert struct.unpack_from("<h", launch.parameters, 2) == (-2,)
    assert struct.unpack_from("<dc", launch.parameters, 8) == (2.5, b"q")
    assert [place.offset for place in launch.relocations] == [24]
    assert list(launch.globals.values()) == [struct.pack("<2i", 7, 9)]


def test_every_launch_is_counted_and_each_kernel_kept_once(run: Run) -> None:
    found = run("""
__global__ void first(int n) {}
__global__ void second() {}
int main() {
  for (int i = 0; i < 5; ++i) first<<<i + 1, 32>>>(i);
  second<<<dim3(2, 3, 4), dim3(5, 6, 7), 128>>>();
}
""")
    assert sorted(found.counts.values()) == [1, 5]
    shapes = {(one.grid, one.block, one.shared_bytes) for one in found.launches}
    assert shapes == {((1, 1, 1), (32, 1, 1), 0), ((2, 3, 4), (5, 6, 7), 128)}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 0;", "launch"),
        ("volatile int *p = 0; *p = 1; k<<<1, 1>>>(); return 0;", "SIG"),
        ("cudaArray_t a; return cudaMallocArray(&a, 0, 1, 1, 0);", "cudaMallocArray"),
        ("k<<<1, 2048>>>(); return 0;", "failed: cudaErrorInvalidConfiguration, block 2048"),
    ],
    ids=["never launches", "crashes", "refused call", "impossible block"],
)
def test_a_program_that_gives_no_launch_is_told(run: Run, body: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        run("#include <cuda_runtime.h>\n__global__ void k() {}\nint main() { " + body + " }\n")
    assert words in caught.value.render()
    assert caught.value.hint


def test_a_program_that_never_ends_is_stopped(run: Run) -> None:
    with pytest.raises(UserError, match="1 s"):
        run("__global__ void k() {}\nint main() { for (volatile int i = 0;; ) {} }\n", timeout=1.0)


def test_a_program_that_waits_for_its_kernel_in_vain_is_captured(run: Run) -> None:
    found = run(
        """
__global__ void k(int *done) { *done = 1; }
int main() {
  volatile int *done;
  cudaMallocManaged((void **)&done, sizeof *done);
  while (!*done) k<<<1, 1>>>((int *)done);
}
""",
        timeout=1.0,
    )
    assert found.timed_out
    assert found.total > 1
    assert len(found.launches) == 1


def test_a_program_that_fails_after_its_launches_is_no_error(run: Run) -> None:
    found = run("__global__ void k() {}\nint main() { k<<<1, 32>>>(); return 3; }\n")
    assert found.status == 3
    assert len(found.launches) == 1


def test_a_file_without_kernels_is_told(run: Run) -> None:
    with pytest.raises(UserError, match="no kernel"):
        run("int main() { return 0; }\n")


def test_a_second_capture_comes_from_the_cache(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("gemm", "64", "64", "64")
    monkeypatch.setenv("PATH", str(Path(shutil.which("true") or "/bin/true").parent))
    again = run("gemm", "64", "64", "64")
    assert again.launches[0].parameters == first.launches[0].parameters


READS_A_SIZE = """
#include <stdio.h>
__global__ void k() {}
int main(int, char **argv) {
  int blocks = 0;
  FILE *file = fopen(argv[1], "r");
  if (!file || fscanf(file, "%d", &blocks) != 1) return 1;
  k<<<blocks, 32>>>();
}
"""
WAITS_FOR_A_FILE = """
#include <unistd.h>
__global__ void k() {}
int main(int, char **argv) {
  k<<<1, 32>>>();
  while (access(argv[1], F_OK)) usleep(1000);
  k<<<2, 32>>>();
}
"""


def test_a_capture_is_of_the_folder_that_it_ran_in(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for blocks in (3, 5):
        here = tmp_path / str(blocks)
        here.mkdir()
        (here / "size.txt").write_text(str(blocks))
        monkeypatch.chdir(here)
        found += run(READS_A_SIZE, "size.txt").launches
    assert [launch.grid[0] for launch in found] == [3, 5]


def test_a_capture_that_was_cut_off_is_no_answer_for_a_longer_time(
    run: Run, tmp_path: Path
) -> None:
    awaited = tmp_path / "awaited"
    cut = run(WAITS_FOR_A_FILE, str(awaited), timeout=3.0)
    assert (cut.timed_out, cut.total) == (True, 1)
    awaited.touch()
    whole = run(WAITS_FOR_A_FILE, str(awaited), timeout=60.0)
    assert (whole.timed_out, whole.total) == (False, 2)


@pytest.mark.parametrize(("device", "allowed"), [("rtx4090", 24), ("h200", 32)])
def test_the_device_says_how_many_blocks_an_sm_takes(device: str, allowed: int) -> None:
    """Where it does not, the compute capability does."""
    answers = open_device(f"sim:{device}")[0].answers
    assert answers.blocks_per_sm == allowed
    module = parse(".version 8.0\n.target sm_80\n.address_size 64\n", "empty.ptx")
    for told, blocks in ((allowed, allowed), (7, 7), (0, allowed)):
        text = request(dataclasses.replace(answers, blocks_per_sm=told), module, [], None)
        lines = [line for line in text.splitlines() if "blocks_per_sm" in line]
        assert lines == [f"answer blocks_per_sm {blocks}"]
