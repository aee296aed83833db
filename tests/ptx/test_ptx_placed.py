"""Module variables at given addresses, and which of them a kernel uses."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Launch, ParameterSlot, Relocation
from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Module
from gpuwatch.ptx.placed import (
    constant_variables,
    global_variables,
    place_variables,
    unplaceable,
)
from gpuwatch.toolchain import assemble, find

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.ptx"))
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
VARIABLES = """.visible .global .align 16 .b8 v[64];
.global .align 4 .u32 w = 7;
.func (.param .b64 r) f(.param .b64 a) { ret; }
"""
REGISTERS = (
    ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>; .shared .b32 s[8];"
)
ADDRESSES = {"v": 0x7F00_0000_1000, "w": 0xFFFF_FFFF_FFFF_FFF0, "no_such_one": 1}

A, A4, A8 = (f"mov.u64 %gpv0, {0x7F00_0000_1000 + k:#x}; " for k in (0, 4, 8))
W = "mov.u64 %gpv0, 0xfffffffffffffff0; "
FORMS = {
    "mov.u64 %rd1, v;": f"{A}mov.u64 %rd1, %gpv0;",
    "mov.b64 %rd1, v+8;": f"{A8}mov.b64 %rd1, %gpv0;",
    "mov.u64 %rd1, v + 4*2;": f"{A8}mov.u64 %rd1, %gpv0;",
    "mov.b64 {%r1, %r2}, v;": f"{A}mov.b64 {{%r1, %r2}}, %gpv0;",
    "cvta.global.u64 %rd1, v;": f"{A}cvta.global.u64 %rd1, %gpv0;",
    "cvta.global.u64 %rd1, v+8;": f"{A8}cvta.global.u64 %rd1, %gpv0;",
    "add.s64 %rd1, v+8, %rd2;": f"{A8}add.s64 %rd1, %gpv0, %rd2;",
    "ld.global.u32 %r1, [v+4];": f"{A4}ld.global.u32 %r1, [%gpv0];",
    "ld.u32 %r1, [w];": f"{W}ld.u32 %r1, [%gpv0];",
    "ld.global.nc.u32 %r1, [ v + 4 ];": f"{A4}ld.global.nc.u32 %r1, [ %gpv0 ];",
    "ld.global.u32 %r1, [v+-4+0x8];": f"{A4}ld.global.u32 %r1, [%gpv0];",
    "ld.global.u32 %r1, [w+16];": "mov.u64 %gpv0, 0x0; ld.global.u32 %r1, [%gpv0];",
    "ldu.global.u32 %r1, [v];": f"{A}ldu.global.u32 %r1, [%gpv0];",
    "ld.global.v2.f32 {%f1, %f2}, [v+8];": f"{A8}ld.global.v2.f32 {{%f1, %f2}}, [%gpv0];",
    "ld\n.global .u32 %r1, [v];": f"{A}ld\n.global .u32 %r1, [%gpv0];",
    "st.global.u32 [v], %r1;": f"{A}st.global.u32 [%gpv0], %r1;",
    "st.global.v4.u32 [v], {%r1, %r2, 3, %r4};": (
        f"{A}st.global.v4.u32 [%gpv0], {{%r1, %r2, 3, %r4}};"
    ),
    "st.global.u64 [v+8], v+8;": f"{A8}st.global.u64 [%gpv0], %gpv0;",
    "st.global.u64 [v], v+8;": (f"{A}mov.u64 %gpv1, 0x7f0000001008; st.global.u64 [%gpv0], %gpv1;"),
    "atom.global.add.u32 %r1, [v], 1;": f"{A}atom.global.add.u32 %r1, [%gpv0], 1;",
    "atom.cas.b32 %r1, [w], 1, %r2;": f"{W}atom.cas.b32 %r1, [%gpv0], 1, %r2;",
    "red.global.add.u32 [v+8], 1;": f"{A8}red.global.add.u32 [%gpv0], 1;",
    "prefetch.global.L2 [v];": f"{A}prefetch.global.L2 [%gpv0];",
    "prefetchu.L1 [v];": f"{A}prefetchu.L1 [%gpv0];",
    "cp.async.ca.shared.global [s], [v], 16;": f"{A}cp.async.ca.shared.global [s], [%gpv0], 16;",
    "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [v, {%r1}];": (
        f"{A}cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%gpv0, {{%r1}}];"
    ),
    "@%p1 ld.global.u32 %r1, [v];": f"{A}@%p1 ld.global.u32 %r1, [%gpv0];",
    "@!%p1 st.global.u32 [w], 5;": f"{W}@!%p1 st.global.u32 [%gpv0], 5;",
    "again: red.global.add.u32 [v], 1;": f"again: {A}red.global.add.u32 [%gpv0], 1;",
    "ld.global.u32 %r1, [v/* v */+4]; // v": f"{A4}ld.global.u32 %r1, [%gpv0/* v */]; // v",
    "ld.global.u32 %r1, // of v\n [v // +4\n +4];": (
        f"{A4}ld.global.u32 %r1, // of v\n [%gpv0// +4\n];"
    ),
    "{ .param .b64 a; .param .b64 b; st.param.b64 [a+0], v+8; call.uni (b), f, (a); }": (
        f"{{ .param .b64 a; .param .b64 b; {A8}st.param.b64 [a+0], %gpv0; call.uni (b), f, (a); }}"
    ),
}
BY_FORM_ONLY = {
    "call.uni f, (v);": f"{A}call.uni f, (%gpv0);",
    "st.param.b64 [param0], v;": f"{A}st.param.b64 [param0], %gpv0;",
}
"""Operands that ptxas 13.0 wants in a register already."""
UNTOUCHED = (
    "ld.shared.u32 %r1, [s+4]; // v and w",
    "{ .shared .b32 v; st.shared.b32 [v], 1; }",
    "{ .reg .b64 v; mov.u64 v, 1; st.global.u64 [v+8], v; }",
    ".reg .b64 v<3>; mov.u64 v1, 1;",
    "{ .reg .pred w; setp.eq.u32 w, 1, %r1; @w ret; }",
    "v: mov.u32 %r1, 1; bra v;",
    '.pragma "v";',
    "call.uni f, (%rd1);",
)


def module_of(body: str, parameters: str = "") -> Module:
    kernel = f".visible .entry k({parameters})\n{{\n{REGISTERS}\n{body}\nret;\n}}\n"
    return parse(HEAD + VARIABLES + kernel, "placed.ptx")


def placed_body(body: str, parameters: str = "") -> str:
    """The body after placing, without the declaration of the registers in front."""
    text = place_variables(module_of(body, parameters), "k", ADDRESSES)
    head, registers, rest = text.partition(REGISTERS + "\n")
    assert registers
    assert re.search(r"\{( \.reg \.b64 %gpv<[12]>;)?\n$", head)
    return rest.removesuffix("\nret;\n}\n")


@pytest.mark.parametrize(("before", "after"), [*FORMS.items(), *BY_FORM_ONLY.items()])
def test_forms(before: str, after: str) -> None:
    assert placed_body(before) == after


def test_every_form_assembles() -> None:
    kernels = [
        f".visible .entry k{n}()\n{{\n{REGISTERS}\n{body}\nret;\n}}\n"
        for n, body in enumerate(FORMS)
    ]
    text = HEAD + VARIABLES + "".join(kernels)
    assemble(find(), text, "sm_90", "k0")
    for n, _ in enumerate(FORMS):
        text = place_variables(parse(text), f"k{n}", ADDRESSES)
    assemble(find(), text, "sm_90", "k0")
    assert not any(global_variables(parse(text), f"k{n}") for n, _ in enumerate(FORMS))


@pytest.mark.parametrize("body", UNTOUCHED)
def test_what_has_the_same_name_stays(body: str) -> None:
    assert placed_body(body) == body
    assert global_variables(module_of(body), "k") == ()


def test_parameters_hide_a_variable() -> None:
    body = "ld.param.u32 %r1, [v]; ld.global.u32 %r2, [w];"
    expected = f"ld.param.u32 %r1, [v]; {W}ld.global.u32 %r2, [%gpv0];"
    assert placed_body(body, ".param .u32 v") == expected


def test_names_mean_what_they_do_at_their_place() -> None:
    body = "{ ld.global.u32 %r1, [w]; .shared .b32 w; ld.shared.u32 %r1, [w]; }\nst.u32 [w], 1;"
    assert placed_body(body) == (
        f"{{ {W}ld.global.u32 %r1, [%gpv0]; .shared .b32 w; ld.shared.u32 %r1, [w]; }}\n"
        f"{W.replace('gpv0', 'gpv1')}st.u32 [%gpv1], 1;"
    )


def test_a_variable_may_be_called_like_an_instruction() -> None:
    text = HEAD + ".global .u32 ret; .entry k() { st.global.u32 [ret], 1; @%p ret; ret; }"
    assert place_variables(parse(text), "k", {"ret": 16}).endswith(
        "{ .reg .b64 %gpv<1>; mov.u64 %gpv0, 0x10; st.global.u32 [%gpv0], 1; @%p ret; ret; }"
    )


def test_new_registers_have_names_of_their_own() -> None:
    body = "/* %gpv */ st.global.u32 [v], 1;"
    text = place_variables(module_of(body), "k", ADDRESSES)
    assert " .reg .b64 %gpv2_<1>;" in text
    assert "st.global.u32 [%gpv2_0], 1;" in text


REACHING = """
.global .u32 direct, by_pointer, elsewhere, in_alias, behind = 1, plain[2];
.global .u64 table[2] = {generic(behind), virtual};
.global .texref image;
.const .u64 pointer = generic(plain)+4;
.const .u32 other;
.global .samplerref unused;
.func leaf() { st.global.u32 [direct], 1; ret; }
.func called() { call leaf; ret; }
.func virtual() { st.global.u32 [by_pointer], 1; ret; }
.func aliased() { st.global.u32 [in_alias], 1; ret; }
.func unreached() { st.global.u32 [elsewhere], 1; ret; }
.alias second, aliased;
.entry k()
{
  .reg .b64 %rd<4>; .reg .f32 %f<5>; .reg .b32 %r1;
  .global .u32 own;
  mov.u64 %rd1, table;
  ld.const.u64 %rd2, [pointer];
  st.global.u32 [own], 2;
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}];
  call called;
  call second;
  ret;
}
.entry l() { st.global.u32 [elsewhere], 2; ret; }
"""


def test_what_a_kernel_uses() -> None:
    module = parse(HEAD + REACHING)
    found = global_variables(module, "k")
    assert found == ("direct", "by_pointer", "in_alias", "behind", "plain", "table")
    assert constant_variables(module, "k") == ("pointer",)
    assert unplaceable(module, "k") == ("image", "own")
    assert global_variables(module, "l") == ("elsewhere",)
    assert constant_variables(module, "l") == unplaceable(module, "l") == ()


def test_functions_within_reach_are_changed() -> None:
    module = parse(HEAD + REACHING)
    addresses = dict.fromkeys([*global_variables(module, "k"), "elsewhere", "image", "own"], 4096)
    text = place_variables(module, "k", addresses)
    used = "mov.u64 %gpv0, 0x1000; st.global.u32 [%gpv0], 1; ret; }"
    for name in ("leaf", "virtual", "aliased"):
        assert f".func {name}() {{ .reg .b64 %gpv<1>; {used}" in text
    assert "mov.u64 %gpv0, 0x1000; mov.u64 %rd1, %gpv0;" in text
    assert ".func unreached() { st.global.u32 [elsewhere], 1; ret; }" in text
    assert ".entry l() { st.global.u32 [elsewhere], 2; ret; }" in text
    assert "st.global.u32 [own], 2;" in text
    assert "generic(behind)" in text


def test_a_kernel_may_name_another() -> None:
    text = HEAD + REACHING.replace("call second;", "mov.u64 %rd1, l;")
    assert "elsewhere" in global_variables(parse(text), "k")


def test_errors() -> None:
    with pytest.raises(UserError, match=r"placed\.ptx has no kernel g"):
        place_variables(module_of(""), "g", {})
    module = module_of("")
    module.address_size = 32
    with pytest.raises(UserError, match="32 bits"):
        place_variables(module, "k", {})


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_corpus_needs_no_variable_afterwards(path: Path) -> None:
    with path.open(newline="") as file:
        text = file.read()
    for kernel in parse(text).entries():
        module = parse(text)
        needed = global_variables(module, kernel.name)
        placed = place_variables(module, kernel.name, dict.fromkeys(needed, 1 << 40))
        assert placed == text or needed
        assert placed.count("\n") == text.count("\n")
        assert global_variables(parse(placed), kernel.name) == ()


@given(st.lists(st.sampled_from([*FORMS, *UNTOUCHED[:3], "// v", "add.s32 %r1, %r1, 1;"])))
def test_the_rest_of_the_text_stays(bodies: list[str]) -> None:
    body = "\n".join(f"{{\n{one}\n}}" for one in bodies)
    module = module_of(body)
    text = place_variables(module, "k", ADDRESSES)
    expected = "\n".join(f"{{\n{FORMS.get(one, one)}\n}}" for one in bodies)
    assert re.sub(r"%gpv\d+", "%gpv", text.partition(REGISTERS)[2]) == (
        "\n" + re.sub(r"%gpv\d+", "%gpv", expected) + "\nret;\n}\n"
    )
    assert place_variables(parse(text), "k", ADDRESSES) == text
    taken = re.findall(r"mov\.u64 (%gpv\d+),", text)
    assert taken == [f"%gpv{k}" for k, _ in enumerate(taken)]


COUNTING = """
.visible .global .align 4 .u32 counts[4] = {1, 2, 3, 4};
.func (.param .b32 r) last(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [x];
  ld.global.u32 %r2, [counts+12];
  add.u32 %r1, %r1, %r2;
  st.param.b32 [r], %r1;
  ret;
}
.visible .entry count(.param .u64 memory, .param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [memory];
  st.global.u64 [%rd1], %rd2;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p, %r1, 16;
  @%p red.global.add.u32 [counts+4], 1;
  bar.sync 0;
  {
    .param .b32 x; .param .b32 r;
    cvta.global.u64 %rd3, counts;
    ld.u32 %r2, [%rd3+4];
    st.param.b32 [x], %r2;
    call.uni (r), last, (x);
    ld.param.b32 %r3, [r];
  }
  st.global.u32 [%rd1+8], %r3;
  ret;
}
"""


def counted(text: str) -> tuple[NDArray[np.uint32], int, int]:
    """Contents of the first buffer after a run, its address, and the kernel's result."""
    buffers = [np.arange(10, 74, dtype=np.uint32).view(np.uint8), np.zeros(16, np.uint8)]
    slots = tuple(ParameterSlot(name, ".b64", k, 8) for name, k in (("memory", 0), ("out", 8)))
    relocations = (Relocation(0, 0, 0), Relocation(8, 1, 0))
    launch = Launch("count", (1, 1, 1), (32, 1, 1), 0, slots, bytes(16), relocations, buffers)
    loaded = open_sim("a10").load(KernelImage("count", text, b"", 32, 0), launch, ())
    try:
        loaded.run()
        memory, out = loaded.read_buffers()
    finally:
        loaded.close()
    return (
        memory.view(np.uint32),
        int(out[:8].view(np.uint64)[0]),
        int(out[8:12].view(np.uint32)[0]),
    )


def test_a_kernel_uses_the_memory_at_the_address() -> None:
    text = HEAD + COUNTING
    memory, address, result = counted(text)
    assert result == 2 + 16 + 4
    assert memory[:4].tolist() == [10, 11, 12, 13]
    placed = place_variables(parse(text), "count", {"counts": address + 32})
    memory, _, result = counted(placed)
    assert memory[8:12].tolist() == [18, 19 + 16, 20, 21]
    assert result == 19 + 16 + 21
