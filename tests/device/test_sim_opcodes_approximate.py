"""Approximations are near the function that they stand for, and a kernel's notes name them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from random_programs_floats import APPROXIMATE_FORMS
from sim_support import launch_of, run

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.device.sim.exactness import FUSIBLE, inexact
from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Instruction

_Values = NDArray[np.float64]
_FUNCTIONS: dict[str, Callable[[_Values], _Values]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "rcp": np.reciprocal,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "div": lambda x: x / 3,
}
_TYPES = {"f32": ("b32", 1e-5), "f64": ("b64", 1e-6), "f16": ("b16", 2e-3), "bf16": ("b16", 1e-2),
          "f16x2": ("b32", 2e-3), "bf16x2": ("b32", 1e-2)}  # fmt: skip
_HEAD = ".version 8.4\n.target sm_90\n.address_size 64\n"


def encoded(kind: str, values: _Values) -> NDArray[np.generic]:
    """Values as patterns of a type; packed types hold each value twice."""
    element = kind.removesuffix("x2")
    if element == "bf16":
        patterns = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        patterns = values.astype(f"f{int(element[1:]) // 8}")
    return np.repeat(patterns, 2) if kind.endswith("x2") else patterns


def decoded(kind: str, patterns: NDArray[np.generic]) -> _Values:
    if kind.startswith("bf16"):
        return (patterns.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(float)
    return patterns.astype(float)


@pytest.mark.parametrize("opcode", [form.split()[0] for form in APPROXIMATE_FORMS])
def test_near_the_function(opcode: str) -> None:
    kind = opcode.rsplit(".", 1)[1]
    held, tolerance = _TYPES[kind]
    size = int(held[1:]) // 8
    values = np.linspace(0.25, 4.0, 32)
    second = ", %c" if opcode.startswith("div") else ""
    text = f"""{_HEAD}.visible .entry k(.param .u64 data) {{
.reg .b64 %q; .reg .b64 %o; .reg .b32 %t; .reg .{held} %a; .reg .{held} %b; .reg .{held} %c;
ld.param.u64 %q, [data]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, {size}; add.u64 %q, %q, %o;
{"mov.b32 %c, 0f40400000;" if second else ""}
ld.global.{held} %a, [%q]; {opcode} %b, %a{second}; st.global.{held} [%q], %b; ret;
}}
"""
    given = encoded(kind, values)
    (out,) = run(text, "k", (1, 1, 1), (32, 1, 1), [given]).buffers
    wanted = _FUNCTIONS[opcode.split(".")[0]](decoded(kind, given))
    np.testing.assert_allclose(decoded(kind, out), wanted, rtol=tolerance, atol=tolerance)


def test_gross_approximations_of_f64_have_no_low_word() -> None:
    text = f"""{_HEAD}.visible .entry k(.param .u64 data) {{
.reg .b64 %q; .reg .f64 %a;
ld.param.u64 %q, [data]; ld.global.f64 %a, [%q]; rcp.approx.ftz.f64 %a, %a;
st.global.f64 [%q], %a; ret;
}}
"""
    (out,) = run(text, "k", (1, 1, 1), (1, 1, 1), [np.array([3.0])]).buffers
    assert out.view(np.uint64)[0] & 0xFFFFFFFF == 0
    assert out[0] == pytest.approx(1 / 3, rel=1e-6)


def test_notes_name_what_is_not_exact() -> None:
    text = f"""{_HEAD}.visible .entry k() {{
.reg .f32 %f<4>; .reg .b32 %r<4>;
ex2.approx.f32 %f0, %f1; div.full.f32 %f0, %f1, %f2; sqrt.rn.f32 %f0, %f1;
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%f0,%f1,%f2,%f3}}, {{%r0,%r1}}, {{%r2}},
  {{%f0,%f1,%f2,%f3}};
ret;
}}
"""
    launch = launch_of("k", (1, 1, 1), (32, 1, 1), [])
    loaded = open_sim("a10").load(KernelImage("k", text, b"", 32, 0), launch, [])
    notes = loaded.notes
    loaded.close()
    assert "not bit-exact to hardware: div.full, ex2.approx, tensor-core sums" in notes


def test_integer_products_are_exact() -> None:
    text = f"""{_HEAD}.visible .entry k() {{
.reg .b32 %r<9>;
mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {{%r0,%r1}}, {{%r2}}, {{%r3}}, {{%r4,%r5}};
ret;
}}
"""
    body = parse(text).entries()[0].body or []
    assert inexact([s for s in body if isinstance(s, Instruction)]) == ()


@pytest.mark.parametrize(
    ("code", "fusible"),
    [
        ("mul.f32 %f1, %f2, %f3; mul.f32 %f4, %f5, %f6; sub.f32 %f7, %f1, %f4;", True),
        ("mul.f64 %f1, %f2, %f3; add.f64 %f7, %f2, %f1;", True),
        ("mul.rn.f32 %f1, %f2, %f3; add.f32 %f7, %f2, %f1;", False),
        ("mul.f32 %f1, %f2, %f3; add.rn.f32 %f7, %f2, %f1;", False),
        ("mul.f32 %f1, %f2, %f3; add.f32 %f7, %f2, %f1; st.global.f32 [%rd1], %f1;", False),
        ("mul.f32 %f1, %f2, %f3; mul.f32 %f7, %f2, %f1;", False),
    ],
)
def test_products_and_sums_that_ptxas_may_fuse_are_named(code: str, fusible: bool) -> None:
    """What ptxas does with each for sm_90: one fma, or a product and a sum."""
    registers = ".reg .f32 %f<9>; .reg .b64 %rd<3>;"
    body = (
        parse(f"{_HEAD}.visible .entry k() {{\n{registers}\n{code}\nret;\n}}\n").entries()[0].body
    )
    assert inexact([s for s in body or [] if isinstance(s, Instruction)]) == (
        (FUSIBLE,) if fusible else ()
    )
