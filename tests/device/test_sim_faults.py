"""Faults of simulated kernels: reported with their place, never fatal to the process."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sim_support import launch_of, ptx_of, run

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.device.sim.faults import readable
from gpuwatch.errors import UserError
from gpuwatch.ptx.model import Function, Module
from gpuwatch.ptx.source import SourceMap

SOURCE = r"""
extern "C" {
__global__ void wild(int *out, long long offset) { out[threadIdx.x + offset] = 1; }
__global__ void one_wild(int *out, long long offset) {
  out[threadIdx.x == 7 && blockIdx.x == 3 ? offset : threadIdx.x] = 1;
}
__global__ void misaligned(char *out) { *(int *)(out + 4 * threadIdx.x + 2) = 1; }
__global__ void shared_wild(int *out, int k) {
  __shared__ int x[64];
  x[threadIdx.x * k] = 1;
  __syncthreads();
  out[threadIdx.x] = x[threadIdx.x];
}
__global__ void endless(volatile int *out) { while (out[0] == 0) {} }
__global__ void trapped(int *out) { if (threadIdx.x == 5) asm volatile("trap;"); out[0] = 1; }
}
"""
HEAD = ".version 8.0\n.target sm_86\n.address_size 64\n"


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("faults")
    return ptx_of(folder, SOURCE)


def fails(ptx: str, kernel: str, arguments: list[np.ndarray | np.generic], grid: int = 1,
          timeout: float = 10.0) -> UserError:  # fmt: skip
    with pytest.raises(UserError) as caught:
        run(ptx, kernel, (grid, 1, 1), (32, 1, 1), arguments, timeout=timeout)
    assert caught.value.status == 1
    return caught.value


OUT = np.zeros(64, np.int32)


def test_kernels_are_named_without_their_parameters() -> None:
    names = {"_Z4wildPii": "wild", "_ZN4mine5inner4wildEPi": "mine::inner::wild", "plain": "plain"}
    assert {mangled: readable(mangled) for mangled in names} == names


def test_wild_store(ptx: str) -> None:
    error = fails(ptx, "wild", [OUT, np.int64(1 << 40)])
    assert "global address 0x" in error.message
    assert "st.global" in error.message
    assert error.at is not None
    assert error.at.file.endswith("kernel.cu")
    assert error.at.line == 3
    assert error.at.text == SOURCE.splitlines()[2]
    assert "kernel wild" in error.detail
    assert re.search(r"PTX line \d+: st.global", error.detail)


def test_a_fault_in_code_of_a_header_is_shown_where_the_kernel_calls_it(tmp_path: Path) -> None:
    (tmp_path / "tile.h").write_text(
        "__device__ __forceinline__ void put(int *at, int value) {\n  *at = value;\n}\n"
    )
    source = f'''#include "{tmp_path}/tile.h"
extern "C" __global__ void wild(int *out, long long offset) {{
  put(out + threadIdx.x + offset, 1);
}}
'''
    error = fails(ptx_of(tmp_path, source), "wild", [OUT, np.int64(1 << 40)])
    assert error.at is not None
    assert (Path(error.at.file).name, error.at.line) == ("kernel.cu", 3)
    assert f"inlined there: {tmp_path}/tile.h:2" in error.detail


def test_a_store_just_behind_a_buffer(ptx: str) -> None:
    assert (
        "behind the end of buffer 0 (256 bytes)" in fails(ptx, "wild", [OUT, np.int64(40)]).message
    )


def test_the_thread_at_fault_is_named(ptx: str) -> None:
    error = fails(ptx, "one_wild", [OUT, np.int64(1 << 40)], grid=5)
    assert "block (3, 0, 0), thread (7, 0, 0)" in error.detail


def test_misaligned(ptx: str) -> None:
    assert "misaligned address" in fails(ptx, "misaligned", [OUT]).message


def test_shared_memory_bounds(ptx: str) -> None:
    error = fails(ptx, "shared_wild", [OUT, np.int32(5)])
    assert "shared address" in error.message
    assert "thread (13, 0, 0)" in error.detail


def test_a_kernel_that_does_not_end(ptx: str) -> None:
    assert "did not end" in fails(ptx, "endless", [OUT], timeout=0.3).message


def test_trap(ptx: str) -> None:
    error = fails(ptx, "trapped", [OUT])
    assert "trap" in error.message
    assert "thread (5, 0, 0)" in error.detail


def test_unsupported_opcodes_are_listed_before_the_launch() -> None:
    text = HEAD + (
        ".visible .entry k()\n{\n\t.reg .b32 %r<9>;\n\tmov.u32 %r1, 0;\n"
        "\tfrobnicate.u32 %r2, %r1;\n\tadd.s32 %r1, %r1, 1;\n\twibble.u32 %r2, %r1;\n\tret;\n}\n"
    )
    with pytest.raises(UserError) as caught:
        run(text, "k", (1, 1, 1), (32, 1, 1), [])
    error = caught.value
    assert error.status == 2
    assert error.at is not None
    assert error.at.line == 8
    assert "frobnicate" in error.detail
    assert "wibble" in error.detail
    assert "line 10" in error.detail


def test_source_lines_are_read_once_for_all_that_is_unsupported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    build = SourceMap.__init__

    def noted(self: SourceMap, module: Module, function: Function) -> None:
        read.append(function.name)
        build(self, module, function)

    monkeypatch.setattr(SourceMap, "__init__", noted)
    fetch = "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];\n"
    text = HEAD + (
        ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<4>;\n.reg .f32 %f<5>;\n"
        ".reg .b64 %rd<4>;\n"
        + "".join(f".loc 1 {line} 0\n{fetch}" for line in range(1, 4))
        + 'ret;\n}\n.file 1 "k.cu"\n'
    )
    with pytest.raises(UserError) as caught:
        run(text, "k", (1, 1, 1), (32, 1, 1), [OUT])
    assert [f"k.cu:{line}" in caught.value.detail for line in range(1, 4)] == [True] * 3
    assert read == ["k"]


def test_a_sampler_that_is_not_used_is_no_obstacle() -> None:
    text = HEAD + (
        ".global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = linear };\n"
        ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [out];\nmov.u32 %r1, 7;\nst.global.u32 [%rd1], %r1;\nret;\n}\n"
    )
    (out,) = run(text, "k", (1, 1, 1), (1, 1, 1), [OUT]).buffers
    assert out[0] == 7


def test_unknown_kernel(ptx: str) -> None:
    with pytest.raises(UserError, match="no kernel 'absent'"):
        run(ptx, "absent", (1, 1, 1), (32, 1, 1), [])


def test_maps_are_reached_through_the_pointer_variable_and_start_at_zero() -> None:
    text = HEAD + (
        ".visible .global .align 8 .u64 gpuwatch_maps[2];\n"
        ".visible .entry k()\n{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n"
        "\tmov.u32 %r1, %ctaid.x;\n\tld.global.u64 %rd1, [gpuwatch_maps+8];\n"
        "\tmul.wide.u32 %rd2, %r1, 4;\n\tadd.s64 %rd1, %rd1, %rd2;\n"
        "\tred.global.add.u32 [%rd1], 1;\n\tret;\n}\n"
    )
    image = KernelImage("k", text, b"", 16, 0, "gpuwatch_maps")
    kernel = open_sim("a10").load(image, launch_of("k", (6, 1, 1), (40, 1, 1), []), [16, 24])
    for _ in range(2):
        kernel.run()
        assert kernel.read_map(1).view(np.uint32).tolist() == [40] * 6
        assert not kernel.read_map(0).any()
    kernel.close()


def test_buffers_start_from_the_launch_contents_each_time(ptx: str) -> None:
    image = KernelImage("wild", ptx, b"", 16, 0)
    launch = launch_of("wild", (1, 1, 1), (32, 1, 1), [OUT, np.int64(0)])
    kernel = open_sim("a10").load(image, launch, [])
    kernel.run()
    assert kernel.read_buffers()[0].view(np.int32).tolist() == [1] * 32 + [0] * 32
    assert not launch.buffers[0].any()
    kernel.close()


def test_variables_start_from_their_initial_values_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which are read from the text when the kernel is loaded, not at every launch."""
    text = HEAD + (
        ".visible .global .align 4 .u32 table[2] = {40, 2};\n"
        ".visible .entry k(.param .u64 out)\n{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n"
        "\tld.param.u64 %rd1, [out];\n\tld.global.u32 %r1, [table];\n"
        "\tld.global.u32 %r2, [table+4];\n\tadd.u32 %r1, %r1, %r2;\n"
        "\tst.global.u32 [table+4], %r1;\n\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n"
    )
    image = KernelImage("k", text, b"", 16, 0)
    kernel = open_sim("a10").load(image, launch_of("k", (1, 1, 1), (1, 1, 1), [OUT]), [])
    monkeypatch.delattr("gpuwatch.device.sim.initial.initial_bytes")
    for _ in range(2):
        kernel.run()
        assert kernel.read_buffers()[0].view(np.int32)[0] == 42
        assert kernel.read_variables()["table"].view(np.int32).tolist() == [40, 42]
    kernel.close()


POINTERS = HEAD + (
    ".visible .func nothing()\n{\n\tret;\n}\n"
    ".visible .entry k(.param .align 4 .b8 big[1024])\n{\n"
    "\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n"
    "\tmov.u64 %rd1, nothing;\n\tmov.b64 %rd2, big;\n\tcvta.param.u64 %rd2, %rd2;\n"
    "\tld.u32 %r1, [%rd2+1020];\n\tld.u32 %r2, [PLACE];\n\tret;\n}\n"
)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("%rd1", "global address 0x300000100 in no allocation"),
        ("%rd2+1024", "param address 0x400 outside the 1024 bytes of the kernel's parameters"),
    ],
)
def test_code_and_what_lies_behind_the_parameters_cannot_be_read(place: str, words: str) -> None:
    error = fails(POINTERS.replace("PLACE", place), "k", [])
    assert words in error.message
    assert error.at is not None and place in error.at.text
