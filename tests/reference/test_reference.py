"""The reference interpreter by itself: what PTX says of threads that part and meet again."""

from __future__ import annotations

import struct

import pytest
from reference_contents import first_bytes
from reference_machine import execute
from reference_printing import formatted

HEAD = """.version 8.4
.target sm_90
.address_size 64
"""
START = """.visible .entry test(.param .u64 out)
{
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<5>;
mov.u32 %r0, %tid.x;
ld.param.u64 %rd0, [out];
mad.wide.u32 %rd0, %r0, 4, %rd0;
"""
END = "st.global.u32 [%rd0], %r1;\nret;\n}\n"


def results(body: str, block: int = 32, before: str = "") -> list[int]:
    """Register %r1 of each thread behind the body."""
    text = HEAD + before + START + body + END
    (content,) = execute(text, 1, block, [bytes(4 * block)])
    return list(struct.unpack(f"<{block}I", content))


def test_first_contents_of_variables() -> None:
    symbols = {"a": 0x100, "_Zb$": 0x200}
    assert first_bytes("{1, -2,\n 0x10}", 2, symbols).hex() == "0100feff1000"
    assert first_bytes("{0f3F800000}", 4, symbols).hex() == "0000803f"
    assert first_bytes("0d3FF0000000000000", 8, symbols).hex() == "000000000000f03f"
    addresses = first_bytes("{0, a, generic(_Zb$)+4}", 8, symbols)
    assert struct.unpack("<3Q", addresses) == (0, 0x100, 0x204)


@pytest.mark.parametrize("text", ["1 << 2", "0f3F800000", "0xFF(a)", "{1.5}"])
def test_other_first_contents_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        first_bytes(text, 8, {"a": 0})


def test_lanes_wait_for_those_of_their_mask() -> None:
    """The upper half comes late and by another way; each half votes by itself."""
    found = results(
        "setp.lt.u32 %p0, %r0, 16; setp.lt.u32 %p1, %r0, 20;\n"
        "@%p0 bra low;\n"
        "vote.sync.ballot.b32 %r1, %p1, 0xffff0000;\n"
        "bra end;\n"
        "low: vote.sync.ballot.b32 %r1, %p1, 0xffff;\n"
        "end:\n"
    )
    assert found == [0xFFFF] * 16 + [0xF0000] * 16


def test_one_vote_at_two_places() -> None:
    """Lanes meet by opcode and mask, wherever in the code they are."""
    vote = "vote.sync.ballot.b32 %r1, %p1, -1;\n"
    found = results(
        "setp.lt.u32 %p0, %r0, 16; setp.ge.u32 %p1, %r0, 30;\n"
        f"@%p0 bra low;\n{vote}bra end;\nlow: {vote}end:\n"
    )
    assert found == [0xC0000000] * 32


def test_lanes_that_have_exited_are_not_waited_for() -> None:
    found = results(
        "setp.lt.u32 %p0, %r0, 7;\n@%p0 exit;\nvote.sync.ballot.b32 %r1, !%p0, -1;\n",
    )
    assert found == [0] * 7 + [0xFFFFFF80] * 25


def test_a_barrier_counts_those_that_only_arrive() -> None:
    """The first warp arrives and goes on to wait elsewhere: completing does not let it go."""
    found = results(
        "setp.lt.u32 %p0, %r0, 32; mov.u32 %r1, 0;\n"
        "@%p0 st.shared.u32 [box], 5;\n"
        "@%p0 bar.arrive 1, 64;\n"
        "@%p0 bra last;\n"
        "bar.sync 1, 64;\n"
        "ld.shared.u32 %r2, [box];\n"
        "add.u32 %r2, %r2, 1;\n"
        "st.shared.u32 [box], %r2;\n"
        "last: bar.sync 0;\n"
        "ld.shared.u32 %r1, [box];\n",
        block=64,
        before=".shared .align 4 .u32 box;\n",
    )
    assert found == [6] * 64


def test_recursion_has_registers_and_variables_of_its_own() -> None:
    """The sum of 1 to the lane's number, each addend in local memory until the call is back."""
    callee = """.func (.param .b32 sum) upto (.param .b32 n)
{
.reg .b32 %r<4>; .reg .pred %p0; .local .align 4 .u32 kept;
ld.param.u32 %r0, [n];
setp.eq.u32 %p0, %r0, 0;
mov.u32 %r2, 0;
@%p0 bra done;
st.local.u32 [kept], %r0;
sub.u32 %r1, %r0, 1;
{ .param .b32 given; .param .b32 got;
st.param.b32 [given], %r1;
call (got), upto, (given);
ld.param.b32 %r2, [got]; }
ld.local.u32 %r3, [kept];
add.u32 %r2, %r2, %r3;
done: st.param.b32 [sum], %r2;
ret;
}
"""
    found = results(
        "{ .param .b32 given; .param .b32 got; st.param.b32 [given], %r0;\n"
        "call (got), upto, (given); ld.param.b32 %r1, [got]; }\n",
        before=callee,
    )
    assert found == [k * (k + 1) // 2 for k in range(32)]


def test_generic_addresses_lead_to_their_space() -> None:
    found = results(
        ".local .align 4 .u32 own;\n"
        "mov.u64 %rd1, box; cvta.shared.u64 %rd1, %rd1;\n"
        "mov.u64 %rd2, own; cvta.local.u64 %rd2, %rd2;\n"
        "mad.wide.u32 %rd1, %r0, 4, %rd1;\n"
        "st.u32 [%rd1], %r0; st.u32 [%rd2], 1000;\n"
        "bar.warp.sync -1;\n"
        "xor.b32 %r2, %r0, 1; shl.b32 %r2, %r2, 2; mov.u32 %r3, box; add.u32 %r2, %r2, %r3;\n"
        "ld.shared.u32 %r1, [%r2]; ld.local.u32 %r4, [own]; add.u32 %r1, %r1, %r4;\n",
        before=".shared .align 4 .b8 box[128];\n",
    )
    assert found == [(k ^ 1) + 1000 for k in range(32)]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("setp.eq.u32 %p0, %r0, 3;\n@%p0 trap;\n", "trap"),
        ("setp.eq.u32 %p0, %r0, 3;\n@%p0 bar.sync 1, 64;\nbar.sync 0;\n", "wait"),
        ("shfl.sync.idx.b32 %r1, %r0, 8, 31, 3;\n", "reads lane 8, which takes no part"),
        ("vote.sync.ballot.b32 %r1, %p0, 3;\n", "no member"),
        ("ld.global.u32 %r1, [%rd0+4096];\n", "no memory"),
    ],
)
def test_what_is_undefined_is_an_error(body: str, reason: str) -> None:
    with pytest.raises((AssertionError, IndexError), match=reason):
        results(body)


def test_printf() -> None:
    given = struct.pack("<iiqdQ", -5, 7, -1, 2.5, 0xABC)

    def take(address: int, size: int) -> int:
        return int.from_bytes(given[address : address + size], "little")

    form = "%d %03u %lld %5.2f %p %%\n"
    assert formatted(form, 0, take, lambda _: "") == "-5 007 -1  2.50 0xabc %\n"
