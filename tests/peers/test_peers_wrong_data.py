"""Cases in which an earlier probing tool gives wrong data without an error; here they are right.

The numbers are those of the list that these tests follow.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from peer_support import (
    COUNT,
    LOADS,
    STORE,
    WARP_RECORD,
    kernel,
    loop,
    program,
    watch,
)

from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.instrument import weave
from gpuwatch.launch.model import Dim3

SUMS = "\tadd.u32 %r9, %r5, %r6; add.u32 %r9, %r9, %r7;\n\tst.global.u32 [%a2], %r9;\n\tret;\n"


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((5, 1, 1), (48, 1, 1)),
        ((4, 1, 1), (33, 1, 1)),
        ((6, 1, 1), (20, 1, 1)),
        ((7, 1, 1), (1, 1, 1)),
        ((2, 1, 1), (1023, 1, 1)),
        ((2, 2, 2), (5, 3, 3)),
    ],
)
def test_peer_01_block_not_a_multiple_of_32(grid: Dim3, block: Dim3) -> None:
    body = kernel("\tatom.global.add.u32 %r5, [%a1], 1;\n\tret;\n")
    seen = watch(body, WARP_RECORD, grid, block)
    warps = int(np.prod(grid)) * -(-int(np.prod(block)) // 32)
    assert seen.unchanged
    assert seen.column("seen", "warp") == list(range(warps))
    assert seen.maps["seen"].slots.tolist() == list(range(warps))
    assert seen.maps["seen"].dropped == 0


def test_peer_02_a_kernel_is_chosen_by_its_whole_name(tmp_path: Path) -> None:
    source = tmp_path / "two.cu"
    source.write_text("""
extern "C" __global__ void foo_bar(int *out) { out[threadIdx.x] = 1; }
extern "C" __global__ void foo(int *out) { out[threadIdx.x] = 2; }
int main() {
  int *out;
  cudaMalloc(&out, 256);
  foo_bar<<<1, 32>>>(out);
  foo<<<3, 64>>>(out);
}
""")
    session = Session(Options(str(source), device="sim:a10"))
    try:
        session.select(kernel="foo")
        assert (session.frame().mangled, session.frame().grid) == ("foo", (3, 1, 1))
        assert session.program.find_kernel("_ba") == "foo_bar"
        with pytest.raises(UserError, match="several") as caught:
            session.select(kernel="fo")
        assert "foo_bar" in caught.value.detail
        module = session.program.module
    finally:
        session.close()
    other = next(f for f in module.entries() if f.name == "foo_bar")
    assert module.text[other.start : other.end] in weave(module, "foo", program(WARP_RECORD)).text


@pytest.mark.parametrize("before", [True, False])
def test_peer_03_the_offset_is_part_of_an_address(before: bool) -> None:
    body = (
        "\tld.global.u32 %r5, [%a2];\n\tld.global.u32 %r6, [%a2+256];\n"
        "\tld.global.u32 %r7, [%a2+1024];\n" + SUMS
    )
    probe = LOADS.format(cap=3, position="ld.global", before=before)
    seen = watch(kernel(body), probe, (1, 1, 1), (32, 1, 1), outputs=512)
    address = np.array(seen.column("loads", "address")).reshape(32, 3)
    assert (address - address[:, :1] == [0, 256, 1024]).all()
    assert (np.diff(address[:, 0]) == 4).all()


def test_peer_03_an_address_register_that_the_load_overwrites() -> None:
    body = "\tld.global.u64 %a2, [%a2+8];\n\tst.global.u64 [%a1], %a2;\n\tret;\n"
    seen = [
        watch(
            kernel(body),
            LOADS.format(cap=1, position="ld.global", before=before),
            (1, 1, 1),
            (1, 1, 1),
            outputs=8,
        ).column("loads", "address")
        for before in (True, False)
    ]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("initial", [0, 5, 4_000_000_000])
def test_peer_04_registers_start_from_their_initial_values(initial: int) -> None:
    body = "\tand.b32 %r5, %r1, 3;\n" + loop("\tld.global.u32 %r6, [%a2];\n", "%r5")
    body += STORE + "\tret;\n"
    seen = watch(kernel(body), COUNT.format(position="ld.global", initial=initial))
    expected = [(initial + max(1, thread % 64 & 3)) & 0xFFFFFFFF for thread in range(128)]
    assert seen.column("counted", "times") == expected


def test_peer_04_toml_registers_start_from_zero() -> None:
    probe = """
regs = 1
[probe.counter]
level = "thread"
pos = "ld.global"
after = "add.u64 %NR0, %NR0, 1;"
[probe.end]
level = "thread"
pos = "kernel"
after = "SAVE [ counted ] { %NR0 };"
[map.counted]
level = "thread"
type = "array"
size = 8
cap = 1
[map.counted.regs]
times = [ "u64", "None" ]
"""
    body = "\tld.global.u32 %r5, [%a2];\n\tld.global.u32 %r6, [%a1];\n" + STORE + "\tret;\n"
    assert watch(kernel(body), probe).column("counted", "times") == [2] * 128


def test_peer_05_a_plain_assignment_copies_and_touches_nothing_else() -> None:
    probe = """
@Map(level="thread", size=24)
class kept:
    first: gl.u64
    second: gl.u64
    third: gl.u64

first: gl.u64 = 11
second: gl.u64 = 22
third: gl.u64 = 33

@probe(pos="kernel", level="thread", before=True)
def arrive():
    first = second

@probe(pos="kernel", level="thread")
def leave():
    second = third
    kept.save(first, second, third)
"""
    seen = watch(kernel(STORE + "\tret;\n"), probe)
    assert seen.unchanged
    columns = [set(seen.column("kept", name)) for name in ("first", "second", "third")]
    assert columns == [{22}, {33}, {33}]


def test_peer_06_probes_at_one_place_each_run_whole_and_in_order() -> None:
    probe = """
@Map(level="thread", size=16)
class order:
    a: gl.u64
    b: gl.u64

a: gl.u64 = 0
b: gl.u64 = 0

@probe(pos="st.global", level="thread")
def first():
    a = a + 1
    b = a * 10

@probe(pos="st.global", level="thread")
def second():
    a = a + 100
    b = b + a

@probe(pos="kernel", level="thread")
def leave():
    order.save(a, b)
"""
    seen = watch(kernel(STORE + "\tret;\n"), probe)
    assert set(seen.column("order", "a")) == {101}
    assert set(seen.column("order", "b")) == {111}


def test_peer_07_after_a_branch_means_where_it_is_not_taken() -> None:
    probe = COUNT.format(position="bra", initial=0)
    body = (
        "\tand.b32 %r5, %r1, 1;\n\tsetp.eq.u32 %p1, %r5, 0;\n\t@%p1 bra EVEN;\n"
        + STORE
        + "EVEN:\n\tret;\n"
    )
    seen = watch(kernel(body), probe)
    assert seen.unchanged
    assert seen.column("counted", "times") == [0, 1] * 64


@pytest.mark.parametrize(
    "ending",
    [
        "\texit;\n",
        "\tand.b32 %r5, %r1, 1;\n\tsetp.eq.u32 %p1, %r5, 0;\n\t@%p1 exit;\n\t@!%p1 exit;\n",
        "\tsetp.lt.u32 %p1, %r1, 7;\n\t@%p1 bra SOME;\n\texit;\nSOME:\n\tret;\n",
    ],
)
def test_peer_08_kernels_that_end_in_exit_are_recorded(ending: str) -> None:
    seen = watch(kernel(STORE + ending), WARP_RECORD)
    assert seen.unchanged
    assert seen.column("seen", "warp") == [0, 1, 2, 3]
