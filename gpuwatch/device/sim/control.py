"""Ends of basic blocks: branches, calls, returns, exits, barriers, traps; and their beginnings.

In an `F` copy all lanes are together and jump straight to the next block. In an `M` copy the
lanes of `%mask` get a new program counter and the dispatcher picks who goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuwatch.device.sim import barriers
from gpuwatch.device.sim.emitter import Emitter
from gpuwatch.device.sim.ir import splat, vector
from gpuwatch.device.sim.layout import (
    EXITED_PC,
    MEETING_PC,
    PLAIN_QUANTUM,
    WAITING_PC,
    FaultKind,
    LaunchField,
)
from gpuwatch.device.sim.program import (
    BARRIER,
    CALL,
    RETURN,
    RETURN_POINT,
    entry_label,
    member_mask,
    symbol_name,
)
from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Immediate, Instruction, Operand, Register

COUNTERS = vector("i32")


def leave(e: Emitter, last: Instruction) -> None:
    """Emits how the block that ends with `last` goes on."""
    ENDS.get(last.opcode, _fall_through)(e, last)


def _fall_through(e: Emitter, _: Instruction) -> None:
    following = e.program.blocks[e.block].successors[-1]
    if following < len(e.program.blocks) and e.program.blocks[following].joined:
        e.ir.jump(f"{'F' if e.full else 'M'}{following}")
    else:
        _go(e, following)


def _counter(e: Emitter, target: int) -> int:
    return EXITED_PC if target == len(e.program.blocks) else target


def _go(e: Emitter, target: int) -> None:
    """All active lanes go on at block `target`."""
    if not e.full:
        exits = target == len(e.program.blocks)
        move_lanes(e, splat("i32", _counter(e, target)), exits=exits)
    elif target == len(e.program.blocks):
        e.ir.jump("all.done")
    elif target <= e.block:
        _go_back(e, target)
    else:
        e.ir.jump(f"F{target}")


def _go_back(e: Emitter, target: int) -> None:
    """On the way back in a loop: lets others run, or ends the run when the host asks for it."""
    ir = e.ir
    cycles, limit = ir.load("i64", "%cycles"), ir.load("i64", "%limit")
    fresh, tired = ir.fresh("fresh"), ir.fresh("tired")
    within = ir.value(f"icmp sle i64 {cycles}, {limit}")
    ir.emit(f"br i1 {within}, label %{fresh}, label %{tired}, !prof !0")
    ir.label(tired)
    if e.program.polls:
        ir.store(COUNTERS, splat("i32", target), "%counters")
        ir.jump("pause")
    else:
        more, stop = ir.fresh("more"), ir.fresh("stop")
        ir.store("i64", ir.value(f"add i64 {cycles}, {PLAIN_QUANTUM}"), "%limit")
        ir.branch(is_going(e), more, stop)
        ir.label(stop)
        ir.store(COUNTERS, splat("i32", target), "%counters")
        ir.jump("stopped")
        ir.label(more)
        ir.jump(fresh)
    ir.label(fresh)
    ir.jump(f"F{target}")


def is_going(e: Emitter) -> str:
    """Whether the host has not asked to stop, as a scalar i1."""
    asked = e.ir.value(f"load volatile i32, ptr {e.ir.at('%launch', LaunchField.STOP)}")
    return e.ir.value(f"icmp eq i32 {asked}, 0")


def move_lanes(e: Emitter, counters: str, *, exits: bool = False) -> None:
    """The active lanes of an `M` copy take these program counters.

    When some exit, lanes that wait for others look again whether all have come.
    """
    ir = e.ir
    mask, held = ir.load(vector("i1"), "%mask"), ir.load(COUNTERS, "%counters")
    moved = ir.select(mask, "i32", counters, held)
    if exits and any(block.meets for block in e.program.blocks):
        again = ir.binary("sub", "i32", moved, splat("i32", MEETING_PC))
        meeting = ir.compare("ult", "i32", again, splat("i32", WAITING_PC - MEETING_PC))
        moved = ir.select(meeting, "i32", again, moved)
    ir.store(COUNTERS, moved, "%counters")
    ir.jump("dispatch")


def _guard(e: Emitter, instruction: Instruction) -> str:
    assert instruction.guard is not None
    taken = e.value(Register(instruction.guard.register), "pred")
    return e.invert(taken) if instruction.guard.negated else taken


def _jump(e: Emitter, instruction: Instruction) -> None:
    """bra, ret and exit: `successors` are where it goes and, with a guard, the next block."""
    successors = e.program.blocks[e.block].successors
    if instruction.guard is None:
        _go(e, successors[0])
    else:
        _split(e, _guard(e, instruction), *successors)


def _split(e: Emitter, taken: str, target: int, following: int) -> None:
    """Lanes of `taken` go to block `target`, the other active ones to `following`."""
    ir = e.ir
    counters = (splat("i32", _counter(e, block)) for block in (target, following))
    chosen = ir.select(taken, "i32", *counters)
    if not e.full:
        move_lanes(e, chosen, exits=len(e.program.blocks) in (target, following))
        return
    bits = ir.bits_of(taken)
    every, some, none, mixed = (ir.fresh(name) for name in ("every", "some", "none", "mixed"))
    ir.branch(ir.value(f"icmp eq i32 {bits}, -1"), every, some)
    ir.label(every)
    _go(e, target)
    ir.label(some)
    ir.branch(ir.value(f"icmp eq i32 {bits}, 0"), none, mixed)
    ir.label(none)
    _go(e, following)
    ir.label(mixed)
    ir.store(COUNTERS, chosen, "%counters")
    ir.jump("dispatch")


def _scatter(e: Emitter, counters: str, targets: Sequence[int]) -> None:
    """Each active lane goes to its own of the `targets`, given as program counters."""
    ir = e.ir
    if not e.full:
        move_lanes(e, counters)
        return
    first = ir.value(f"extractelement {COUNTERS} {counters}, i32 0")
    same = ir.compare("eq", "i32", counters, ir.broadcast("i32", first))
    together, apart = ir.fresh("together"), ir.fresh("apart")
    ir.branch(ir.value(f"icmp eq i32 {ir.bits_of(same)}, -1"), together, apart)
    ir.label(together)
    places = {target: ir.fresh("to") for target in dict.fromkeys(targets)}
    cases = " ".join(f"i32 {_counter(e, t)}, label %{place}" for t, place in places.items())
    ir.emit(f"switch i32 {first}, label %{apart} [{cases}]")
    for target, place in places.items():
        ir.label(place)
        _go(e, target)
    ir.label(apart)
    ir.store(COUNTERS, counters, "%counters")
    ir.jump("dispatch")


def _chosen(e: Emitter, value: str, scalar: str, targets: Sequence[tuple[int, int]]) -> str:
    """Program counters by what `value` equals among (value, block); -1 for none of them."""
    counters = splat("i32", -1)
    for wanted, block in targets:
        equal = e.ir.compare("eq", scalar, value, splat(scalar, wanted))
        counters = e.ir.select(equal, "i32", splat("i32", _counter(e, block)), counters)
    return counters


def _check_chosen(e: Emitter, counters: str, kind: int, values: str) -> None:
    """Faults where an active lane has no program counter."""
    ir = e.ir
    lost = ir.compare("eq", "i32", counters, splat("i32", -1))
    lost = ir.binary("and", "i1", lost, e.mask_or_all())
    e.fault_unless(ir.value(f"icmp eq i32 {ir.bits_of(lost)}, 0"), kind, values, lost)


def _indexed(e: Emitter, instruction: Instruction) -> None:
    """brx.idx: lane by lane to one of a list of labels."""
    program = e.program
    labels = program.targets[isa.branch_targets(instruction)]
    blocks = [program.block_at(label) for label in labels]
    index = e.value(instruction.operands[0], "u32")
    counters = _chosen(e, index, "i32", list(enumerate(blocks)))
    _check_chosen(e, counters, FaultKind.BRANCH, e.ir.cast("zext", "i32", index, "i64"))
    _scatter(e, counters, blocks)


def _call(e: Emitter, instruction: Instruction) -> None:
    program = e.program
    site = program.call_site(instruction)
    back = splat("i32", program.block_at(site.back))
    e.write(Register(RETURN_POINT), back, "b32")
    entries = [program.block_at(entry_label(name)) for name in site.callees]
    if len(instruction.operands) == 1:
        _go(e, entries[0])
        return
    address = e.value(instruction.operands[1], "u64")
    known = [e.symbols[name] for name in site.callees]
    counters = _chosen(e, address, "i64", list(zip(known, entries, strict=True)))
    _check_chosen(e, counters, FaultKind.CALL, address)
    _scatter(e, counters, entries)


def _return(e: Emitter, instruction: Instruction) -> None:
    name = symbol_name(instruction)
    backs = [site.back for site in e.program.calls if name in site.callees]
    point = e.value(instruction.operands[1], "b32")
    _scatter(e, point, [e.program.block_at(back) for back in backs])


def _trap(e: Emitter, instruction: Instruction) -> None:
    if instruction.guard is None:
        e.fault(FaultKind.TRAP, "zeroinitializer", e.mask_or_all())
        return
    hit = _guard(e, instruction)
    if not e.full:
        hit = e.ir.binary("and", "i1", hit, e.mask_or_all())
    none = e.ir.value(f"icmp eq i32 {e.ir.bits_of(hit)}, 0")
    e.fault_unless(none, FaultKind.TRAP, "zeroinitializer", hit)
    _go(e, e.program.blocks[e.block].successors[-1])


def _barrier(e: Emitter, instruction: Instruction) -> None:
    following = e.program.blocks[e.block].successors[0]
    if barriers.arrive(e, instruction):
        waiting = splat("i32", barriers.waiting_at(following))
        if e.full:
            e.ir.store(COUNTERS, waiting, "%counters")
            e.ir.jump("dispatch")
        else:
            move_lanes(e, waiting)
    else:
        _fall_through(e, instruction)


ENDS: dict[str, Callable[[Emitter, Instruction], None]] = {
    "bra": _jump,
    "ret": _jump,
    "exit": _jump,
    "brx": _indexed,
    "trap": _trap,
    BARRIER: _barrier,
    CALL: _call,
    RETURN: _return,
}


def meet(e: Emitter, instruction: Instruction) -> None:
    """The head of an `M` copy whose first instruction waits for the lanes of its member mask.

    Lanes whose members are all here, or have exited, go on; the others wait for them.
    """
    ir = e.ir
    held, mask = ir.load(COUNTERS, "%counters"), ir.load(vector("i1"), "%mask")
    operand = member_mask(instruction)
    if operand is None or _names_all(operand):
        _meet_all(e, held, mask)
        return
    members = e.value(operand, "b32")
    arguments = [(COUNTERS, held), (vector("i1"), mask), (COUNTERS, members), ("i32", str(e.block))]
    counters = ir.call(COUNTERS, "meet", arguments)
    ready = ir.compare("eq", "i32", counters, splat("i32", e.block))
    ir.store(COUNTERS, counters, "%counters")
    ir.store(vector("i1"), ready, "%mask")
    some = ir.fresh("some")
    bits = ir.bits_of(ready)
    ir.branch(ir.value(f"icmp eq i32 {bits}, 0"), "dispatch", some)
    ir.label(some)
    _go_together(e, bits)


def _names_all(operand: Operand) -> bool:
    return isinstance(operand, Immediate) and int(operand.value) & 0xFFFFFFFF == 0xFFFFFFFF


def _meet_all(e: Emitter, held: str, mask: str) -> None:
    ir = e.ir
    waiting = splat("i32", waiting_here(e))
    here = ir.binary("or", "i1", mask, ir.compare("eq", "i32", held, waiting))
    exited = ir.compare("uge", "i32", held, splat("i32", EXITED_PC))
    ir.store(COUNTERS, ir.select(here, "i32", waiting, held), "%counters")
    ir.store(vector("i1"), here, "%mask")
    present = ir.bits_of(ir.binary("or", "i1", here, exited))
    all_here = ir.fresh("here")
    ir.branch(ir.value(f"icmp eq i32 {present}, -1"), all_here, "dispatch")
    ir.label(all_here)
    _go_together(e, ir.bits_of(here))


def _go_together(e: Emitter, bits: str) -> None:
    """On with the `F` copy when all 32 lanes are here."""
    part = e.ir.fresh("part")
    e.ir.branch(e.ir.value(f"icmp eq i32 {bits}, -1"), f"F{e.block}", part)
    e.ir.label(part)


def waiting_here(e: Emitter) -> int:
    """The program counter of lanes that wait at the head of the block."""
    return MEETING_PC + e.block


FUNCTIONS = f"""
define internal <32 x i32> @meet(<32 x i32> %counters, <32 x i1> %mask, <32 x i32> %members,
                                 i32 %block) noinline nounwind {{
  %waiting.counter = add i32 %block, {MEETING_PC}
  %w.first = insertelement <32 x i32> poison, i32 %waiting.counter, i32 0
  %waiting = shufflevector <32 x i32> %w.first, <32 x i32> poison, <32 x i32> zeroinitializer
  %b.first = insertelement <32 x i32> poison, i32 %block, i32 0
  %going = shufflevector <32 x i32> %b.first, <32 x i32> poison, <32 x i32> zeroinitializer
  %waits = icmp eq <32 x i32> %counters, %waiting
  %here = or <32 x i1> %mask, %waits
  %exited = icmp uge <32 x i32> %counters, splat (i32 {EXITED_PC})
  %present = or <32 x i1> %here, %exited
  %bits = bitcast <32 x i1> %present to i32
  %absent.bits = xor i32 %bits, -1
  %a.first = insertelement <32 x i32> poison, i32 %absent.bits, i32 0
  %absent = shufflevector <32 x i32> %a.first, <32 x i32> poison, <32 x i32> zeroinitializer
  %missing = and <32 x i32> %members, %absent
  %complete = icmp eq <32 x i32> %missing, zeroinitializer
  %own = select <32 x i1> %complete, <32 x i32> %going, <32 x i32> %waiting
  %result = select <32 x i1> %here, <32 x i32> %own, <32 x i32> %counters
  ret <32 x i32> %result
}}
"""
"""The program counters of a warp that has come to a meeting: of the lanes that are here, those
whose members have all come get the block's own, the others wait."""
