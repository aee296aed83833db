"""What is not executed is refused by name, all at once; and the table of coverage is current."""

from __future__ import annotations

import coverage_table
import numpy as np
import pytest
from sim_support import run

from gpuwatch.device.sim import emit_warp
from gpuwatch.device.sim.codegen import merged
from gpuwatch.device.sim.refused import REFUSED
from gpuwatch.errors import UserError

_HEAD = """.version 8.4
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b32 %r<9>; .reg .b64 %q<9>; .reg .pred %p<9>; .reg .f32 %f<9>;
.shared .align 16 .b8 sm[256];
ld.param.u64 %q0, [out];
"""


def outcome(body: str, size: int = 32) -> np.ndarray:  # type: ignore[type-arg]
    """Runs a body in one warp; it may write to [%q0]."""
    text = _HEAD + body + "\nret;\n}\n"
    (out,) = run(text, "k", (1, 1, 1), (32, 1, 1), [np.zeros(size, np.uint32)]).buffers
    return out


def test_the_table_is_current() -> None:
    assert coverage_table.PAGE.read_text() == coverage_table.page()


_REFUSED = {
    "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%q1, {%r1, %r2}]": "textures",
    "suld.b.1d.b32.trap %r1, [%q1, {%r2}]": "surfaces",
    "wgmma.fence.sync.aligned": "warpgroup",
    "cp.async.bulk.commit_group": "tensor memory accelerator",
    "mapa.u64 %q1, %q2, %r1": "clusters",
    "isspacep.const %p1, %q1": "isspacep.const",
}


def test_refused_by_name_all_at_once() -> None:
    with pytest.raises(UserError) as caught:
        outcome(";\n".join(_REFUSED) + ";")
    assert str(len(_REFUSED)) in caught.value.message
    detail = (caught.value.detail or "").splitlines()
    for (instruction, reason), line in zip(_REFUSED.items(), detail, strict=True):
        assert instruction.split()[0] in line
        assert reason in line


def test_every_refused_opcode_has_a_reason() -> None:
    assert all(len(reason.split()) > 2 for reason in REFUSED.values())


def test_no_opcode_is_emitted_in_two_ways() -> None:
    again = {"elect": emit_warp.OPCODES["elect"]}
    with pytest.raises(ValueError, match="emitted in two ways: elect"):
        merged(emit_warp.OPCODES, again)


def test_space_of_an_address() -> None:
    body = """
mov.u32 %r1, sm; cvt.u64.u32 %q1, %r1; cvta.shared.u64 %q1, %q1;
isspacep.shared %p1, %q1; isspacep.global %p2, %q0; isspacep.global %p3, %q1;
selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 2, 0, %p2; selp.u32 %r4, 4, 0, %p3;
or.b32 %r2, %r2, %r3; or.b32 %r2, %r2, %r4;
st.global.u32 [%q0], %r2;
"""
    assert outcome(body)[0] == 3


def test_parameters_have_addresses() -> None:
    """Read by a register in parameter space, and through a generic address."""
    body = """
mov.u32 %r1, %laneid; and.b32 %r1, %r1, 1; mul.wide.u32 %q3, %r1, 4;
mov.b64 %q1, out; add.s64 %q2, %q1, %q3; ld.param.u32 %r2, [%q2];
cvta.param.u64 %q4, %q1; add.s64 %q4, %q4, %q3; ld.u32 %r3, [%q4];
isspacep.param %p1, %q4; isspacep.param %p2, %q0;
sub.u32 %r4, %r3, %r2; selp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 2, 0, %p2;
add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6;
mov.u32 %r1, %laneid; mul.wide.u32 %q3, %r1, 4; add.s64 %q3, %q0, %q3;
st.global.u32 [%q3], %r4;
st.global.u32 [%q3+128], %r2;
"""
    out = outcome(body, 64)
    assert out[:32].tolist() == [1] * 32
    low, high = out[32], out[33]
    assert (int(high) << 32 | int(low)) >= 1 << 36
    assert out[32:].tolist() == [low, high] * 16


def test_hints_have_no_effect() -> None:
    body = """
createpolicy.fractional.L2::evict_first.b64 %q1, 1.0;
prefetch.global.L2 [%q0]; membar.gl; fence.acq_rel.gpu; nanosleep.u32 20;
fence.proxy.async; applypriority.global.L2::evict_normal [%q0], 128;
mov.u32 %r1, 5;
st.global.L2::cache_hint.u32 [%q0], %r1, %q1;
ld.global.L2::cache_hint.u32 %r2, [%q0], %q1;
ld.global.nc.L1::no_allocate.u32 %r3, [%q0];
add.u32 %r2, %r2, %r3;
st.global.u32 [%q0], %r2;
"""
    assert outcome(body)[0] == 10


def test_an_mbarrier_counts_its_arrivals() -> None:
    """Phases flip when all lanes have arrived; parity and state tell the same."""
    body = """
mov.u32 %r1, %laneid; mov.u32 %r2, sm; setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared.b64 [%r2], 32;
bar.warp.sync -1;
mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0;
mbarrier.arrive.shared.b64 %q1, [%r2];
mbarrier.pending_count.b64 %r3, %q1;
bar.warp.sync -1;
mbarrier.test_wait.parity.shared.b64 %p3, [%r2], 0;
mbarrier.test_wait.shared.b64 %p4, [%r2], %q1;
mbarrier.test_wait.parity.shared.b64 %p5, [%r2], 1;
selp.u32 %r4, 256, 0, %p2; selp.u32 %r5, 512, 0, %p3;
selp.u32 %r6, 1024, 0, %p4; selp.u32 %r7, 2048, 0, %p5;
or.b32 %r4, %r4, %r5; or.b32 %r4, %r4, %r6; or.b32 %r4, %r4, %r7; or.b32 %r4, %r4, %r3;
mul.wide.u32 %q2, %r1, 4; add.u64 %q2, %q0, %q2;
st.global.u32 [%q2], %r4;
"""
    assert outcome(body).tolist() == [512 | 1024 | (32 - lane) for lane in range(32)]


def test_an_mbarrier_waits_for_bytes() -> None:
    body = """
mov.u32 %r1, %laneid; mov.u32 %r2, sm; setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
mbarrier.init.shared.b64 [%r2], 1;
mbarrier.arrive.expect_tx.shared.b64 %q1, [%r2], 64;
mbarrier.test_wait.shared.b64 %p2, [%r2], %q1;
mbarrier.complete_tx.shared.b64 [%r2], 64;
mbarrier.test_wait.shared.b64 %p3, [%r2], %q1;
selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 2, 0, %p3; or.b32 %r3, %r3, %r4;
st.global.u32 [%q0], %r3;
DONE:
"""
    assert outcome(body)[0] == 2


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "add.u32 %r1, %r1, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
            "misaligned address 0x8 (16 bytes",
        ),
        ("add.u64 %q0, %q0, 4; cp.async.cg.shared.global [%r1], [%q0], 16;", "misaligned"),
        ("add.u32 %r1, %r1, 1024; cp.async.ca.shared.global [%r1], [%q0], 8;", "shared address"),
        ("add.u32 %r1, %r1, 4; mbarrier.init.shared.b64 [%r1], 1;", "misaligned address 0x4"),
    ],
)
def test_faults_of_tiles_copies_and_barriers(body: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        outcome("mov.u32 %r1, sm;\n" + body)
    assert told in caught.value.message
    assert caught.value.status == 1
