"""A program as LLVM IR: one function that runs a warp until it waits at a barrier or ends.

Each basic block is emitted twice. `F` copies are for warps with all 32 lanes together and use
no masks; they jump straight to each other. `M` copies run the lanes of `%mask`; behind them the
dispatcher takes the lanes with the smallest program counter next (a counter is a block's index).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpuwatch.device.sim import (
    emit_atomic,
    emit_bits,
    emit_compare,
    emit_convert,
    emit_float,
    emit_integer,
    emit_memory,
    emit_warp,
)
from gpuwatch.device.sim.driver import driver
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, special_registers
from gpuwatch.device.sim.frame import epilogue, prologue, warp_bytes
from gpuwatch.device.sim.ir import MASK_ALL, splat, vector
from gpuwatch.device.sim.layout import EXITED_PC, WAITING_PC, FaultKind, LaunchField
from gpuwatch.device.sim.program import Program, location
from gpuwatch.device.sim.support import DECLARATIONS, FUNCTIONS
from gpuwatch.errors import Location, UserError
from gpuwatch.ptx.model import Immediate, Instruction, Module, Register

OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {
    **emit_memory.OPCODES,
    **emit_integer.OPCODES,
    **emit_float.OPCODES,
    **emit_compare.OPCODES,
    **emit_convert.OPCODES,
    **emit_bits.OPCODES,
    **emit_warp.OPCODES,
    **emit_atomic.OPCODES,
}
SIGNATURE = (
    "define internal i32 @warp(ptr noalias %context, ptr noalias readonly %launch, "
    "ptr noalias readonly %parameters, ptr noalias %worker, ptr %shared, ptr %local, "
    "i32 %block.x, i32 %block.y, i32 %block.z, i32 %warp, i32 %sm) #0 {"
)
COUNTERS = vector("i32")


def generate(module: Module, program: Program, symbols: Mapping[str, int]) -> str:
    """The module's IR. Raises UserError that lists every instruction it cannot execute."""
    e = Emitter(program, symbols)
    e.specials = special_registers()
    problems = _emit_blocks(e)
    if problems:
        raise _unsupported(module, problems)
    body = e.ir.lines
    e.ir.lines = []
    prologue(e)
    head, e.ir.lines = e.ir.lines, []
    epilogue(e)
    text = "\n".join([SIGNATURE, *head, *body, *e.ir.lines, "}"])
    declarations = "\n".join(sorted(e.ir.declarations | DECLARATIONS))
    attributes = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
    weights = '!0 = !{!"branch_weights", i32 100000, i32 1}'
    helpers = "\n".join(e.ir.functions.values())
    parts = [declarations, FUNCTIONS, helpers, text, driver(warp_bytes(program))]
    return "\n".join([*parts, attributes, weights, ""])


def _emit_blocks(e: Emitter) -> list[tuple[Instruction, str]]:
    problems: dict[int, tuple[Instruction, str]] = {}
    for index, block in enumerate(e.program.blocks):
        for full in (True, False):
            e.block, e.full = index, full
            e.guard = None
            e.ir.label(f"{'F' if full else 'M'}{index}")
            _account(e, index, block.end - block.first)
            for position in range(block.first, block.end):
                e.position = position
                instruction = e.program.instructions[position]
                try:
                    _emit(e, instruction)
                except UnsupportedError as error:
                    problems[position] = (instruction, str(error))
            e.guard = None
            _leave(e, e.program.instructions[block.end - 1])
    return [problems[k] for k in sorted(problems)]


def _emit(e: Emitter, instruction: Instruction) -> None:
    opcode = instruction.opcode
    if opcode in _TERMINATORS or _is_warp_barrier(instruction):
        _check_barrier(instruction)
        return
    if opcode not in OPCODES:
        raise UnsupportedError(f"opcode {opcode}")
    e.begin(instruction)
    try:
        OPCODES[opcode](e, instruction)
    except (KeyError, ValueError, IndexError) as error:
        raise UnsupportedError(f"this form of {opcode}") from error


def _is_warp_barrier(instruction: Instruction) -> bool:
    return instruction.opcode == "bar" and "warp" in instruction.tokens


def _is_barrier(instruction: Instruction) -> bool:
    return instruction.opcode in ("bar", "barrier") and not _is_warp_barrier(instruction)


def _check_barrier(instruction: Instruction) -> None:
    """Only the barrier of all the block's threads; there is one."""
    if not _is_barrier(instruction):
        return
    number = instruction.operands[0]
    whole = isinstance(number, Immediate) and number.value == 0 and len(instruction.operands) == 1
    if "sync" not in instruction.tokens or not whole:
        raise UnsupportedError("a barrier of other than all the block's threads")


def _account(e: Emitter, index: int, count: int) -> None:
    """Adds the block's cycles and its executed thread instructions."""
    ir = e.ir
    e.add_cycles(e.launch_value("i64", LaunchField.COSTS + 8 * index))
    executed = str(32 * count)
    if not e.full:
        lanes = ir.call("i32", "llvm.ctpop.i32", [("i32", ir.bits_of(e.mask_or_all()))])
        wide = ir.value(f"zext i32 {lanes} to i64")
        executed = ir.value(f"mul i64 {wide}, {count}")
    before = ir.load("i64", "%executed")
    ir.store("i64", ir.value(f"add i64 {before}, {executed}"), "%executed")


def _leave(e: Emitter, last: Instruction) -> None:
    """The end of a block: a branch, an exit, a barrier, a trap, or on to the next block."""
    _TERMINATORS.get("bar" if _is_barrier(last) else last.opcode, _fall_through)(e, last)


def _fall_through(e: Emitter, _: Instruction) -> None:
    _go(e, e.program.blocks[e.block].successors[-1])


def _go(e: Emitter, target: int) -> None:
    """All active lanes go on at block `target`."""
    count = len(e.program.blocks)
    if not e.full:
        _move_lanes(e, EXITED_PC if target == count else target)
    elif target == count:
        e.ir.jump("all.done")
    elif target <= e.block:
        _check_stop(e)
        e.ir.jump(f"F{target}")
    else:
        e.ir.jump(f"F{target}")


def _check_stop(e: Emitter) -> None:
    """On the way back in a loop: ends the run when the host asks for it."""
    asked = e.ir.value(f"load volatile i32, ptr {e.ir.at('%launch', LaunchField.STOP)}")
    going = e.ir.value(f"icmp eq i32 {asked}, 0")
    e.fault_unless(going, FaultKind.STOPPED, "zeroinitializer", MASK_ALL)


def _move_lanes(e: Emitter, counter: int) -> None:
    ir = e.ir
    mask, held = ir.load(vector("i1"), "%mask"), ir.load(COUNTERS, "%counters")
    ir.store(COUNTERS, ir.select(mask, "i32", splat("i32", counter), held), "%counters")
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
        return
    _split(e, _guard(e, instruction), *successors)


def _split(e: Emitter, taken: str, target: int, following: int) -> None:
    """Lanes of `taken` go to block `target`, the other active ones to `following`."""
    ir = e.ir
    count = len(e.program.blocks)
    counters = [EXITED_PC if block == count else block for block in (target, following)]
    chosen = ir.select(taken, "i32", *(splat("i32", counter) for counter in counters))
    if not e.full:
        mask, held = ir.load(vector("i1"), "%mask"), ir.load(COUNTERS, "%counters")
        ir.store(COUNTERS, ir.select(mask, "i32", chosen, held), "%counters")
        ir.jump("dispatch")
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


def _barrier(e: Emitter, _: Instruction) -> None:
    following = e.program.blocks[e.block].successors[0]
    counter = WAITING_PC + following
    if not e.full:
        _move_lanes(e, counter)
        return
    e.ir.store(COUNTERS, splat("i32", counter), "%counters")
    e.ir.jump("dispatch")


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


_TERMINATORS: dict[str, Callable[[Emitter, Instruction], None]] = {
    "bra": _jump,
    "ret": _jump,
    "exit": _jump,
    "bar": _barrier,
    "barrier": _barrier,
    "trap": _trap,
}


def _unsupported(module: Module, problems: list[tuple[Instruction, str]]) -> UserError:
    places: list[Location] = [location(module, instruction) for instruction, _ in problems]
    detail = "\n".join(
        f"  line {place.line}: {place.text.strip()}  ({reason})"
        for place, (_, reason) in zip(places, problems, strict=True)
    )
    count = len(problems)
    return UserError(
        f"the simulator cannot execute {count} instruction{'s' if count > 1 else ''} of the kernel",
        at=places[0],
        detail=detail,
        hint="run this kernel on a GPU (--device cuda)",
    )
