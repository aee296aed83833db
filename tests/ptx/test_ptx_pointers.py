"""Through which parameters a kernel may read."""

from __future__ import annotations

import pytest

from gpuwatch.ptx import parse
from gpuwatch.ptx.pointers import parameters_read_through
from gpuwatch.toolchain import compile_to_ptx, find

HEAD = """\
.version 8.0
.target sm_80
.address_size 64
.global .u32 table[4];
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{
	.reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<2>;
	ld.param.u64 %rd1, [a];
	ld.param.u64 %rd2, [b];
	ld.param.u32 %r1, [n];
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
"""


def _through(body: str) -> frozenset[str] | None:
    (function,) = parse(HEAD + body + "\tret;\n}\n").functions
    return parameters_read_through(function)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("ld.global.u32 %r2, [%rd4]; st.global.u32 [%rd5], %r2;", {"a", "n"}),
        ("st.global.u32 [%rd4], %r1; st.global.u32 [%rd5], %r1;", set()),
        ("red.global.add.u32 [%rd5], %r1;", {"b", "n"}),
        ("ld.u32 %r2, [%rd4+8];", {"a", "n"}),
        ("ld.global.u32 %r2, [table+4]; st.global.u32 [%rd5], %r2;", {"table"}),
        ("mov.u64 %rd6, table; ld.global.u32 %r2, [%rd6];", {"table"}),
        ("@%p1 mov.u64 %rd1, %rd2; ld.global.u32 %r2, [%rd1];", {"a", "b"}),
    ],
)
def test_the_parameters_of_addresses(body: str, names: set[str]) -> None:
    assert _through(body) == names


@pytest.mark.parametrize(
    "body",
    [
        "ld.global.u64 %rd6, [%rd4]; ld.global.u32 %r2, [%rd6];",
        "mov.u64 %rd6, 4096; ld.global.u32 %r2, [%rd6];",
    ],
)
def test_an_address_from_elsewhere_cannot_be_told(body: str) -> None:
    assert _through(body) is None


def test_the_output_of_the_article_s_kernel_is_only_written() -> None:
    from gpuwatch.probe.catalogue import folder

    for name in ("gemm", "gemm_tiled"):
        text = compile_to_ptx(find(), folder("kernels") / f"{name}.cu", "sm_86")
        (kernel,) = parse(text).entries()
        through = parameters_read_through(kernel)
        assert through is not None
        pointers = [one.name for one in kernel.parameters if one.type == "u64"]
        assert [one in through for one in pointers] == [True, True, False]
