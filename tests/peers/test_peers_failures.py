"""Cases in which an earlier probing tool fails; here they work.

The numbers are those of the list that these tests follow.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from peer_support import HEADER, OPENING, PROBE_HEADER, STORE, kernel, program, watch

from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.instrument import weave
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find

THREAD_VALUE = """
@Map(level="thread", size=8)
class kept:
    value: gl.{type}

value: gl.{type} = {initial}

@probe(pos="{position}", level="thread", before={before})
def at_access():
    {statement}

@probe(pos="kernel", level="thread")
def leave():
    kept.save(value)
"""


def values_of(
    body: str,
    statement: str,
    position: str = "ld.global",
    *,
    kind: str = "u64",
    initial: int = 0,
    before: bool = False,
) -> list[float]:
    """`value` of each of 64 threads at the end, after `statement` at each access of `body`."""
    text = THREAD_VALUE.format(
        type=kind, initial=initial, position=position, before=before, statement=statement
    )
    seen = watch(kernel(body), text, (1, 1, 1), (64, 1, 1))
    assert seen.unchanged
    return list(seen.column("kept", "value"))


@pytest.mark.parametrize("level", ["thread", "warp"])
def test_peer_17_probes_on_predicated_instructions(level: str) -> None:
    body = (
        "\tand.b32 %r5, %r1, 3;\n\tsetp.eq.u32 %p1, %r5, 0;\n\tmov.u32 %r6, 0;\n"
        "\t@%p1 ld.global.u32 %r6, [%a2];\n\t@!%p1 ld.global.u32 %r6, [%a1];\n"
        "\t@%p1 ret;\n" + STORE + "\tret;\n"
    )
    probe = f"""
@Map(level="{level}", size=4, cap=2)
class loads:
    lanes: gl.u32

@probe(pos="ld.global", level="{level}")
def at_load():
    loads.save(gl.active)
"""
    seen = watch(kernel(body), probe)
    assert seen.unchanged
    expected = [8, 24] * 4 if level == "warp" else [8] * 32 + [24] * 96
    assert sorted(seen.column("loads", "lanes")) == sorted(expected)


def test_peer_17_a_predicated_return() -> None:
    probe = """
@Map(level="warp", size=8)
class ends:
    warp: gl.u64

@probe(pos="kernel", level="warp")
def leave():
    ends.save(gl.warpid())
"""
    body = "\tsetp.lt.u32 %p1, %r1, 40;\n\t@%p1 ret;\n" + STORE + "\tret;\n"
    seen = watch(kernel(body), probe)
    assert seen.unchanged
    assert seen.column("ends", "warp") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("signature", "parameters"),
    [
        ("", False),
        ("()", False),
        ("(.param .u64 out)", True),
        ("(.param .u64 out, .param .u8 n)", True),
    ],
)
def test_peer_18_no_parameters_or_all_on_one_line(signature: str, parameters: bool) -> None:
    body = "\tret;\n"
    if parameters:
        body = OPENING + STORE + body
    ptx = HEADER + f".visible .entry k{signature}\n{{\n{body}}}\n"
    text = program_of("warp", "ends.save(gl.warpid())")
    seen = watch(ptx, text, parameters=parameters)
    assert seen.unchanged
    assert seen.column("ends", "value") == [0, 1, 2, 3]


def program_of(level: str, save: str, before: bool = False, **map_: object) -> str:
    """A program that saves one value at a kernel's begin or end."""
    keys = ", ".join(f"{key}={value!r}" for key, value in {"size": 8, **map_}.items())
    return f"""
@Map(level="{level}", {keys})
class ends:
    value: gl.u64

@probe(pos="kernel", level="{level}", before={before})
def at():
    {save}
"""


def test_peer_19_statements_over_several_lines() -> None:
    ptx = HEADER + (
        ".func (.param .b32 result) twice(.param .b32 x)\n{\n\t.reg .b32 %r<3>;\n"
        "\tld.param.b32 %r1, [x];\n\tshl.b32 %r2, %r1, 1;\n\tst.param.b32 [result], %r2;\n"
        "\tret;\n}\n.visible .entry k(\n\t.param .u64\n\tout\n)\n{\n"
        + OPENING
        + "\t{\n\t.param .b32 p0;\n\t.param .b32 r0;\n\tst.param.b32 [p0],\n\t\t%r4;\n"
        "\tcall.uni\n\t(r0),\n\ttwice,\n\t(\n\tp0\n\t);\n\tld.param.b32 %r5, [r0];\n\t}\n"
        "\tst.global.u32\n\t\t[%a2],\n\t\t%r5;\n\tret;\n}\n"
    )
    text = THREAD_VALUE.format(
        type="u64", initial=0, position="st.global", before=False, statement="value += gl.bytes"
    )
    seen = watch(ptx, text)
    assert seen.unchanged
    assert seen.outputs[0].view(np.uint32).tolist() == [2 * i for i in range(128)]
    assert set(seen.column("kept", "value")) == {4}


def test_peer_19_inline_mma_over_several_lines() -> None:
    mma = (
        "\tmov.b32 %r5, 0; mov.b32 %r6, 0;\n\tmov.f32 %f1, 0f00000000;\n"
        "\tmma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32\n\t\t{%f2, %f3, %f4, %f5},\n"
        "\t\t{%r5, %r6},\n\t\t{%r6},\n\t\t{%f1, %f1, %f1, %f1};\n"
        "\tst.global.f32 [%a2], %f2;\n\tret;\n"
    )
    text = THREAD_VALUE.format(
        type="u64", initial=0, position="mma.sync", before=True, statement="value += 1"
    )
    woven = weave(parse(kernel(mma)), "k", program(text))
    assert any(site.opcode.startswith("mma.sync") for site in woven.sites)
    assert assemble(find(), woven.text, "sm_86", "k").registers > 0
    assert all(line in woven.text for line in mma.splitlines())


@pytest.mark.parametrize(("operator", "size"), [("ca", 4), ("ca", 8), ("cg", 16)])
def test_peer_20_bytes_of_cp_async(operator: str, size: int) -> None:
    body = (
        "\t.shared .align 16 .b8 box[1024];\n\tmov.u32 %r5, box;\n"
        f"\tcp.async.{operator}.shared.global [%r5], [%a1], {size};\n"
        "\tcp.async.wait_all;\n" + STORE + "\tret;\n"
    )
    found = values_of(body, "value += gl.bytes", f"cp.async.{operator}")
    assert set(found) == {size}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("value * 3 + T * T", lambda v, t: v * 3 + t * t),
        ("value << 3", lambda v, _: v << 3),
        ("T - 40", lambda _, t: t - 40),
        ("(T - 40) >> 2", lambda _, t: (t - 40) >> 2),
        ("-7 * T", lambda _, t: -7 * t),
        ("value % 10 + T % 7", lambda v, t: v % 10 + t % 7),
        ("(value & 0x55) | (T ^ 3)", lambda v, t: (v & 0x55) | (t ^ 3)),
        ("~T // 1", lambda _, t: ~t),
        ("value // (T + 1)", lambda v, t: v // (t + 1)),
        ("gl.min(value, T * 50)", lambda v, t: min(v, t * 50)),
    ],
)
def test_peer_21_operators(expression: str, expected: object) -> None:
    text = THREAD_VALUE.format(
        type="s64",
        initial=1234,
        position="st.global",
        before=True,
        statement="value = " + expression.replace("T", "gl.s64(gl.thread_x)"),
    )
    seen = watch(kernel(STORE + "\tret;\n"), text, (1, 1, 1), (64, 1, 1))
    assert callable(expected)
    assert seen.column("kept", "value") == [expected(1234, thread) for thread in range(64)]


VALUES = {
    "u32": ("\tld.global.u32 %r5, [%a2];\n", "ld.global", "gl.out", "u32", 0xAAAAAAAA),
    "f32": (
        "\tmov.f32 %f1, 0f3FC00000; mov.f32 %f2, 0f40200000;\n\tadd.f32 %f3, %f1, %f2;\n",
        "add.f32", "gl.out", "f32", 4.0,
    ),
    "f32 in": (
        "\tmov.f32 %f1, 0f3FC00000; mov.f32 %f2, 0f40200000;\n\tmul.f32 %f3, %f1, %f2;\n",
        "mul.f32", "gl.in2", "f32", 2.5,
    ),
    "pred": ("\tsetp.lt.u32 %p1, %r1, 1000;\n", "setp", "gl.out", "pred", 1),
    "u32 in": ("\tmov.u32 %r5, 77;\n\txor.b32 %r6, %r5, 1;\n", "xor.b32", "gl.in1", "u32", 77),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_peer_22_values_of_32_bit_float_and_predicate_registers(name: str) -> None:
    before, position, helper, kind, expected = VALUES[name]
    body = before + STORE + "\tret;\n"
    found = values_of(body, f"value = {helper}", position, kind=kind)
    assert set(found) == {expected}


def test_peer_23_an_odd_number_of_u32_fields() -> None:
    probe = """
@Map(level="warp", size=12)
class three:
    a: gl.u32
    b: gl.u32
    c: gl.u32

@probe(pos="kernel", level="warp")
def leave():
    three.save(gl.warpid(), 7, gl.block)
"""
    seen = watch(kernel(STORE + "\tret;\n"), probe, (3, 1, 1), (64, 1, 1))
    assert seen.unchanged
    assert seen.column("three", "a") == [0, 1, 2, 3, 4, 5]
    assert seen.column("three", "b") == [7] * 6
    assert seen.column("three", "c") == [0, 0, 1, 1, 2, 2]


def test_peer_23_warp_level_dynamic_maps(tmp_path: Path) -> None:
    probe = tmp_path / "visits.py"
    probe.write_text(
        PROBE_HEADER
        + """
@Map(level="warp", size=8, cap="dynamic")
class visits:
    when: gl.u64

@probe(pos="st.global", level="warp")
def at_store():
    visits.save(gl.clock())
"""
    )
    source = tmp_path / "uneven.cu"
    source.write_text("""
__global__ void uneven(int *out) {
  const int i = threadIdx.x, warp = i / 32;
  out[i] = warp;
  if (warp >= 1) out[128 + i] = i, out[256 + i] = -i;
  if (warp >= 2) out[384 + i] = warp * i;
  if (warp == 3) out[512 + i] = i * i, out[640 + i] = 7 * i;
}
int main() {
  int *out;
  cudaMalloc(&out, 16 * 128 * sizeof(int));
  uneven<<<1, 128>>>(out);
}
""")
    session = Session(Options(str(source), device="sim:a10", probe=str(probe)))
    try:
        session.prepare()
        frame = session.frame()
    finally:
        session.close()
    assert frame.outputs_identical
    assert (frame.records, frame.missing, frame.dropped) == (1 + 3 + 4 + 6, 0, 0)


def test_peer_23_a_save_in_a_probe_before_the_kernel() -> None:
    seen = watch(
        kernel(STORE + "\tret;\n"), program_of("warp", "ends.save(gl.warpid() * 2)", before=True)
    )
    assert seen.unchanged
    assert seen.column("ends", "value") == [0, 2, 4, 6]
