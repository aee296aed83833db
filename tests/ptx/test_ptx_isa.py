"""What instructions write, read and access, form by form."""

from __future__ import annotations

import pytest

from gpuwatch.ptx import isa, parse_fragment
from gpuwatch.ptx.isa import MemoryAccess
from gpuwatch.ptx.model import Address, Group, Instruction, Register, Symbol


def one(text: str) -> Instruction:
    (instruction,) = parse_fragment(text, "<test>")
    assert isinstance(instruction, Instruction)
    return instruction


# text: registers written, registers read
EFFECTS = {
    "add.s32 %r1, %r2, 3;": ("%r1", "%r2"),
    "@!%p1 add.s32 %r1, %r2, %r3;": ("%r1", "%r2 %r3 %p1"),
    "mov.u32 %r1, %tid.x;": ("%r1", "%tid.x"),
    "mov.u64 %rd1, table+8;": ("%rd1", ""),
    "mov.b64 {%r1, %r2}, %rd1;": ("%r1 %r2", "%rd1"),
    "mov.b64 {%r1, _}, %rd1;": ("%r1", "%rd1"),
    "mov.b64 %rd1, {%r1, %r2};": ("%rd1", "%r1 %r2"),
    "mov.f32 %f1, %v1.y;": ("%f1", "%v1"),
    "mov.f32 %v1.y, %f1;": ("%v1", "%v1 %f1"),
    "vadd.u32.u32.u32 %r1, %r2.h0, %r3.b1, %r4;": ("%r1", "%r2 %r3 %r4"),
    "ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];": ("%f1 %f2 %f3 %f4", "%rd1"),
    "ld.param.u64 %rd1, [k_param_0];": ("%rd1", ""),
    "st.shared.v2.b32 [%r1+4], {%r2, %r3};": ("", "%r1 %r2 %r3"),
    "atom.global.add.u32 %r1, [%rd1], %r2;": ("%r1", "%rd1 %r2"),
    "atom.shared.cas.b32 _, [%r3], %r1, %r2;": ("", "%r3 %r1 %r2"),
    "red.global.add.f32 [%rd1], %f1;": ("", "%rd1 %f1"),
    "setp.lt.s32 %p1, %r1, %r2;": ("%p1", "%r1 %r2"),
    "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;": ("%p1 %p2", "%r1 %r2 %p3"),
    "shfl.sync.down.b32 %r1|%p1, %r2, 16, 31, -1;": ("%r1 %p1", "%r2"),
    "match.all.sync.b32 %r1|%p1, %r2, %r3;": ("%r1 %p1", "%r2 %r3"),
    "vote.sync.ballot.b32 %r1, %p1, -1;": ("%r1", "%p1"),
    "vote.sync.any.pred %p1, !%p2, -1;": ("%p1", "%p2"),
    "elect.sync _|%p1, -1;": ("%p1", ""),
    "bar.sync 0;": ("", ""),
    "bar.sync %r1, %r2;": ("", "%r1 %r2"),
    "bar.warp.sync %r1;": ("", "%r1"),
    "bar.red.popc.u32 %r1, 0, %p1;": ("%r1", "%p1"),
    "barrier.cta.red.and.pred %p1, 0, !%p2;": ("%p1", "%p2"),
    "barrier.cluster.arrive.aligned;": ("", ""),
    "bra.uni $L1;": ("", ""),
    "@%p1 bra $L1;": ("", "%p1"),
    "brx.idx %r1, $targets;": ("", "%r1"),
    "call.uni (%r1), f, (%r2, 7);": ("%r1", "%r2"),
    "call (retval0), f, (param0, param1);": ("", ""),
    "call f, (%r1);": ("", "%r1"),
    "call (%r1, %r2), %rd1, (%r3), proto;": ("%r1 %r2", "%rd1 %r3"),
    "call f;": ("", ""),
    "nanosleep.u32 %r1;": ("", "%r1"),
    "ret;": ("", ""),
    "cp.async.ca.shared.global [%r1], [%rd1], 16, %r2;": ("", "%r1 %rd1 %r2"),
    "cp.async.wait_group 0;": ("", ""),
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[%r1], [%rd1, {%r2, %r3}], [%r4];": ("", "%r1 %rd1 %r2 %r3 %r4"),
    "mbarrier.init.shared.b64 [%r1], 32;": ("", "%r1"),
    "mbarrier.arrive.shared.b64 %rd1, [%r1], %r2;": ("%rd1", "%r1 %r2"),
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;": ("", "%r1 %r2"),
    "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2, %r3;": ("%p1", "%r1 %r2 %r3"),
    "mbarrier.pending_count.b64 %r1, %rd1;": ("%r1", "%rd1"),
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r3];": ("%r1 %r2", "%r3"),
    "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r3], {%r1, %r2};": ("", "%r3 %r1 %r2"),
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
    "{%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f5,%f6,%f7,%f8};": (
        "%f1 %f2 %f3 %f4",
        "%r1 %r2 %r3 %r4 %r5 %r6 %f5 %f6 %f7 %f8",
    ),
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2}, %rd1, %rd2, %p1, 1, 1, 0, 0;": (
        "%f1 %f2",
        "%f1 %f2 %rd1 %rd2 %p1",
    ),
    "wgmma.wait_group.sync.aligned 0;": ("", ""),
    "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1, %r2}, [%r3], %r4;": (
        "%r1 %r2",
        "%r3 %r4",
    ),
    "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1, %f2}, %r1;": (
        "",
        "%rd1 %f1 %f2 %r1",
    ),
    "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];": (
        "%f1 %f2 %f3 %f4",
        "%rd1 %f5 %f6",
    ),
    "suld.b.2d.b32.trap {%r1}, [%rd1, {%r2, %r3}];": ("%r1", "%rd1 %r2 %r3"),
    "sust.b.2d.b32.trap [%rd1, {%r2, %r3}], {%r1};": ("", "%rd1 %r2 %r3 %r1"),
    "multimem.ld_reduce.global.add.f32 %f1, [%rd1];": ("%f1", "%rd1"),
    "multimem.red.global.add.f32 [%rd1], %f1;": ("", "%rd1 %f1"),
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];": ("%r1", "%r2"),
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;": ("", "%r1"),
    "isspacep.shared %p1, %rd1;": ("%p1", "%rd1"),
    "setmaxnreg.inc.sync.aligned.u32 240;": ("", ""),
}


@pytest.mark.parametrize(("text", "effect"), EFFECTS.items(), ids=lambda each: str(each)[:60])
def test_written_and_read(text: str, effect: tuple[str, str]) -> None:
    instruction = one(text)
    assert (" ".join(isa.written(instruction)), " ".join(isa.read(instruction))) == effect


R1, RD1 = Address(Register("%r1")), Address(Register("%rd1"))
ACCESSES = {
    "ld.global.nc.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];": ("load", "global", 16, RD1),
    "ld.volatile.u8 %rs1, [%rd1];": ("load", "generic", 1, RD1),
    "ld.param.u64 %rd1, [p+8];": ("load", "param", 8, Address(Symbol("p"), 8)),
    "ld.const.b64 %rd2, [%rd1];": ("load", "const", 8, RD1),
    "ldu.global.f64 %fd1, [%rd1];": ("load", "global", 8, RD1),
    "st.local.v2.b16 [%rd1], {%rs1, %rs2};": ("store", "local", 4, RD1),
    "st.bulk.weak.shared::cta [%rd1], 256, 0;": ("store", "shared", None, RD1),
    "atom.acquire.gpu.global.cas.b128 %q1, [%rd1], %q2, %q3;": ("atomic", "global", 16, RD1),
    "atom.add.noftz.bf16x2 %r2, [%rd1], %r3;": ("atomic", "generic", 4, RD1),
    "red.global.add.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};": ("reduction", "global", 16, RD1),
    "prefetch.global.L2 [%rd1];": ("prefetch", "global", None, RD1),
    "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r2, %r3, %r4, %r5}, [%r1];": (
        "load",
        "shared",
        16,
        R1,
    ),
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};": ("store", "shared", 4, R1),
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r2}, [%rd1];": (
        "load",
        "global",
        16,
        RD1,
    ),
    "wmma.store.d.sync.aligned.row.m8n32k16.shared.f32 [%r1], {%f1};": ("store", "shared", 32, R1),
    "mbarrier.init.shared.b64 [%r1], 1;": ("store", "shared", 8, R1),
    "mbarrier.arrive.b64 %rd2, [%rd1];": ("atomic", "generic", 8, RD1),
    "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd2;": ("load", "shared", 8, R1),
    "multimem.st.global.f32 [%rd1], %f1;": ("store", "global", 4, RD1),
}


@pytest.mark.parametrize(("text", "access"), ACCESSES.items(), ids=lambda each: str(each)[:60])
def test_memory_access(text: str, access: tuple[str, str, int | None, Address]) -> None:
    found = isa.memory_access(one(text))
    assert found is not None
    assert (found.kind, found.space, found.bytes, *found.addresses) == access


def test_copies_name_both_sides() -> None:
    copy = isa.memory_access(one("cp.async.cg.shared::cta.global [%r1], [%rd1], 16, 8;"))
    assert copy == MemoryAccess("copy", "global", 16, (R1, RD1), "", "shared")
    out = isa.memory_access(one("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;"))
    assert out == MemoryAccess("copy", "shared", None, (RD1, R1), "cta", "global")


def test_tensor_copy_has_coordinates() -> None:
    text = (
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%r1], [%rd1, {%r2}], [%r3];"
    )
    copy = isa.memory_access(one(text))
    assert copy is not None
    assert (copy.space, copy.destination, copy.bytes) == ("global", "shared", None)
    assert copy.addresses[0] == R1
    assert isinstance(copy.addresses[1], Group)


def test_windows() -> None:
    remote = isa.memory_access(one("ld.shared::cluster.u32 %r2, [%r1];"))
    assert remote == MemoryAccess("load", "shared", 4, (R1,), "cluster")


@pytest.mark.parametrize(
    "text",
    [
        "add.s32 %r1, %r2, %r3;",
        "cp.async.commit_group;",
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];",
        "mbarrier.pending_count.b64 %r1, %rd1;",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1}, {%r1}, {%r2}, {%f2};",
        "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];",
        "cvta.to.global.u64 %rd1, %rd2;",
        "call f, (%r1);",
    ],
)
def test_no_memory_access(text: str) -> None:
    assert isa.memory_access(one(text)) is None


# text: ends a block, control may go on behind it, label
FLOW = {
    "bra $L1;": (True, False, "$L1"),
    "@%p1 bra $L1;": (True, True, "$L1"),
    "brx.idx.uni %r1, list;": (True, False, "list"),
    "ret;": (True, False, ""),
    "@%p1 exit;": (True, True, ""),
    "trap;": (True, False, ""),
    "call f;": (False, True, ""),
    "bar.sync 0;": (False, True, ""),
}


@pytest.mark.parametrize(("text", "expected"), FLOW.items(), ids=FLOW)
def test_control(text: str, expected: tuple[bool, bool, str]) -> None:
    each = one(text)
    found = (isa.ends_block(each), isa.falls_through(each), isa.branch_targets(each))
    assert found == expected


def test_called() -> None:
    assert isa.called(one("call.uni (%r1), f, (%r2);")) == Symbol("f")
    assert isa.called(one("call %rd1, (%r2), proto;")) == Register("%rd1")
    assert isa.called(one("bra f;")) is None


def test_carry() -> None:
    assert isa.writes_carry(one("add.cc.u32 %r1, %r2, %r3;"))
    assert not isa.reads_carry(one("add.cc.u32 %r1, %r2, %r3;"))
    assert isa.reads_carry(one("addc.u32 %r1, %r2, %r3;"))
