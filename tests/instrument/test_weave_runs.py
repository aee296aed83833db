"""Probes at instructions, lines and labels count exactly and change nothing, on the simulator."""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np
import pytest
from weave_programs import RECORD, counting, recording
from weaving import Probed, kernel, run

from gpuwatch.launch.model import Dim3
from gpuwatch.probe import parse_python, parse_toml

LOOP = """\
	.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;
	and.b32 %r1, %i1, 7; mov.u32 %r2, 0;
	st.global.u32 [%a1], %i10;
AGAIN:
	setp.ge.u32 %p1, %r2, %r1;
	@%p1 bra DONE;
	ld.volatile.global.u32 %r3, [%a1];
	add.u32 %r3, %r3, %r2;
	st.global.u32 [%a1], %r3;
	add.u32 %r2, %r2, 1;
	bra AGAIN;
DONE:
	ret;
"""
"""Thread i runs its loop i mod 8 times."""
PARTS = """\
	.reg .pred %p<4>; .reg .b32 %r<8>;
	and.b32 %r1, %i1, 1; setp.eq.u32 %p1, %r1, 1; setp.ge.u32 %p2, %i1, %i11;
	mov.u32 %r2, 7;
	st.global.u32 [%a1], %i10;
	@%p2 ret;
	@%p1 ld.global.u32 %r2, [%a1];
	@!%p1 bra EVEN;
	add.u32 %r2, %r2, 1;
EVEN:
	st.global.u32 [%a1], %r2;
	@%p1 exit;
	st.global.u32 [%a1], %r2;
	ret;
"""
"""Threads from n on leave early; odd ones load, and leave before even ones."""
SHAPES: list[tuple[Dim3, Dim3]] = [((1, 1, 1), (1, 1, 1)), ((3, 1, 1), (48, 1, 1)),
                                   ((2, 3, 2), (5, 3, 4))]  # fmt: skip


def counted(probed: Probed) -> list[int]:
    assert np.array_equal(probed.plain, probed.output)
    assert probed.counts["counts"].tolist() == [1] * len(probed.output)
    return probed.maps["counts"].column("number").tolist()


def indices(grid: Dim3, block: Dim3) -> list[int]:
    """Of each thread of a launch, in its block."""
    return [thread for _ in range(prod(grid)) for thread in range(prod(block))]


@pytest.mark.parametrize(("grid", "block"), SHAPES)
@pytest.mark.parametrize("before", [True, False])
def test_counters_of_lanes_that_diverge_are_exact(grid: Dim3, block: Dim3, before: bool) -> None:
    probed = run(kernel(LOOP), counting("ld.global", before, "gl.bytes"), grid, block)
    turns = [thread % 8 for thread in indices(grid, block)]
    assert counted(probed) == turns
    assert probed.maps["counts"].column("total").tolist() == [4 * turn for turn in turns]


@pytest.mark.parametrize(
    ("position", "before", "each", "more"),
    [
        ("st.global", True, 1, 1),
        ("ld:st", False, 2, 3),
        ("label:AGAIN", True, 1, 1),
        ("label:DONE", False, 0, 1),
        ("bra", True, 1, 1),
        ("bra", False, 1, 0),
        ("setp.ge.u32", False, 1, 1),
        ("ret", True, 0, 1),
    ],
)
def test_places_of_a_loop(position: str, before: bool, each: int, more: int) -> None:
    """Each run of the loop and the rest. In front of a branch the probe runs in the lanes that
    take it, behind it in the others."""
    probed = run(kernel(LOOP), counting(position, before), (2, 1, 1), (40, 1, 1))
    turns = [thread % 8 for thread in indices((2, 1, 1), (40, 1, 1))]
    assert counted(probed) == [each * turn + more for turn in turns]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    ("position", "odd", "even", "early"),
    [
        ("ld.global", 1, 0, 0),
        ("st.global", 2, 3, 1),
        ("add", 1, 0, 0),
        ("label:EVEN", 1, 1, 0),
    ],
)
def test_guards_hold_for_the_probe(
    position: str, odd: int, even: int, early: int, before: bool
) -> None:
    probed = run(kernel(PARTS), counting(position, before), (2, 1, 1), (48, 1, 1), n=37)
    expected = [
        early if thread >= 37 else odd if thread % 2 else even
        for thread in indices((2, 1, 1), (48, 1, 1))
    ]
    if position == "add":  # the address and index arithmetic of every thread matches too
        least = min(counted(probed))
        expected = [least + more for more in expected]
    assert counted(probed) == expected


def test_behind_an_exit_means_the_lanes_that_stay() -> None:
    probed = run(kernel(PARTS), counting("ret:exit", False), (1, 1, 1), (48, 1, 1), n=37)
    assert counted(probed) == [
        0 if thread >= 37 else 1 if thread % 2 else 2 for thread in range(48)
    ]
    assert any("always taken" in note for note in probed.woven.notes)


def test_a_load_that_overwrites_its_address() -> None:
    """`addr` is the address as it was, `out` what was read; the guard is overwritten as well."""
    text = kernel(
        "\t.shared .align 4 .b32 box[1024];\n\t.reg .b32 %s<6>; .reg .pred %p<3>;\n"
        "\tmov.u32 %s1, box; shl.b32 %s2, %i1, 2; add.u32 %s1, %s1, %s2; add.u32 %s3, %i1, 500;\n"
        "\tst.shared.u32 [%s1+128], %s3;\n\tmov.u32 %s4, %s1;\n\tbar.sync 0;\n"
        "\tsetp.lt.u32 %p1, %i1, 20;\n"
        "\t@%p1 ld.shared.u32 %s1, [%s1+128];\n"
        "\t@%p1 setp.gt.u32 %p1, %i1, 5;\n"
        "\tselp.b32 %s1, %s1, %s4, %p1;\n"
        "\tst.global.u32 [%a1], %s1;\n\tret;\n"
    )
    program = recording(
        "ld.shared",
        {"addr": ("u64", "gl.addr"), "out": ("u32", "gl.out"), "size": ("u32", "gl.bytes")},
        before=False,
    )
    probed = run(text, program, (1, 1, 1), (48, 1, 1))
    assert np.array_equal(probed.plain, probed.output)
    seen = probed.maps["seen"]
    assert seen.slots.tolist() == list(range(20))
    assert seen.column("out").tolist() == [500 + thread for thread in range(20)]
    base = int(probed.plain[40]) - 4 * 40
    assert seen.column("addr").tolist() == [base + 4 * thread + 128 for thread in range(20)]
    assert seen.column("size").tolist() == [4] * 20
    guarded = run(text, counting("setp.gt.u32", False), (1, 1, 1), (48, 1, 1))
    assert counted(guarded) == [1] * 20 + [0] * 28


def test_operands_of_every_width() -> None:
    text = kernel(
        "\t.reg .b16 %h<4>; .reg .f32 %f<4>; .reg .f64 %e<3>; .reg .pred %p<3>;\n"
        "\t.reg .b32 %r<4>; .reg .b64 %d<3>; .local .align 16 .b8 store[64];\n"
        "\t.reg .b64 %l<2>; mov.u64 %l1, store;\n"
        "\tcvt.u16.u32 %h1, %i1; neg.s16 %h2, %h1; cvt.rn.f32.u32 %f1, %i1;\n"
        "\tcvt.f64.f32 %e1, %f1; setp.gt.u32 %p1, %i1, 2; cvt.s64.s16 %d1, %h2;\n"
        "\tst.local.u8 [%l1], %h1;\n"
        "\tst.local.s16 [%l1+2], %h2;\n"
        "\tst.local.v2.f32 [%l1+8], {%f1, %f1};\n"
        "\tst.local.f64 [%l1+16], %e1;\n"
        "\tst.local.s64 [%l1+24], %d1;\n"
        "\tst.local.u32 [%l1+32], 77;\n"
        "\tselp.b32 %r1, %i1, 9, %p1;\n"
        "\tst.global.u32 [%a1], %r1;\n\tret;\n"
    )
    cases: dict[str, tuple[str, str, list[float]]] = {
        "st.local.u8": ("u32", "gl.in1", [0, 1, 2, 3]),
        "st.local.s16": ("s32", "gl.in1", [0, -1, -2, -3]),
        "st.local.v2": ("f32", "gl.in1", [0, 1, 2, 3]),
        "st.local.f64": ("u64", "gl.in1", [int(np.float64(i).view(np.uint64)) for i in range(4)]),
        "st.local.s64": ("s64", "gl.in1", [0, -1, -2, -3]),
        "st.local.u32": ("u32", "gl.in1", [77] * 4),
        "selp": ("pred", "gl.in3", [0, 0, 0, 1]),
    }
    for position, (type_, value, expected) in cases.items():
        program = recording(position, {"value": (type_, value), "two": ("u32", "2")})
        probed = run(text, program, (1, 1, 1), (4, 1, 1))
        assert np.array_equal(probed.plain, probed.output)
        assert probed.maps["seen"].column("value").tolist() == expected, position
    sizes = run(text, counting("st.local", value="gl.bytes"), (1, 1, 1), (4, 1, 1))
    assert counted(sizes) == [6] * 4
    assert sizes.maps["counts"].column("total").tolist() == [1 + 2 + 8 + 8 + 8 + 4] * 4


@pytest.mark.parametrize("text", [LOOP, PARTS])
def test_warp_probes_run_once_for_the_lanes_together(text: str) -> None:
    """The lanes of all its runs are those that count at thread level; any lane may lead."""
    shape: tuple[Dim3, Dim3] = ((2, 1, 1), (48, 1, 1))
    values = {"lanes": ("u32", "gl.active"), "lane": ("u32", "gl.laneid()")}
    probed = run(kernel(text), recording("ld.global", values, level="warp"), *shape, n=37)
    assert np.array_equal(probed.plain, probed.output)
    threads = counted(run(kernel(text), counting("ld.global"), *shape, n=37))
    seen = probed.maps["seen"]
    lanes = Counter[int]()
    for slot, count in zip(seen.slots.tolist(), seen.column("lanes").tolist(), strict=True):
        lanes[slot] += count
    per_block = np.array(threads).reshape(2, 48)
    assert [lanes[warp] for warp in range(4)] == [
        int(part.sum()) for block in per_block for part in (block[:32], block[32:])
    ]
    assert (seen.column("lane") > 0).all()  # lane 0 never loads
    assert len(seen) < sum(threads)


def test_probes_at_one_place_run_in_order() -> None:
    program = parse_python(
        RECORD.format(level="thread", size=8, fields="    value: gl.u32", position="st.global",
                      before=True, values="value")
        .replace("@probe", "value: gl.u32 = 3\n\n\n@probe(pos='st.global', level='thread', "
                 "before=True)\ndef first():\n    value = value * 10\n\n\n@probe", 1)
        + "\n\n@probe(pos='st.global', level='thread')\ndef last():\n    value = value + 1\n",
        "order.py",
    )  # fmt: skip
    probed = run(kernel(PARTS), program, (1, 1, 1), (33, 1, 1), n=40)
    assert np.array_equal(probed.plain, probed.output)
    values: dict[int, list[int]] = {}
    seen = probed.maps["seen"]
    for slot, value in zip(seen.slots.tolist(), seen.column("value").tolist(), strict=True):
        values.setdefault(slot, []).append(value)
    assert values[1] == [30, 310]
    assert values[2] == [30, 310, 3110]


def test_lines_are_counted_by_run() -> None:
    """Line 7 is a call that the compiler inlined from another file."""
    located = "\t.loc 1 3 1\n" + LOOP
    inlined = "\t.loc 2 9 1, function_name $L__s0, inlined_at 1 7 4\n"
    for code, loc in (("\tsetp.ge", "\t.loc 1 5 1\n"), ("\tld.volatile", "\t.loc 1 6 2\n"),
                      ("\tadd.u32 %r2", inlined), ("DONE:", "\t.loc 1 8 1\n")):  # fmt: skip
        located = located.replace(code, loc + code)
    files = '.file 1 "k.cu"\n.file 2 "k.h"\n'
    text = kernel(located).replace(".visible .entry", files + ".visible .entry")
    shape: tuple[Dim3, Dim3] = ((1, 1, 1), (16, 1, 1))
    turns = [thread % 8 for thread in range(16)]
    expected = {
        ("line:5", True): [turn + 1 for turn in turns],
        ("line:5", False): [turn + 1 for turn in turns],
        ("line:6", False): turns,
        ("line:7", True): turns,
    }
    for (position, before), counts in expected.items():
        assert counted(run(text, counting(position, before), *shape)) == counts, position


def test_ptx_probes_name_operands() -> None:
    program = parse_toml(
        'regs = 3\n[probe.stores]\nlevel = "thread"\npos = "st.global"\n'
        'after = """\nadd.u64 %NR0, %NR0, BYTES; add.u64 %NR1, %NR1, IN1;\n'
        'mov.u64 %NR2, ADDR; SAVE [stores] { %NR0, %NR1, ADDR, BYTES };\n"""\n'
        '[map.stores]\nlevel = "thread"\ncap = 8\n'
        'regs = { bytes = "u64", sum = "u64", addr = "u64", size = "u32" }\n',
        "stores.toml",
    )
    probed = run(kernel(PARTS), program, (1, 1, 1), (32, 1, 1), n=40)
    assert np.array_equal(probed.plain, probed.output)
    stores = probed.maps["stores"]
    first = {}
    for slot, row in zip(stores.slots.tolist(), stores.records, strict=True):
        first.setdefault(slot, row)
    assert [int(first[slot]["bytes"]) for slot in range(32)] == [4] * 32
    assert [int(first[slot]["sum"]) for slot in range(32)] == list(range(32))
    base = int(first[0]["addr"])
    assert [int(first[slot]["addr"]) - base for slot in range(32)] == [4 * i for i in range(32)]
