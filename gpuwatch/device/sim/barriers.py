"""Barriers of a block: the one that everybody uses, and named ones with counts and reductions.

Where all barriers of a kernel are barrier 0 of all threads, lanes just wait and the driver lets
them go when every warp waits. Otherwise each of the 16 barriers has a record in the block's state.
"""

from __future__ import annotations

from gpuwatch.device.sim.emitter import Emitter
from gpuwatch.device.sim.ir import WARP, splat, vector
from gpuwatch.device.sim.layout import (
    BARRIER_COUNT,
    EXITED_PC,
    WAITING_PC,
    BarrierField,
    BlockField,
    LaunchField,
)
from gpuwatch.device.sim.program import Program
from gpuwatch.ptx.model import Instruction, Operand, Register

NUMBER = "%barrier number"
"""The barrier at which a lane waits."""
PHASE = "%barrier phase"
"""That barrier's phase when the lane came."""
_COUNTERS = vector("i32")


def waiting_at(following: int) -> int:
    """The program counter of lanes that wait at a barrier and then go on at a block."""
    return WAITING_PC + following


def declare_registers(program: Program) -> None:
    """Adds the registers that named barriers need."""
    if not program.one_barrier:
        program.registers |= {NUMBER: "b32", PHASE: "b32"}
        program.always_live |= {NUMBER, PHASE}


def arrive(e: Emitter, instruction: Instruction) -> bool:
    """Counts the active lanes; gives whether they must wait."""
    if e.program.one_barrier:
        return True
    ir = e.ir
    number, count, *rest = instruction.operands
    bits = ir.bits_of(e.mask_or_all())
    chosen, needed = (_of_first(e, operand, bits) for operand in (number, count))
    holds = ir.bits_of(e.value(rest[0], "pred")) if rest else "0"
    arguments = [
        ("ptr", "%slot"),
        ("i32", chosen),
        ("i32", needed),
        ("i32", _arriving(e, bits, needed)),
        ("i64", ir.load("i64", "%cycles")),
        ("i32", e.launch_value("i32", LaunchField.THREADS)),
        ("i32", ir.value(f"and i32 {holds}, {bits}")),
        ("i32", ir.value(f"and i32 {ir.value(f'xor i32 {holds}, -1')}, {bits}")),
    ]
    phase = ir.call("i32", "barrier_arrive", arguments)
    if "arrive" in instruction.tokens:
        return False
    e.write(Register(NUMBER), ir.broadcast("i32", chosen), "b32")
    e.write(Register(PHASE), ir.broadcast("i32", phase), "b32")
    return True


def _of_first(e: Emitter, operand: Operand, bits: str) -> str:
    """The operand in the first active lane."""
    lane = e.ir.call("i32", "llvm.cttz.i32", [("i32", bits), ("i1", "true")])
    return e.ir.value(f"extractelement {_COUNTERS} {e.value(operand, 'b32')}, i32 {lane}")


def _arriving(e: Emitter, bits: str, needed: str) -> str:
    """The threads that arrive. A count means whole warps: lanes that have exited come too."""
    ir = e.ir
    active = ir.call("i32", "llvm.ctpop.i32", [("i32", bits)])
    if e.full:
        return active
    held = ir.load(_COUNTERS, "%counters")
    gone = ir.bits_of(ir.compare("uge", "i32", held, splat("i32", EXITED_PC)))
    whole = ir.value(f"icmp eq i32 {ir.value(f'or i32 {gone}, {bits}')}, -1")
    counted = ir.value(f"icmp ne i32 {needed}, 0")
    both = ir.value(f"and i1 {whole}, {counted}")
    return ir.value(f"select i1 {both}, i32 {WARP}, i32 {active}")


def reduced(e: Emitter, instruction: Instruction) -> None:
    """The result of a barrier's reduction, in the lanes that it let go."""
    ir, how = e.ir, instruction.tokens[1]
    target, number = instruction.operands
    chosen = _of_first(e, number, ir.bits_of(e.mask_or_all()))
    slot = ir.call("ptr", "barrier_record", [("ptr", "%slot"), ("i32", chosen)])
    field = {"popc": BarrierField.YES, "or": BarrierField.YES, "and": BarrierField.NO}[how]
    count = ir.load("i32", ir.at(slot, field + BarrierField.RESULT))
    if how == "popc":
        e.write(target, ir.broadcast("i32", count), "u32")
        return
    condition = "eq" if how == "and" else "ne"
    e.write(target, ir.broadcast("i1", ir.value(f"icmp {condition} i32 {count}, 0")), "pred")


def release(e: Emitter) -> None:
    """On resuming: lanes whose barrier has completed may go on, at the barrier's time."""
    ir = e.ir
    counters = ir.load(_COUNTERS, "%counters")
    above = ir.compare("uge", "i32", counters, splat("i32", WAITING_PC))
    below = ir.compare("ult", "i32", counters, splat("i32", EXITED_PC))
    waiting = ir.binary("and", "i1", above, below)
    gone = waiting if e.program.one_barrier else _completed(e, waiting)
    moved = ir.binary("sub", "i32", counters, splat("i32", WAITING_PC))
    ir.store(_COUNTERS, ir.select(gone, "i32", moved, counters), "%counters")


def _completed(e: Emitter, waiting: str) -> str:
    ir = e.ir
    number = ir.binary("and", "i32", e.value(Register(NUMBER), "b32"), splat("i32", 15))
    offset = ir.binary("mul", "i32", number, splat("i32", BarrierField.BYTES))
    base = ir.at("%slot", BlockField.BARRIERS)
    places = ir.value(f"getelementptr i8, ptr {base}, {_COUNTERS} {offset}")
    phases = _gather(e, places, BarrierField.PHASE, "i32", waiting)
    passed = ir.compare("ne", "i32", phases, e.value(Register(PHASE), "b32"))
    gone = ir.binary("and", "i1", waiting, passed)
    times = _gather(e, places, BarrierField.RELEASED_AT, "i64", gone)
    latest = ir.call("i64", f"llvm.vector.reduce.smax.v{WARP}i64", [(vector("i64"), times)])
    some = ir.value(f"icmp ne i32 {ir.bits_of(gone)}, 0")
    after = ir.value(f"add i64 {latest}, {e.launch_value('i64', LaunchField.BARRIER_CYCLES)}")
    cycles = ir.load("i64", "%cycles")
    later = ir.call("i64", "llvm.smax.i64", [("i64", cycles), ("i64", after)])
    ir.store("i64", ir.value(f"select i1 {some}, i64 {later}, i64 {cycles}"), "%cycles")
    return gone


def _gather(e: Emitter, places: str, field: int, scalar: str, mask: str) -> str:
    ir = e.ir
    pointers = ir.value(f"getelementptr i8, {vector('ptr')} {places}, i64 {field}")
    arguments = [(vector("ptr"), pointers), ("i32", "4"), (vector("i1"), mask),
                 (vector(scalar), "zeroinitializer")]  # fmt: skip
    return ir.call(vector(scalar), f"llvm.masked.gather.v{WARP}{scalar}.v{WARP}p0", arguments)


def _increase(field: int, by: str, name: str) -> str:
    return (
        f"  %{name}.at = getelementptr i8, ptr %record, i64 {field}\n"
        f"  %{name}.old = load i32, ptr %{name}.at\n"
        f"  %{name} = add i32 %{name}.old, {by}\n"
        f"  store i32 %{name}, ptr %{name}.at\n"
    )


def _publish(field: int, name: str) -> str:
    return (
        f"  %{name}.at = getelementptr i8, ptr %record, i64 {field}\n"
        f"  %{name} = load i32, ptr %{name}.at\n"
        f"  %{name}.result = getelementptr i8, ptr %record, i64 {field + BarrierField.RESULT}\n"
        f"  store i32 %{name}, ptr %{name}.result\n"
        f"  store i32 0, ptr %{name}.at\n"
    )


FUNCTIONS = f"""
define internal ptr @barrier_record(ptr %slot, i32 %number) alwaysinline nounwind {{
  %known = and i32 %number, {BARRIER_COUNT - 1}
  %offset = mul i32 %known, {BarrierField.BYTES}
  %place = add i32 %offset, {BlockField.BARRIERS}
  %record = getelementptr i8, ptr %slot, i32 %place
  ret ptr %record
}}
define internal void @barrier_complete(ptr %slot, ptr %record) noinline nounwind {{
  %latest.at = getelementptr i8, ptr %record, i64 {BarrierField.LATEST}
  %latest = load i64, ptr %latest.at
  store i64 0, ptr %latest.at
  %released.at = getelementptr i8, ptr %record, i64 {BarrierField.RELEASED_AT}
  store i64 %latest, ptr %released.at
  %arrived.at = getelementptr i8, ptr %record, i64 {BarrierField.ARRIVED}
  store i32 0, ptr %arrived.at
{_publish(BarrierField.YES, "yes")}{_publish(BarrierField.NO, "no")}\
{_increase(BarrierField.PHASE, "1", "phase")}\
  %news.at = getelementptr i8, ptr %slot, i64 {BlockField.COMPLETED}
  %news.old = load i32, ptr %news.at
  %news = add i32 %news.old, 1
  store i32 %news, ptr %news.at
  ret void
}}
define internal i32 @barrier_arrive(ptr %slot, i32 %number, i32 %count, i32 %lanes, i64 %cycles,
                                    i32 %threads, i32 %holds, i32 %fails) noinline nounwind {{
  %record = call ptr @barrier_record(ptr %slot, i32 %number)
  %phase.at = getelementptr i8, ptr %record, i64 {BarrierField.PHASE}
  %phase = load i32, ptr %phase.at
  %count.at = getelementptr i8, ptr %record, i64 {BarrierField.COUNT}
  store i32 %count, ptr %count.at
  %holding = call i32 @llvm.ctpop.i32(i32 %holds)
  %failing = call i32 @llvm.ctpop.i32(i32 %fails)
{_increase(BarrierField.YES, "%holding", "yes")}{_increase(BarrierField.NO, "%failing", "no")}\
{_increase(BarrierField.ARRIVED, "%lanes", "arrived")}\
  %latest.at = getelementptr i8, ptr %record, i64 {BarrierField.LATEST}
  %latest.old = load i64, ptr %latest.at
  %latest = call i64 @llvm.smax.i64(i64 %latest.old, i64 %cycles)
  store i64 %latest, ptr %latest.at
  %full = call i1 @barrier_full(ptr %slot, ptr %record, i32 %threads)
  br i1 %full, label %complete, label %out
complete:
  call void @barrier_complete(ptr %slot, ptr %record)
  br label %out
out:
  ret i32 %phase
}}
define internal i1 @barrier_full(ptr %slot, ptr %record, i32 %threads) nounwind {{
  %count.at = getelementptr i8, ptr %record, i64 {BarrierField.COUNT}
  %count = load i32, ptr %count.at
  %exited.at = getelementptr i8, ptr %slot, i64 {BlockField.EXITED}
  %exited = load i32, ptr %exited.at
  %living = sub i32 %threads, %exited
  %all = icmp eq i32 %count, 0
  %needed = select i1 %all, i32 %living, i32 %count
  %arrived.at = getelementptr i8, ptr %record, i64 {BarrierField.ARRIVED}
  %arrived = load i32, ptr %arrived.at
  %some = icmp ne i32 %arrived, 0
  %enough = icmp uge i32 %arrived, %needed
  %full = and i1 %some, %enough
  ret i1 %full
}}
define internal void @barriers_recheck(ptr %slot, i32 %threads) noinline nounwind {{
entry:
  br label %head
head:
  %k = phi i32 [0, %entry], [%next, %tail]
  %record = call ptr @barrier_record(ptr %slot, i32 %k)
  %full = call i1 @barrier_full(ptr %slot, ptr %record, i32 %threads)
  br i1 %full, label %complete, label %tail
complete:
  call void @barrier_complete(ptr %slot, ptr %record)
  br label %tail
tail:
  %next = add i32 %k, 1
  %more = icmp ult i32 %next, {BARRIER_COUNT}
  br i1 %more, label %head, label %out
out:
  ret void
}}
"""
"""Counting arrivals; completing a barrier; and completing those that exits made full."""
