"""Every supported form of opcode compiles and runs, in full warps and in parts of one."""

from __future__ import annotations

import pytest
from sim_support import run

HEAD = """.version 8.0
.target sm_86
.address_size 64
.visible .entry k()
{
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %d<9>;
.reg .pred %p<9>; .reg .b16 %h<9>;
.shared .align 16 .b8 sm[64];
"""
TAIL = """
st.shared.u32 [sm], %r1; st.shared.f32 [sm], %f1; st.shared.f64 [sm], %d1;
st.shared.u64 [sm], %rd1; st.shared.u16 [sm], %h1; @%p1 st.shared.u32 [sm], %r1;
ret;
}
"""
FORMS = """
    min.f32 %f1, %f2, %f3;
    max.NaN.f32 %f1, %f2, %f3;
    add.sat.f32 %f1, %f2, %f3;
    add.ftz.f32 %f1, %f2, %f3;
    sqrt.rn.f32 %f1, %f2;
    rsqrt.approx.f32 %f1, %f2;
    ex2.approx.ftz.f32 %f1, %f2;
    lg2.approx.f32 %f1, %f2;
    sin.approx.f32 %f1, %f2;
    cos.approx.f32 %f1, %f2;
    tanh.approx.f32 %f1, %f2;
    rcp.rn.f32 %f1, %f2;
    copysign.f32 %f1, %f2, %f3;
    testp.finite.f32 %p1, %f2;
    cvt.rn.f16.f32 %h1, %f1;
    cvt.f32.f16 %f1, %h1;
    cvt.rzi.s32.f32 %r1, %f1;
    cvt.rn.f32.u64 %f1, %rd1;
    cvt.sat.u8.s32 %r1, %r2;
    cvt.rni.f32.f32 %f1, %f2;
    cvt.sat.f32.f32 %f1, %f2;
    min.f16 %h1, %h2, %h3;
    bfe.s32 %r1, %r2, 3, 5;
    bfi.b64 %rd1, %rd2, %rd3, 3, 5;
    bfind.u32 %r1, %r2;
    prmt.b32 %r1, %r2, %r3, 0x3210;
    lop3.b32 %r1, %r2, %r3, %r4, 0x96;
    shf.l.wrap.b32 %r1, %r2, %r3, %r4;
    dp4a.s32.s32 %r1, %r2, %r3, %r4;
    vote.sync.all.pred %p1, %p2, -1;
    match.all.sync.b32 %r1|%p1, %r2, -1;
    match.any.sync.b64 %r1, %rd2, -1;
    redux.sync.add.s32 %r1, %r2, -1;
    redux.sync.min.u32 %r1, %r2, -1;
    setp.lt.and.f32 %p1|%p2, %f1, %f2, %p3;
    set.lt.u32.f32 %r1, %f1, %f2;
    slct.f32.s32 %f1, %f2, %f3, %r1;
    sad.u32 %r1, %r2, %r3, %r4;
    mul24.lo.s32 %r1, %r2, %r3;
    mov.b64 {%r1, %r2}, %rd1;
    mov.b32 %r1, {%h1, %h2};
    brev.b64 %rd1, %rd2;
    clz.b64 %r1, %rd2;
    mul.hi.u64 %rd1, %rd2, %rd3;
    mad.wide.u16 %r1, %h1, %h2, %r2;
    add.sat.s32 %r1, %r2, %r3;
    cnot.b32 %r1, %r2;
    mov.u64 %rd1, %globaltimer;
    mov.u32 %r1, %lanemask_lt;
    mov.u32 %r1, %nwarpid;
    mov.u32 %r1, %clock;
    not.pred %p1, %p2;
    xor.pred %p1, %p2, %p3;
    mov.pred %p1, -1;
    div.rn.f64 %d1, %d2, %d3;
    max.f64 %d1, %d2, %d3;
    abs.f32 %f1, %f2;
    neg.f64 %d1, %d2;
    nanosleep.u32 5;
    membar.gl;
    fence.acq_rel.gpu;
    bar.warp.sync -1;
    selp.f32 %f1, 1.0, 0f00000000, %p1;
    atom.shared.add.u32 %r1, [sm], 1;
    atom.shared.cas.b32 %r1, [sm], 0, 1;
    atom.shared.exch.b64 %rd1, [sm], %rd2;
    red.shared.max.s32 [sm], %r1;
    atom.shared.inc.u32 %r1, [sm], 7;
    atom.shared.dec.u32 %r1, [sm], 7;
    red.shared.add.f32 [sm], %f1;
    red.shared.add.f64 [sm], %d1;
    st.shared.v4.f32 [sm], {%f1, %f2, %f3, %f1};
    ld.shared.v2.u16 {%h1, %h2}, [sm];
    ld.shared.u8 %h1, [sm+1];
    st.shared.u8 [sm], %r1;
    barrier.sync 0;
    cvta.shared.u64 %rd1, %rd2;
    mul.rn.f32 %f1, %f2, 0f3F000000;
    ld.shared.s8 %r1, [sm];
"""


@pytest.mark.parametrize("form", [line.strip() for line in FORMS.split("\n") if line.strip()])
def test_runs(form: str) -> None:
    outcome = run(HEAD + form + TAIL, "k", (1, 1, 1), (48, 1, 1), [])
    assert outcome.instructions is not None
    assert outcome.instructions >= 48 * 8
