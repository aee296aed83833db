"""The frame around the blocks: entry, resuming, suspending and the ends."""

from __future__ import annotations

from gpuwatch.device.sim import barriers
from gpuwatch.device.sim.control import is_going
from gpuwatch.device.sim.dispatch import dispatch
from gpuwatch.device.sim.emitter import Emitter, register_slot
from gpuwatch.device.sim.ir import BITS, MASK_ALL, SCALAR, WARP, lanes, splat, vector
from gpuwatch.device.sim.layout import (
    EXITED_PC,
    PLAIN_QUANTUM,
    POLLING_QUANTUM,
    WAITING_PC,
    BlockField,
    FaultKind,
    LaunchField,
    WarpField,
    WarpState,
    WorkerField,
)
from gpuwatch.device.sim.program import BARRIER, Program, align_up

COUNTERS = vector("i32")


def saved_registers(program: Program) -> list[str]:
    """Registers that some lane may need when the warp goes on after it was suspended."""
    blocks = list(zip(program.blocks, program.live_in, program.live_out, strict=True))
    if program.polls:
        return sorted(frozenset().union(*(live for _, live, _ in blocks)))
    live: set[str] = set()
    for block, live_in, live_out in blocks:
        if program.instructions[block.end - 1].opcode == BARRIER:
            live |= live_out
        if block.meets and not program.one_barrier:
            live |= live_in
    return sorted(live)


def _saved_slots(program: Program) -> list[tuple[int, str, str]]:
    """Offset, name and scalar type of each."""
    offset, slots = WarpField.REGISTERS, []
    for name in saved_registers(program):
        scalar = SCALAR[program.registers[name]]
        slots.append((offset, name, scalar))
        offset += max(64, WARP * BITS[scalar] // 8)
    return slots


def warp_bytes(program: Program) -> int:
    """Size of a suspended warp."""
    slots = _saved_slots(program)
    if not slots:
        return WarpField.REGISTERS
    offset, _, scalar = slots[-1]
    return offset + max(64, WARP * BITS[scalar] // 8)


def local_stride(program: Program) -> int:
    """Bytes of local memory from one thread to the next."""
    return align_up(program.local_bytes, 16)


def quantum(program: Program) -> int:
    return POLLING_QUANTUM if program.polls else PLAIN_QUANTUM


_VARIABLES = (
    ("%mask", vector("i1")), ("%counters", COUNTERS), ("%cycles", "i64"), ("%executed", "i64"),
    ("%pending", "i32"), ("%local.base", vector("i64")), ("%limit", "i64"), ("%turn", "i64"),
    ("%hidden", "i32"), ("%least", "i32"), ("%state", "i32"),
)  # fmt: skip


def prologue(e: Emitter) -> None:
    """Slots for registers, thread indices, and the way in: from the start or from a wait."""
    ir = e.ir
    ir.label("entry")
    for name in e.program.registers:
        ir.emit(f"{register_slot(name)} = alloca {vector(e.scalar_of(name))}")
        ir.store(vector(e.scalar_of(name)), "zeroinitializer", register_slot(name))
    for name, kind in _VARIABLES:
        ir.emit(f"{name} = alloca {kind}")
    for name in ("%scratch", "%scratch.2", "%scratch.3", "%scratch.4"):
        ir.emit(f"{name} = alloca [{WARP} x i64], align 64")
    for name, kind in (("%executed", "i64"), ("%hidden", "i32")):
        ir.store(kind, "0", name)
    ir.store(vector("i1"), "zeroinitializer", "%mask")
    ir.store("i64", ir.load("i64", ir.at("%context", WarpField.CYCLES)), "%cycles")
    if not e.program.one_barrier:
        seen = ir.load("i32", ir.at("%slot", BlockField.COMPLETED))
        ir.store("i32", seen, ir.at("%context", WarpField.SEEN))
    linear = _thread_indices(e)
    _local_bases(e, linear)
    state = ir.load("i32", "%context")
    ir.branch(ir.value(f"icmp eq i32 {state}, {WarpState.FRESH}"), "fresh", "resume")
    _fresh(e, linear)
    _resume(e, state)
    ir.label("begin")
    limit = ir.value(f"add i64 {ir.load('i64', '%cycles')}, {quantum(e.program)}")
    ir.store("i64", limit, "%limit")
    ir.store("i64", limit, "%turn")
    ir.jump("dispatch")
    dispatch(e)


def _thread_indices(e: Emitter) -> str:
    """Stores %tid; gives the thread's index in the block."""
    ir = e.ir
    first = ir.broadcast("i32", ir.value("mul i32 %warp, 32"))
    linear = ir.binary("add", "i32", first, lanes("i32"))
    x, y = (
        ir.broadcast("i32", e.launch_value("i32", LaunchField.BLOCK + 4 * axis))
        for axis in range(2)
    )
    rows = ir.binary("udiv", "i32", linear, x)
    indices = {
        "x": ir.binary("urem", "i32", linear, x),
        "y": ir.binary("urem", "i32", rows, y),
        "z": ir.binary("udiv", "i32", rows, y),
    }
    for axis, value in indices.items():
        ir.emit(f"%tid.{axis} = alloca {COUNTERS}")
        ir.store(COUNTERS, value, f"%tid.{axis}")
    return linear


def _local_bases(e: Emitter, linear: str) -> None:
    ir = e.ir
    host = ir.broadcast("i64", ir.value("ptrtoint ptr %local to i64"))
    size = splat("i64", local_stride(e.program))
    offset = ir.binary("mul", "i64", ir.cast("zext", "i32", linear, "i64"), size)
    ir.store(vector("i64"), ir.binary("add", "i64", host, offset), "%local.base")


def _fresh(e: Emitter, linear: str) -> None:
    ir = e.ir
    ir.label("fresh")
    threads = ir.broadcast("i32", e.launch_value("i32", LaunchField.THREADS))
    exists = ir.compare("ult", "i32", linear, threads)
    entry, exited = splat("i32", e.program.entry), splat("i32", EXITED_PC)
    ir.store(COUNTERS, ir.select(exists, "i32", entry, exited), "%counters")
    if not e.program.one_barrier:
        living = ir.call("i32", "llvm.ctpop.i32", [("i32", ir.bits_of(exists))])
        never = ir.value(f"sub i32 {WARP}, {living}")
        ir.store("i32", never, ir.at("%context", WarpField.EXITED))
    ir.jump("begin")


def _resume(e: Emitter, state: str) -> None:
    ir = e.ir
    ir.label("resume")
    ir.store(COUNTERS, ir.load(COUNTERS, ir.at("%context", WarpField.COUNTERS), 8), "%counters")
    for offset, name, scalar in _saved_slots(e.program):
        place = ir.at("%context", offset)
        if scalar == "i1":
            value = ir.value(f"bitcast i32 {ir.load('i32', place)} to {vector('i1')}")
        else:
            value = ir.load(vector(scalar), place, 8)
        ir.store(vector(scalar), value, register_slot(name))
    if not e.program.one_barrier:
        barriers.release(e)
        ir.jump("begin")
        return
    ir.branch(ir.value(f"icmp eq i32 {state}, {WarpState.RELEASED}"), "release", "begin")
    ir.label("release")
    barriers.release(e)
    ir.jump("begin")


def epilogue(e: Emitter) -> None:
    """Nobody can go on; suspending; done; stopped; faulted."""
    ir = e.ir
    ir.label("blocked")
    counters = ir.load(COUNTERS, "%counters")
    meeting = ir.compare("ult", "i32", counters, splat("i32", WAITING_PC))
    some_meet = ir.value(f"icmp ne i32 {ir.bits_of(meeting)}, 0")
    below = ir.compare("ult", "i32", counters, splat("i32", EXITED_PC))
    waiting = ir.binary("xor", "i1", below, meeting)
    none_wait = ir.value(f"icmp eq i32 {ir.bits_of(waiting)}, 0")
    stuck = some_meet if e.program.one_barrier else none_wait
    ir.store("i32", ir.value(f"select i1 {stuck}, i32 {WarpState.STUCK}, "
                             f"i32 {WarpState.WAITING}"), "%state")  # fmt: skip
    ir.jump("suspend")
    ir.label("pause")
    ir.branch(is_going(e), "pause.on", "stopped")
    ir.label("pause.on")
    ir.store("i32", str(WarpState.PAUSED), "%state")
    ir.jump("suspend")
    ir.label("suspend")
    for offset, name, scalar in _saved_slots(e.program):
        value, place = ir.load(vector(scalar), register_slot(name)), ir.at("%context", offset)
        if BITS[scalar] == 1:
            ir.store("i32", ir.bits_of(value), place)
        else:
            ir.store(vector(scalar), value, place, 8)
    ir.jump("return")
    ir.label("all.done")
    ir.store(COUNTERS, splat("i32", EXITED_PC), "%counters")
    ir.jump("done")
    ir.label("done")
    ir.store("i32", str(WarpState.DONE), "%state")
    ir.jump("return")
    ir.label("stopped")
    e.position = -1
    e.fault(FaultKind.STOPPED, "zeroinitializer", MASK_ALL)
    ir.label("fault")
    ir.store("i32", str(WarpState.FAULTED), "%state")
    ir.jump("return")
    ir.label("return")
    _return(e)


def _return(e: Emitter) -> None:
    ir = e.ir
    counters = ir.load(COUNTERS, "%counters")
    ir.store(COUNTERS, counters, ir.at("%context", WarpField.COUNTERS), 8)
    ir.store("i64", ir.load("i64", "%cycles"), ir.at("%context", WarpField.CYCLES))
    if not e.program.one_barrier:
        _count_exits(e, counters)
    total = ir.at("%worker", WorkerField.INSTRUCTIONS)
    before = ir.load("i64", total)
    executed = ir.load("i64", "%executed")
    ir.store("i64", ir.value(f"add i64 {before}, {executed}"), total)
    ir.emit(f"ret i32 {ir.load('i32', '%state')}")


def _count_exits(e: Emitter, counters: str) -> None:
    """Adds the lanes that have exited since the last time to the block's exited threads."""
    ir = e.ir
    gone = ir.compare("uge", "i32", counters, splat("i32", EXITED_PC))
    now = ir.call("i32", "llvm.ctpop.i32", [("i32", ir.bits_of(gone))])
    known = ir.at("%context", WarpField.EXITED)
    fresh = ir.value(f"sub i32 {now}, {ir.load('i32', known)}")
    ir.store("i32", now, known)
    total = ir.at("%slot", BlockField.EXITED)
    ir.store("i32", ir.value(f"add i32 {ir.load('i32', total)}, {fresh}"), total)
