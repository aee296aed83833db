"""Sectors and bank conflicts, against counts made from the addresses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from weaving import kernel, run

from gpuwatch.errors import UserError
from gpuwatch.instrument import weave
from gpuwatch.probe import parse_python
from gpuwatch.probe.model import Program
from gpuwatch.ptx import parse

PROGRAM = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="{level}", type="array", size=8, cap=4)
class seen:
    number: gl.u32
    lanes: gl.u32


@probe(pos="{position}", level="{level}", before={before})
def at():
    seen.save(gl.{helper}(), gl.active)
"""
GLOBAL = """\
	.reg .b64 %d<6>; .reg .b32 %r<6>; .reg .pred %p<3>;
	ld.param.u64 %d1, [out];
	mul.lo.u32 %r1, %i1, %i11; rem.u32 %r1, %r1, 96; mul.wide.u32 %d2, %r1, 4;
	add.s64 %d1, %d1, %d2; and.b32 %r2, %i1, 3; setp.ne.u32 %p1, %r2, 2;
	mov.u32 %r3, 1;
	@%p1 ld.global.u32 %r3, [%d1];
	st.global.u32 [%a1], 7;
	ret;
"""
"""Lanes but each fourth read word i * n mod 96 of the output."""
SHARED = """\
	.shared .align 16 .b8 box[4096];
	.reg .b32 %r<9>; .reg .pred %p<3>;
	mul.lo.u32 %r1, %i1, %i11; and.b32 %r1, %r1, {mask}; mul.lo.u32 %r1, %r1, {width};
	mov.u32 %r2, box; add.u32 %r1, %r1, %r2;
	setp.lt.u32 %p1, %i1, 29;
	@%p1 {store};
	st.global.u32 [%a1], %i10;
	ret;
"""
STORES = {
    1: "st.shared.u8 [%r1], 5",
    4: "st.shared.u32 [%r1], 5",
    8: "st.shared.v2.u32 [%r1], {5, 6}",
    16: "st.shared.v4.u32 [%r1], {5, 6, 7, 8}",
}


@cache
def program(helper: str, position: str, level: str, before: bool = True) -> Program:
    text = PROGRAM.format(helper=helper, position=position, level=level, before=before)
    return parse_python(text, "seen.py")


def wavefronts_beyond(addresses: Sequence[tuple[int, int]], width: int) -> int:
    """Of (lane, address): in each half or quarter of the warp, the most distinct words that a
    bank has to give, less one."""
    group_lanes = min(32, 128 // width)
    groups: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for lane, address in addresses:
        for word in {(address + byte) // 4 for byte in range(width)}:
            groups[lane // group_lanes][word % 32].add(word)
    return sum(max(map(len, banks.values())) - 1 for banks in groups.values())


@pytest.mark.parametrize("stride", [0, 1, 2, 8, 13, 32])
def test_sectors_of_a_strided_load(stride: int) -> None:
    threads = 96
    reading = [thread for thread in range(threads) if thread % 4 != 2]
    expected = [
        len({thread * stride % 96 // 8 for thread in reading if thread // 32 == warp})
        for warp in range(3)
    ]
    for before in (True, False):
        probed = run(
            kernel(GLOBAL), program("sectors", "ld.global", "warp", before), (1, 1, 1),
            (threads, 1, 1), n=stride,
        )  # fmt: skip
        assert np.array_equal(probed.plain, probed.output)
        assert probed.maps["seen"].column("number").tolist() == expected
        assert probed.maps["seen"].column("lanes").tolist() == [24] * 3
    threads_seen = run(
        kernel(GLOBAL),
        program("sectors", "ld.global", "thread"),
        (1, 1, 1),
        (threads, 1, 1),
        stride,
    ).maps["seen"]
    sums = np.bincount(threads_seen.slots // 32, threads_seen.column("number"), 3)
    assert sums.tolist() == expected


@pytest.mark.parametrize("width", STORES)
@pytest.mark.parametrize("stride", [0, 1, 3, 8, 32, 33])
def test_bank_conflicts_of_a_strided_store(width: int, stride: int) -> None:
    mask = 4096 // width - 1 if width > 1 else 2047
    text = kernel(SHARED.format(mask=mask, width=width, store=STORES[width]))
    addresses = [(lane, (lane * stride & mask) * width) for lane in range(29)]
    expected = wavefronts_beyond(addresses, width)
    probed = run(
        text, program("bank_conflicts", "st.shared", "warp"), (1, 1, 1), (32, 1, 1), stride
    )
    assert np.array_equal(probed.plain, probed.output)
    assert probed.maps["seen"].column("number").tolist() == [expected]
    by_thread = run(
        text, program("bank_conflicts", "st.shared", "thread"), (1, 1, 1), (32, 1, 1), stride
    )
    assert sum(by_thread.maps["seen"].column("number").tolist()) == expected


@pytest.mark.parametrize(
    ("helper", "position", "message"),
    [
        ("sectors", "st.shared", "it accesses shared memory, not global or generic"),
        ("bank_conflicts", "st.global", "it accesses global memory, not shared"),
        ("sectors", "ld.param", "parameters have no address"),
    ],
)
def test_memory_that_has_neither(helper: str, position: str, message: str) -> None:
    text = kernel(SHARED.format(mask=31, width=4, store=STORES[4]))
    with pytest.raises(UserError, match=message):
        weave(parse(text), "k", program(helper, position, "warp"))
