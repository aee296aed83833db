"""Probed kernels compute what plain ones do, and every warp leaves one right record."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from weaving import HEADER, Probed, kernel, run

from gpuwatch.launch.model import Dim3
from gpuwatch.probe import load

STORE = "\tst.global.u32 [%a1], %i10;\n"
COUNTED_LOOP = """\
	.reg .pred %q<3>; .reg .b32 %c<4>;
	mov.u32 %c1, 0; and.b32 %c2, %i1, {mask};
LOOP:
	add.u32 %c1, %c1, 3;
	sub.u32 %c2, %c2, 1;
	setp.ge.s32 %q1, %c2, 0;
	@%q1 bra LOOP;
	st.global.u32 [%a1], %c1;
"""
GUARD = "\t.reg .pred %p<4>;\n\tsetp.ge.u32 %p1, {what}, %i11;\n"
EARLY = GUARD.format(what="%i1") + "\t@%p1 bra DONE;\n{work}DONE:\n\tret;\n"

KERNELS = {
    "straight": kernel(STORE + "\tret;\n"),
    "exit": kernel(STORE + "\texit;\n"),
    "falls through": kernel(STORE),
    "branch over the work": kernel(EARLY.format(work=COUNTED_LOOP.format(mask=7))),
    "early return, then a loop": kernel(
        GUARD.format(what="%i1") + "\t@%p1 ret;\n" + COUNTED_LOOP.format(mask=15) + "\tret;\n"
    ),
    "negated exit": kernel(
        "\t.reg .pred %p<4>;\n\tsetp.lt.u32 %p1, %i10, %i11;\n\t@!%p1 exit;\n" + STORE + "\tret;\n"
    ),
    "all return early": kernel(GUARD.format(what="%i11") + "\t@%p1 ret;\n" + STORE + "\tret;\n"),
    "lanes return one by one": kernel(
        "\t.reg .pred %p<4>; .reg .b32 %c<4>;\n\tmov.u32 %c1, 0; and.b32 %c2, %i1, 31;\n"
        "AGAIN:\n\tst.global.u32 [%a1], %c1;\n\tsetp.eq.u32 %p1, %c1, %c2;\n\t@%p1 ret;\n"
        "\tadd.u32 %c1, %c1, 1;\n\tbra AGAIN;\n"
    ),
    "two ways out": kernel(
        "\t.reg .pred %p<4>; .reg .b32 %c<3>;\n\tand.b32 %c1, %i1, 1;\n"
        "\tsetp.ne.u32 %p1, %c1, 0;\n\t@%p1 bra ODD;\n" + STORE + "\tret;\n"
        "ODD:\n\tst.global.u32 [%a1], %i1;\n\texit;\n"
    ),
    "barrier after a partial exit": kernel(
        GUARD.format(what="%i1")
        + "\t.shared .align 4 .b32 box[1024];\n\t.reg .b32 %s<6>;\n\t@%p1 ret;\n"
        "\tmov.u32 %s1, box; shl.b32 %s2, %i1, 2; add.u32 %s1, %s1, %s2;\n"
        "\tst.shared.u32 [%s1], %i10;\n\tbar.sync 0;\n"
        "\tmov.u32 %s3, box; ld.shared.u32 %s4, [%s3]; add.u32 %s4, %s4, %i1;\n"
        "\tst.global.u32 [%a1], %s4;\n\tret;\n"
    ),
    "no parameters": HEADER + ".visible .entry k()\n{\n\tret;\n}\n",
}
SHAPES: list[tuple[Dim3, Dim3]] = [
    ((1, 1, 1), (1, 1, 1)),
    ((5, 1, 1), (48, 1, 1)),
    ((2, 3, 2), (17, 3, 2)),
]
PROGRAMS = {name: load(name) for name in ("block_sched", "warp_duration")}
ONE_BASIC_BLOCK = {"straight", "exit", "falls through", "no parameters"}
"""The simulated clock moves from basic block to basic block, so these may take no time."""
SM = {"block_sched": "cuid", "warp_duration": "sm"}
CASES = [(name, grid, block) for name in KERNELS for grid, block in SHAPES]
WHOLE_WARPS: list[tuple[Dim3, Dim3]] = [((5, 1, 1), (64, 1, 1)), ((2, 3, 2), (16, 2, 3))]


def check(probed: Probed, name: str) -> None:
    assert np.array_equal(probed.plain, probed.output)
    records = probed.maps[name]
    assert probed.counts[name].tolist() == [1] * probed.warps
    assert records.slots.tolist() == list(range(probed.warps))
    assert records.dropped == 0
    assert (records.column("elapsed") < 1 << 20).all()
    assert (records.column(SM[name]) < probed.sm_count).all()


@pytest.mark.parametrize(("name", "grid", "block"), CASES)
@pytest.mark.parametrize("probe", PROGRAMS)
def test_each_warp_leaves_one_record(name: str, grid: Dim3, block: Dim3, probe: str) -> None:
    probed = run(KERNELS[name], PROGRAMS[probe], grid, block, n=prod(block) * 2 // 3)
    check(probed, probe)
    least = 0 if name in ONE_BASIC_BLOCK else 1
    assert (probed.maps[probe].column("elapsed") >= least).all()
    if probe == "warp_duration":
        warps = probed.maps[probe].column("warpid")
        assert warps.tolist() == list(range(probed.warps))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("grid", "block"), [*SHAPES, *WHOLE_WARPS])
@pytest.mark.parametrize("probe", PROGRAMS)
def test_so_it_does_in_short_launches_of_a_known_shape(
    name: str, grid: Dim3, block: Dim3, probe: str
) -> None:
    probed = run(KERNELS[name], PROGRAMS[probe], grid, block, n=prod(block) * 2 // 3, known=True)
    check(probed, probe)
    assert probed.woven.marks == {probe: 0}
    assert "mov.u32 \t%gpw" in probed.woven.text and "_low, %clock;" in probed.woven.text
    assert 0 < int(probed.maps[probe].column("start").max()) < 1 << 40


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("probe", PROGRAMS)
@pytest.mark.parametrize("last", [0, 11, 31])
def test_a_record_covers_the_last_lane(last: int, probe: str, known: bool) -> None:
    """Lanes but `last` return at once; it stores the clock after a loop of its own."""
    text = kernel(
        "\t.reg .pred %p<3>; .reg .b32 %c<3>; .reg .b64 %t<2>;\n"
        "\tsetp.ne.u32 %p1, %i1, %i11;\n\t@%p1 ret;\n\tmov.u32 %c1, 0;\n"
        "AGAIN:\n\tadd.u32 %c1, %c1, 1;\n\tst.volatile.global.u32 [%a1], %c1;\n"
        "\tsetp.lt.u32 %p2, %c1, 50;\n\t@%p2 bra AGAIN;\n"
        "\tmov.u64 %t1, %clock64; cvt.u32.u64 %c2, %t1;\n\tst.global.u32 [%a1], %c2;\n\tret;\n"
    )
    probed = run(text, PROGRAMS[probe], (1, 1, 1), (32, 1, 1), n=last, known=known)
    assert probed.counts[probe].tolist() == [1]
    record = probed.maps[probe].records[0]
    assert int(record["start"] + record["elapsed"]) & 0xFFFFFFFF >= probed.output[last]
