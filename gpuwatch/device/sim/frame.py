"""The frame around the blocks: entry, resuming, the dispatcher, suspending and the ends."""

from __future__ import annotations

from gpuwatch.device.sim.emitter import Emitter, register_slot
from gpuwatch.device.sim.ir import BITS, MASK_ALL, WARP, lanes, splat, vector
from gpuwatch.device.sim.layout import (
    EXITED_PC,
    WAITING_PC,
    LaunchField,
    WarpField,
    WarpState,
    WorkerField,
)
from gpuwatch.device.sim.program import Program

COUNTERS = vector("i32")
_SLOT_BYTES = 256


def saved_registers(program: Program) -> list[str]:
    """Registers that some lane may need behind a barrier."""
    live: set[str] = set()
    for block, out in zip(program.blocks, program.live_out, strict=True):
        last = program.instructions[block.end - 1]
        if last.opcode in ("bar", "barrier"):
            live |= out
    return sorted(live)


def warp_bytes(program: Program) -> int:
    """Size of a suspended warp."""
    return WarpField.REGISTERS + _SLOT_BYTES * len(saved_registers(program))


def prologue(e: Emitter) -> None:
    """Slots for registers, thread indices, and the way in: from the start or from a barrier."""
    ir = e.ir
    ir.label("entry")
    for name in e.program.registers:
        ir.emit(f"{register_slot(name)} = alloca {vector(e.scalar_of(name))}")
        ir.store(vector(e.scalar_of(name)), "zeroinitializer", register_slot(name))
    for name, kind in (("%mask", vector("i1")), ("%counters", COUNTERS), ("%cycles", "i64"),
                       ("%executed", "i64"), ("%pending", "i32"),
                       ("%local.base", vector("i64"))):  # fmt: skip
        ir.emit(f"{name} = alloca {kind}")
    for name in ("%scratch", "%scratch.2", "%scratch.3", "%scratch.4"):
        ir.emit(f"{name} = alloca [{WARP} x i64], align 64")
    ir.store("i64", "0", "%executed")
    ir.store("i64", ir.load("i64", ir.at("%context", WarpField.CYCLES)), "%cycles")
    linear = _thread_indices(e)
    _local_bases(e, linear)
    state = ir.load("i32", "%context")
    ir.branch(ir.value(f"icmp eq i32 {state}, {WarpState.FRESH}"), "fresh", "resume")
    _fresh(e, linear)
    _resume(e)
    _dispatch(e)


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


def local_stride(program: Program) -> int:
    """Bytes of local memory from one thread to the next."""
    return -(-program.local_bytes // 16) * 16


def _fresh(e: Emitter, linear: str) -> None:
    ir = e.ir
    ir.label("fresh")
    x, y, z = (e.launch_value("i32", LaunchField.BLOCK + 4 * axis) for axis in range(3))
    threads = ir.value(f"mul i32 {x}, {ir.value(f'mul i32 {y}, {z}')}")
    exists = ir.compare("ult", "i32", linear, ir.broadcast("i32", threads))
    counters = ir.select(exists, "i32", splat("i32", 0), splat("i32", EXITED_PC))
    ir.store(COUNTERS, counters, "%counters")
    ir.jump("dispatch")


def _resume(e: Emitter) -> None:
    ir = e.ir
    ir.label("resume")
    counters = ir.load(COUNTERS, ir.at("%context", WarpField.COUNTERS), 8)
    exited = ir.compare("uge", "i32", counters, splat("i32", EXITED_PC))
    released = ir.binary("sub", "i32", counters, splat("i32", WAITING_PC))
    ir.store(COUNTERS, ir.select(exited, "i32", counters, released), "%counters")
    for offset, name, scalar in _saved_slots(e):
        place = ir.at("%context", offset)
        if scalar == "i1":
            value = ir.value(f"bitcast i32 {ir.load('i32', place)} to {vector('i1')}")
        else:
            value = ir.load(vector(scalar), place, 8)
        ir.store(vector(scalar), value, register_slot(name))
    ir.jump("dispatch")


def _saved_slots(e: Emitter) -> list[tuple[int, str, str]]:
    return [
        (WarpField.REGISTERS + _SLOT_BYTES * k, name, e.scalar_of(name))
        for k, name in enumerate(saved_registers(e.program))
    ]


def _dispatch(e: Emitter) -> None:
    ir = e.ir
    ir.label("dispatch")
    counters = ir.load(COUNTERS, "%counters")
    least = ir.call("i32", f"llvm.vector.reduce.umin.v{WARP}i32", [(COUNTERS, counters)])
    mask = ir.compare("eq", "i32", counters, ir.broadcast("i32", least))
    ir.store(vector("i1"), mask, "%mask")
    asked = ir.value(f"load volatile i32, ptr {ir.at('%launch', LaunchField.STOP)}")
    ir.branch(ir.value(f"icmp eq i32 {asked}, 0"), "running", "stopped")
    ir.label("running")
    ir.branch(ir.value(f"icmp eq i32 {ir.bits_of(mask)}, -1"), "whole", "part")
    for label, copy in (("whole", "F"), ("part", "M")):
        ir.label(label)
        cases = " ".join(f"i32 {k}, label %{copy}{k}" for k in range(len(e.program.blocks)))
        ir.emit(f"switch i32 {least}, label %halt [{cases}]")
    ir.label("halt")
    ir.branch(ir.value(f"icmp uge i32 {least}, {EXITED_PC}"), "done", "wait")


def epilogue(e: Emitter) -> None:
    """Waiting at a barrier, done, and faulted."""
    ir = e.ir
    ir.label("wait")
    ir.store(COUNTERS, ir.load(COUNTERS, "%counters"), ir.at("%context", WarpField.COUNTERS), 8)
    for offset, name, scalar in _saved_slots(e):
        value, place = ir.load(vector(scalar), register_slot(name)), ir.at("%context", offset)
        if BITS[scalar] == 1:
            ir.store("i32", ir.bits_of(value), place)
        else:
            ir.store(vector(scalar), value, place, 8)
    _return(e, WarpState.WAITING)
    ir.label("all.done")
    ir.jump("done")
    ir.label("done")
    _return(e, WarpState.DONE)
    ir.label("stopped")
    e.position = -1
    e.fault(2, "zeroinitializer", MASK_ALL)
    ir.label("fault")
    _return(e, WarpState.FAULTED)


def _return(e: Emitter, state: int) -> None:
    ir = e.ir
    ir.store("i64", ir.load("i64", "%cycles"), ir.at("%context", WarpField.CYCLES))
    total = ir.at("%worker", WorkerField.INSTRUCTIONS)
    before = ir.load("i64", total)
    executed = ir.load("i64", "%executed")
    ir.store("i64", ir.value(f"add i64 {before}, {executed}"), total)
    ir.emit(f"ret i32 {state}")
