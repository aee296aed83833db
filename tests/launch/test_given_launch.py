"""Launches given by flags, by files and by forms."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import numpy as np
import pytest
from capturing import simulate

from gpuwatch.errors import UserError
from gpuwatch.launch import (
    KernelSignature,
    Launch,
    form_from_flags,
    form_from_toml,
    form_key,
    guess_form,
    launch_file,
    launch_from_form,
    read_ptx,
    read_signature,
    remember,
    remembered,
)
from gpuwatch.probe.catalogue import folder
from gpuwatch.ptx import parse
from gpuwatch.toolchain import demangle, find

GEMM_PTX = """\
.version 8.0
.target sm_86
.address_size 64
.visible .entry _Z4gemmPKfS0_Pfiif(
	.param .u64 _Z4gemm_param_0, .param .u64 _Z4gemm_param_1, .param .u64 _Z4gemm_param_2,
	.param .u32 _Z4gemm_param_3, .param .u32 _Z4gemm_param_4, .param .f32 _Z4gemm_param_5
)
{
	.reg .b32 %r<3>;
	mov.u32 %r1, %ctaid.y;
	ret;
}
"""
GEMM = "gemm(const float *, const float *, float *, int, int, float)"
GEMM_CU = """
// __global__ void gemm(int not_this, int one, int in, int a, int comment, int six);
const char *text = "__global__ void gemm(int nor, int this_, int a, int b, int c, int d)";
template <int T> __global__ void other(int n);
extern "C" __global__ void __launch_bounds__(256, 2) gemm(const float *__restrict__ A,
    const float *B /* the other */, float *C, int M, const int N = 3, float alpha = f(1, 2)) {}
"""
MIXED_PTX = """\
.version 8.0
.target sm_86
.address_size 64
.visible .entry mixed(
	.param .align 16 .b8 mixed_param_0[16], .param .align 8 .b8 mixed_param_1[24],
	.param .u8 mixed_param_2, .param .align 2 .b8 mixed_param_3[2], .param .u64 mixed_param_4
)
{
	ret;
}
"""


@pytest.fixture
def gemm(tmp_path: Path) -> KernelSignature:
    source = tmp_path / "gemm.cu"
    source.write_text(GEMM_CU)
    return read_signature(parse(GEMM_PTX, "gemm.ptx"), "_Z4gemmPKfS0_Pfiif", GEMM, [source])


@pytest.fixture
def mixed(tmp_path: Path) -> KernelSignature:
    source = tmp_path / "mixed.cu"
    source.write_text(
        'struct P { int n; float *p; char c; };\nextern "C" __global__ void mixed(float4 v, P p, '
        "bool flag, __half h, const unsigned long long *data) {}\n"
    )
    return read_signature(parse(MIXED_PTX, "mixed.ptx"), "mixed", "mixed", [source])


def by_flags(signature: KernelSignature, *arguments: str, grid: str = "1") -> Launch:
    return launch_from_form(signature, form_from_flags(grid, "32", "0", arguments))


def test_names_come_from_the_definition_in_the_source(gemm: KernelSignature) -> None:
    assert [one.name for one in gemm.parameters] == ["A", "B", "C", "M", "N", "alpha"]
    assert [one.type for one in gemm.parameters][2:4] == ["float *", "int"]
    assert gemm.axes == 2


def test_a_name_without_types_takes_them_from_the_source(mixed: KernelSignature) -> None:
    assert [(one.name, one.type) for one in mixed.parameters] == [
        ("v", "float4"),
        ("p", "P"),
        ("flag", "bool"),
        ("h", "__half"),
        ("data", "const unsigned long long *"),
    ]


def test_without_a_source_parameters_go_by_position(gemm: KernelSignature) -> None:
    bare = read_signature(parse(GEMM_PTX, "gemm.ptx"), gemm.kernel, gemm.kernel)
    launch = by_flags(
        bare, "0=f32[4]:ones", "1=@0+8", "2=null", "3=7", "_Z4gemm_param_4=-1", "5=1.5"
    )
    assert [(r.offset, r.buffer, r.addend) for r in launch.relocations] == [(0, 0, 0), (8, 0, 8)]
    assert struct.unpack("<QQQiif", launch.parameters) == (0, 0, 0, 7, -1, 1.5)


def test_flags_give_shapes_buffers_and_scalars_that_name_each_other(gemm: KernelSignature) -> None:
    launch = by_flags(
        gemm,
        "C=f64[M*N]",
        "A=f16[M]:iota",
        "B=i32[3]:-2",
        "N=2*M",
        "M=0x10",
        "alpha=-M/4",
        grid="cdiv(N, 32), (M+7)//8",
    )
    assert launch.grid == (1, 2, 1)
    assert struct.unpack_from("<iif", launch.parameters, 24) == (16, 32, -4.0)
    a, b, c = (launch.buffers[one.buffer] for one in launch.relocations)
    assert np.array_equal(a.view(np.float16), np.arange(16))
    assert b.view(np.int32).tolist() == [-2] * 3
    assert c.nbytes == 16 * 32 * 8
    assert not c.any()


def test_structs_vectors_and_small_types_are_given(mixed: KernelSignature) -> None:
    launch = by_flags(
        mixed,
        "v={f32:1, f32:2, f32:3, f32:4}",
        "p={i32: 5, f32[8]:ones, u8: 200}",
        "flag=true",
        "h=0.5",
        "data=u64[2]:iota",
    )
    assert struct.unpack_from("<4fi", launch.parameters) == (1, 2, 3, 4, 5)
    assert [(one.offset, one.buffer) for one in launch.relocations] == [(24, 0), (48, 1)]
    assert launch.parameters[32] == 200
    assert struct.unpack_from("<BxeI", launch.parameters, 40)[:2] == (1, 0.5)
    as_bytes = by_flags(
        mixed, f"0=bytes:{bytes(range(16)).hex()}", f"1=bytes:{'00' * 24}", "2=1", "3=1", "4=null"
    )
    assert as_bytes.parameters[:16] == bytes(range(16))


GOOD = ["A=f32[4]", "B=f32[4]", "C=f32[4]", "M=1", "N=1", "alpha=1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["A=f32[4]"], "gemm lacks B, C, M, N, alpha"),
        ([*GOOD, "M=2"], "M is given twice"),
        ([*GOOD, "X=1"], "no parameter 'X'"),
        (["A"], "has no ="),
        (["A=f32[4]:unifrom", *GOOD[1:]], "'unifrom' is no fill"),
        (["A=f33[4]", *GOOD[1:]], "'f33' is no type"),
        (["A=f32[0]", *GOOD[1:]], "a buffer of 0 elements"),
        (["A=f32[Q]", *GOOD[1:]], "no size is called Q"),
        (["A=i32[4]:normal", *GOOD[1:]], "normal is for floating point"),
        (["A=u8[4]:300", *GOOD[1:]], "300 does not fit into u8"),
        (["A=@Z", *GOOD[1:]], "no earlier parameter Z"),
        (["A=f32[4]:file=absent", *GOOD[1:]], "absent: No such file"),
        (["A=7", *GOOD[1:]], "'7' is no buffer"),
        ([*GOOD[:3], "M=1.5", *GOOD[4:]], "1.5 is no whole number"),
        ([*GOOD[:3], "M=i64:1", *GOOD[4:]], "i64 has 8 bytes, the parameter 4"),
        ([*GOOD[:3], "M=5000000000", *GOOD[4:]], "does not fit into i32"),
        ([*GOOD[:3], "M=__import__('os')", *GOOD[4:]], "calls __import__ in vain"),
        ([*GOOD[:3], "M={i32:1, i32:2}", *GOOD[4:]], "take 8 bytes, the parameter has 4"),
        ([*GOOD[:3], "M=bytes:0g", *GOOD[4:]], "not hexadecimal"),
        ([*GOOD[:3], "M=N", "N=M", GOOD[5]], "no size is called N"),
    ],
)
def test_an_argument_that_does_not_fit_is_told(
    gemm: KernelSignature, arguments: list[str], words: str
) -> None:
    with pytest.raises(UserError) as caught:
        by_flags(gemm, *arguments)
    assert words in caught.value.message
    assert caught.value.hint
    assert caught.value.status == 2


def test_the_caret_stands_under_the_mistake(gemm: KernelSignature) -> None:
    with pytest.raises(UserError) as caught:
        by_flags(gemm, "A=f32[2*Q]:ones", *GOOD[1:])
    at = caught.value.at
    assert at is not None
    assert (at.text, at.text[at.column - 1]) == ("--arg A=f32[2*Q]:ones", "Q")


def test_a_file_fills_a_buffer(gemm: KernelSignature, tmp_path: Path) -> None:
    data = np.arange(4, dtype=np.float32)
    data.tofile(tmp_path / "a.bin")
    launch = by_flags(gemm, f"A=f32[4]:file={tmp_path / 'a.bin'}", *GOOD[1:])
    assert np.array_equal(launch.buffers[0].view(np.float32), data)
    with pytest.raises(UserError, match="has 16 bytes, the buffer 20"):
        by_flags(gemm, f"A=f32[5]:file={tmp_path / 'a.bin'}", *GOOD[1:])


TOML = """\
[sizes]
M = 64
N = "2*M"  # twice
[gemm]
grid = ["cdiv(N, 32)", 8]
block = [32, 8]
shared = "4*M"
[gemm.args]
A = "f32[M*N]:uniform"
B = "f32[M*N]:normal"
C = "f32[M*N]:zeros"
M = "M"
N = "N"
alpha = 0.5
"""


def test_a_file_beside_the_source_gives_the_launch(gemm: KernelSignature, tmp_path: Path) -> None:
    source, file = tmp_path / "gemm.cu", tmp_path / "gemm.launch.toml"
    assert launch_file(source) is None
    file.write_text(TOML)
    assert launch_file(source) == file
    launch = launch_from_form(gemm, form_from_toml(file, gemm))
    assert (launch.grid, launch.block, launch.shared_bytes) == ((4, 8, 1), (32, 8, 1), 256)
    assert struct.unpack_from("<iif", launch.parameters, 24) == (64, 128, 0.5)
    assert {buffer.nbytes for buffer in launch.buffers} == {64 * 128 * 4}
    values, again = (
        one.buffers[0].view(np.float32)
        for one in (launch, launch_from_form(gemm, form_from_toml(file, gemm)))
    )
    assert 0 <= values.min() < 0.01 < 0.99 < values.max() < 1
    assert np.array_equal(values, again)


@pytest.mark.parametrize(
    ("old", "new", "words", "line", "column"),
    [
        ("M = 64", "M = ", "nvalid value", 2, 5),
        ('"2*M"', '"2*K"', "no size is called K", 3, 8),
        ("[gemm", "[gemn", "no table for the kernel gemm", 0, 0),
        ("M*N]:uniform", "M*Q]:uniform", "no size is called Q", 9, 12),
        ("shared", "shard", "'shard' is no part of a launch", 7, 10),
        ("block = [32, 8]", "", "gemm has no block", 4, 2),
        ("alpha = 0.5", "", "gemm lacks alpha", 0, 0),
        ("cdiv(N, 32)", "2 + cdiv(N)", "calls cdiv in vain", 5, 14),
    ],
)
def test_a_mistake_in_the_file_has_its_place(
    gemm: KernelSignature, tmp_path: Path, old: str, new: str, words: str, line: int, column: int
) -> None:
    file = tmp_path / "gemm.toml"
    file.write_text(TOML.replace(old, new) if old[0] == "[" else TOML.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        launch_from_form(gemm, form_from_toml(file, gemm))
    assert words in caught.value.message
    at = caught.value.at
    if line:
        assert at is not None
        assert (at.file, at.line, at.column) == ("gemm.toml", line, column)
    else:
        assert caught.value.hint


def test_a_guess_runs_over_the_sizes_and_can_be_launched(gemm: KernelSignature) -> None:
    form = guess_form(gemm)
    assert dict(form.arguments) == {
        "A": "f32[1048576]:uniform",
        "B": "f32[1048576]:uniform",
        "C": "f32[1048576]:zeros",
        "M": "1024",
        "N": "1024",
        "alpha": "1.0",
    }
    launch = launch_from_form(gemm, form)
    assert launch.grid[0] * launch.block[0] >= 1024
    assert launch.grid[1] * launch.block[1] >= 1024
    assert launch.threads_per_block == 256


TYPELESS = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry typeless(.param .u64 a, .param .u64 b, .param .u64 .ptr .align 4 c)
.reqntid 64, 2, 1
.reqnctapercluster 2, 1, 1
{
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [a];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.u64 %rd3, [b];
	ret;
}
"""


def test_ptx_alone_tells_pointers_block_and_cluster() -> None:
    signature = read_signature(parse(TYPELESS, "t.ptx"), "typeless", "typeless")
    assert [one.type for one in signature.parameters] == ["void *", ".u64", "void *"]
    form = guess_form(signature)
    assert dict(form.arguments) == {
        "0": "f32[1048576]:uniform",
        "1": "1",
        "2": "f32[1048576]:uniform",
    }
    launch = launch_from_form(signature, form)
    assert (launch.block, launch.cluster) == ((64, 2, 1), (2, 1, 1))
    for block, words in (("32", "compiled for blocks of 64x2x1"), ("64,32", "2,048 threads")):
        with pytest.raises(UserError, match=words):
            launch_from_form(signature, dataclasses.replace(form, block=block))


def test_a_guess_fills_structs_with_zeros(mixed: KernelSignature) -> None:
    launch = launch_from_form(mixed, guess_form(mixed))
    assert not any(launch.parameters[:40])


def test_a_given_launch_computes_what_the_kernel_says() -> None:
    toolchain = find()
    source = folder("kernels") / "gemm.cu"
    module = parse(read_ptx(toolchain, source, "sm_86"), "gemm.ptx")
    kernel = module.entries()[0].name
    signature = read_signature(module, kernel, demangle([kernel])[kernel], [source])
    arguments = ["A=f32[M*K]:uniform", "B=f32[K*N]:normal", "C=f32[M*N]", "M=40", "N=24", "K=16"]
    form = form_from_flags("cdiv(N,8),cdiv(M,8)", "8,8", "0", arguments)
    launch = launch_from_form(signature, form)
    a, b, c = (buffer.view(np.float32) for buffer in simulate(module.text, launch))
    product = a.reshape(40, 16).astype(float) @ b.reshape(16, 24).astype(float)
    assert np.allclose(c.reshape(40, 24), product, atol=1e-5)


def test_the_last_form_is_remembered_until_the_parameters_change(
    gemm: KernelSignature, mixed: KernelSignature, tmp_path: Path
) -> None:
    key = form_key("gemm.cu", gemm.kernel)
    (tmp_path / "gemm.toml").write_text(TOML)
    form = form_from_toml(tmp_path / "gemm.toml", gemm)
    remember(key, form)
    again = remembered(key, gemm)
    assert again is not None
    assert launch_from_form(gemm, again).parameters == launch_from_form(gemm, form).parameters
    assert remembered(key, mixed) is None
    assert remembered(form_key("other.cu", gemm.kernel), gemm) is None


@pytest.mark.parametrize(
    ("grid", "block", "words"),
    [
        ("4294967296", "32", "x of the grid is 4,294,967,296"),
        ("2147483648", "32", "x of the grid is 2,147,483,648"),
        ("1,65536", "32", "y of the grid is 65,536"),
        ("1,1,65536", "32", "z of the grid is 65,536"),
        ("1", "1,1,65", "z of the block is 65"),
    ],
)
def test_shapes_beyond_every_device_are_refused_where_they_stand(
    grid: str, block: str, words: str
) -> None:
    signature = read_signature(
        parse(TYPELESS.replace(".reqntid 64, 2, 1\n", ""), "t.ptx"), "typeless", "typeless"
    )
    form = dataclasses.replace(guess_form(signature), grid=grid, block=block)
    with pytest.raises(UserError, match=words) as caught:
        launch_from_form(signature, form)
    assert caught.value.at is not None and "limits are" in caught.value.hint
