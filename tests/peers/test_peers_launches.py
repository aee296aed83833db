"""Targets and launches with which an earlier probing tool fails; here they work.

The numbers are those of the list that these tests follow.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from peer_support import program

from gpuwatch.device import open_device
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.instrument import weave
from gpuwatch.launch import Capture, capture
from gpuwatch.probe import load
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, compile_to_ptx, find


def captured(source: Path, text: str, device: str = "sim:a10") -> Capture:
    """What the program `text` launches."""
    source.write_text(text)
    target, _ = open_device(device)
    module = parse(compile_to_ptx(find(), source, target.info.arch), "program.ptx")
    return capture(find(), source, module, target.answers)


def report(source: Path, text: str, device: str = "sim:a10", probe: str = "block_sched") -> None:
    """Watches the first kernel of the program `text`: every warp recorded, outputs the same."""
    source.write_text(text)
    session = Session(Options(str(source), device=device, probe=probe))
    try:
        session.prepare()
        frame = session.frame()
    finally:
        session.close()
    assert frame.outputs_identical
    assert (frame.records, frame.missing, frame.dropped) == (frame.warps, 0, 0)


PROGRAM = """
__device__ int between = 4;
__global__ void one(int *out) { out[threadIdx.x] = between + threadIdx.x; }
__device__ int further[3] = {1, 2, 3};
__global__ void two(int *out) { out[threadIdx.x] = further[threadIdx.x % 3]; }
int main() {
  int *out;
  cudaMalloc(&out, 400);
  one<<<2, 50>>>(out);
  two<<<2, 50>>>(out);
}
"""


@pytest.mark.parametrize("flags", [("-G",), ("-arch=sm_90a",), ("-lineinfo",)])
def test_peer_24_debug_code_line_information_and_newer_targets(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    source = tmp_path / "both.cu"
    source.write_text(PROGRAM)
    arch = "sm_90a" if "-arch=sm_90a" in flags else "sm_86"
    given = tuple(flag for flag in flags if not flag.startswith("-arch"))
    text = compile_to_ptx(find(), source, arch, given)
    module = parse(text)
    for entry in module.entries():
        woven = weave(module, entry.name, load("block_sched"))
        assert assemble(find(), woven.text, arch, entry.name).registers > 0
        locations = re.findall(r"^\s*\.loc\b.*", text, re.MULTILINE)
        assert re.findall(r"^\s*\.loc\b.*", woven.text, re.MULTILINE) == locations
        assert [v.name for v in module.variables] == [
            v.name for v in parse(woven.text).variables if v.name not in woven.pointer_variable
        ]


@pytest.mark.parametrize("flags", [("-G",), ("-lineinfo",)])
def test_peer_24_debug_code_and_globals_between_kernels_run(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    source = tmp_path / "both.cu"
    source.write_text(PROGRAM)
    session = Session(Options(str(source), device="sim:a10", nvcc_flags=flags))
    try:
        for name in ("one", "two"):
            session.select(kernel=name)
            frame = session.frame()
            assert frame.outputs_identical
            assert (frame.records, frame.missing) == (4, 0)
    finally:
        session.close()


def test_peer_25_launches_by_cudaLaunchKernelEx(tmp_path: Path) -> None:  # noqa: N802
    found = captured(
        tmp_path / "extended.cu",
        """
__global__ void scaled(int *out, short factor) { out[threadIdx.x] = factor * threadIdx.x; }
int main() {
  int *out;
  cudaMalloc(&out, 4 * 96);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(96);
  config.dynamicSmemBytes = 512;
  return cudaLaunchKernelEx(&config, scaled, out, short(-3)) != cudaSuccess;
}
""",
    )
    (launch,) = found.launches
    assert found.status == 0
    assert (launch.grid, launch.block, launch.shared_bytes) == ((1, 1, 1), (96, 1, 1), 512)
    assert launch.parameters[8:10] == np.int16(-3).tobytes()
    assert not launch.cooperative


def test_peer_25_cooperative_launches(tmp_path: Path) -> None:
    found = captured(
        tmp_path / "cooperative.cu",
        """
__global__ void both(int *out) { out[blockIdx.x] = 1; }
int main() {
  int *out;
  cudaMalloc(&out, 64);
  void *arguments[] = {&out};
  return cudaLaunchCooperativeKernel(both, dim3(3), dim3(32), arguments, 0, 0) != cudaSuccess;
}
""",
    )
    (launch,) = found.launches
    assert found.status == 0
    assert launch.cooperative
    assert launch.grid == (3, 1, 1)


def test_peer_25_launches_in_a_graph(tmp_path: Path) -> None:
    found = captured(
        tmp_path / "graph.cu",
        """
__global__ void step(int *out, int by) { out[threadIdx.x] += by; }
int main() {
  int *out;
  cudaMalloc(&out, 4 * 32);
  cudaMemset(out, 0, 4 * 32);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  step<<<1, 32, 0, stream>>>(out, 9);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  for (int k = 0; k < 3; ++k) cudaGraphLaunch(ready, stream);
  return cudaStreamSynchronize(stream) != cudaSuccess;
}
""",
    )
    assert found.status == 0
    assert found.launches[0].parameters[8:12] == np.int32(9).tobytes()
    assert list(found.counts.values()) == [3]


def test_peer_26_a_packed_argument_buffer(tmp_path: Path) -> None:
    found = captured(
        tmp_path / "packed.cu",
        """
#include <cstring>
#include <cuda.h>
struct Pair { double x; char tag; };
__global__ void mixed(char a, double b, int *out, short c, Pair d) {
  out[threadIdx.x] = a + int(b) + c + int(d.x) + d.tag;
}
int main() {
  int *out;
  cudaMalloc(&out, 4 * 32);
  struct { char a; double b; int *out; short c; Pair d; } packed = {1, 2.5, out, -7, {8.0, 'q'}};
  size_t bytes = sizeof packed;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  cudaFunction_t function;
  cudaGetFuncBySymbol(&function, (const void *)mixed);
  return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, nullptr, extra) != CUDA_SUCCESS;
}
""",
    )
    (launch,) = found.launches
    block = launch.parameters
    assert block[0:1] == b"\x01"
    assert block[8:16] == np.float64(2.5).tobytes()
    assert block[24:26] == np.int16(-7).tobytes()
    assert block[32:41] == np.float64(8.0).tobytes() + b"q"
    assert [place.offset for place in launch.relocations] == [16]


def test_peer_27_cuda_13_compiles_captures_and_runs(tmp_path: Path) -> None:
    assert find().version.startswith("13.")
    report(
        tmp_path / "thirteen.cu",
        """
#include <cuda_runtime.h>
static_assert(CUDART_VERSION >= 13000, "headers of CUDA 13");
__global__ void fill(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
int main() {
  int *out;
  cudaMalloc(&out, 4 * 480);
  fill<<<10, 48>>>(out);
}
""",
    )


FORBIDDEN = {
    "a store": "st.global.u64 [%NR0], %NR1;",
    "a load": "ld.global.u64 %NR1, [%NR0];",
    "an atomic": "red.global.add.u64 [%NR0], %NR1;",
    "a branch": "bra AWAY;",
    "a return": "ret;",
    "a barrier": "bar.sync 0;",
    "a register of the kernel": "mov.u32 %r1, 0;",
    "a trap": "trap;",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_peer_27_the_verifier_refuses(what: str) -> None:
    text = f"""
regs = 2
[probe.bad]
level = "thread"
pos = "kernel"
before = '''
mov.u64 %NR1, 1;
{FORBIDDEN[what]}
'''
"""
    with pytest.raises(UserError) as caught:
        program(text)
    assert caught.value.at is not None
    assert caught.value.at.line == 8
    assert caught.value.hint
