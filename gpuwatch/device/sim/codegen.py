"""A program as LLVM IR: one function that runs a warp until it waits at a barrier or ends.

Each basic block is emitted twice. `F` copies are for warps with all 32 lanes together and use
no masks; they jump straight to each other. `M` copies run the lanes of `%mask`; behind them the
dispatcher takes the lanes with the smallest program counter next (a counter is a block's index).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpuwatch.device.sim import (
    barriers,
    control,
    emit_async,
    emit_atomic,
    emit_bits,
    emit_compare,
    emit_control,
    emit_convert,
    emit_float,
    emit_integer,
    emit_matrix,
    emit_memory,
    emit_tiles,
    emit_video,
    emit_warp,
    emit_wmma,
    refused,
)
from gpuwatch.device.sim.driver import driver
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, special_registers
from gpuwatch.device.sim.faults import Origins
from gpuwatch.device.sim.frame import epilogue, prologue, warp_bytes
from gpuwatch.device.sim.layout import LaunchField
from gpuwatch.device.sim.program import Program, location
from gpuwatch.device.sim.support import DECLARATIONS, FUNCTIONS
from gpuwatch.errors import Location, UserError
from gpuwatch.ptx.model import Instruction, Module

Emit = Callable[[Emitter, Instruction], None]


def merged(*tables: Mapping[str, Emit]) -> dict[str, Emit]:
    """The tables as one. Raises ValueError for an opcode that two of them hold."""
    found: dict[str, Emit] = {}
    for table in tables:
        if twice := found.keys() & table.keys():
            raise ValueError(f"emitted in two ways: {', '.join(sorted(twice))}")
        found |= table
    return found


OPCODES = merged(
    emit_memory.OPCODES,
    emit_integer.OPCODES,
    emit_float.OPCODES,
    emit_compare.OPCODES,
    emit_convert.OPCODES,
    emit_bits.OPCODES,
    emit_warp.OPCODES,
    emit_atomic.OPCODES,
    emit_async.OPCODES,
    emit_matrix.OPCODES,
    emit_wmma.OPCODES,
    emit_tiles.OPCODES,
    emit_video.OPCODES,
    refused.OPCODES,
    emit_control.OPCODES,
)
SIGNATURE = (
    "define internal i32 @warp(ptr noalias %context, ptr noalias readonly %launch, "
    "ptr noalias readonly %parameters, ptr noalias %worker, ptr %shared, ptr %local, "
    "ptr %slot, i32 %block.x, i32 %block.y, i32 %block.z, i32 %warp, i32 %sm) #0 {"
)


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
    attributes = 'attributes #0 = { noinline nounwind "prefer-vector-width"="512" }'
    weights = '!0 = !{!"branch_weights", i32 100000, i32 1}'
    helpers = "\n".join(e.ir.functions.values())
    used = [] if program.one_barrier else [barriers.FUNCTIONS]
    used += [control.FUNCTIONS] if any(block.meets for block in program.blocks) else []
    drive = driver(warp_bytes(program), one_barrier=program.one_barrier)
    parts = [declarations, FUNCTIONS, *used, helpers, text, drive]
    return "\n".join([*parts, attributes, weights, ""])


def _emit_blocks(e: Emitter) -> list[tuple[Instruction, str]]:
    problems: dict[int, tuple[Instruction, str]] = {}
    for index, block in enumerate(e.program.blocks):
        for full in (True, False):
            e.block, e.full = index, full
            e.guard = None
            e.ir.label(f"{'F' if full else 'M'}{index}")
            if block.meets and not full:
                control.meet(e, e.program.instructions[block.first])
            _account(e, index, block.end - block.first)
            for position in range(block.first, block.end):
                e.position = position
                instruction = e.program.instructions[position]
                try:
                    _emit(e, instruction)
                except UnsupportedError as error:
                    problems[position] = (instruction, str(error))
            e.guard = None
            control.leave(e, e.program.instructions[block.end - 1])
    return [problems[k] for k in sorted(problems)]


def _emit(e: Emitter, instruction: Instruction) -> None:
    opcode = instruction.opcode
    if opcode in control.ENDS:
        return
    if opcode not in OPCODES:
        raise UnsupportedError(f"opcode {opcode}")
    e.begin(instruction)
    try:
        OPCODES[opcode](e, instruction)
    except (KeyError, ValueError, IndexError) as error:
        raise UnsupportedError(f"this form of {opcode}") from error


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


def _unsupported(module: Module, problems: list[tuple[Instruction, str]]) -> UserError:
    places: list[Location] = [location(module, instruction) for instruction, _ in problems]
    origins = Origins(module)
    detail = "\n".join(
        f"  line {place.line}: {place.text.strip()}  ({reason}{_source(origins, instruction)})"
        for place, (instruction, reason) in zip(places, problems, strict=True)
    )
    count = len(problems)
    return UserError(
        f"the simulator cannot execute {count} instruction{'s' if count > 1 else ''} of the kernel",
        at=places[0],
        detail=detail,
        hint="run this kernel on a GPU (--device cuda)",
    )


def _source(origins: Origins, instruction: Instruction) -> str:
    return f"; {origins.source_line(instruction)}" if instruction.line else ""
