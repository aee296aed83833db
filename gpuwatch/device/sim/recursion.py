"""Frames of recursive functions: where their variables lie, and what outlives a call in them.

A recursive function addresses its variables through `%frame:`. Before a call that may come back
to it, it keeps the registers that it still needs in its frame and moves the frame on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from gpuwatch.device.sim.layout import STACK_BYTES
from gpuwatch.device.sim.program import CALL, STACK, CallSite, Program, align_up, symbol_name
from gpuwatch.ptx.model import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
)
from gpuwatch.ptx.types import TYPE_BITS

FRAME = "%frame:"
"""Where a lane's frame begins, in bytes from the base of the stack."""
_TRUTH = "%truth:"
_SLOT = 8


def use_frames(program: Program) -> None:
    """Makes the variables of recursive functions relative to the frame."""
    base = program.stack_base
    changed = []
    for instruction in program.instructions:
        names = {o.base.name for o in instruction.operands
                 if isinstance(o, Address) and isinstance(o.base, Symbol)}  # fmt: skip
        moved = instruction.operands[-1:] if instruction.opcode == "mov" else ()
        symbols = [o for o in moved if isinstance(o, Symbol) and o.name in program.framed]
        if symbols:
            offset = base + program.framed[symbols[0].name] + symbols[0].offset
            sum_of = (instruction.operands[0], Register(FRAME), _number(offset))
            instruction = replace(instruction, tokens=("add", "s64"), operands=sum_of)
        elif not names.isdisjoint(program.framed):
            operands = tuple(_in_frame(program, o) for o in instruction.operands)
            instruction = replace(instruction, operands=operands)
        changed.append(instruction)
    program.instructions = changed


def _in_frame(program: Program, operand: Operand) -> Operand:
    if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
        return operand
    place = program.framed.get(operand.base.name)
    if place is None:
        return operand
    total = program.stack_base + place + operand.base.offset + operand.offset
    return Address(Register(FRAME), total)


def keep_across_calls(
    program: Program, recursive: Collection[str], reaches: Callable[[str, str], bool]
) -> None:
    """Puts what must outlive a call of a recursive function's into its frame.

    `reaches` says whether calls lead from one function to another.
    """
    program.registers[_TRUTH] = "b32"
    sites = {site.back: site for site in program.calls if site.caller in recursive}
    kept = {
        back: _needed(program, site) if any(reaches(c, site.caller) for c in site.callees) else []
        for back, site in sites.items()
    }
    for back, site in sites.items():
        locals_end = program.frames[site.caller]
        most = max(len(kept[b]) for b, s in sites.items() if s.caller == site.caller)
        size = align_up(locals_end + _SLOT * most, 16)
        _wrap(program, back, kept[back], locals_end, size)
        program.stack_top = max(program.stack_top, size)
    program.local_bytes = program.stack_base + STACK_BYTES + program.stack_top


def _needed(program: Program, site: CallSite) -> list[str]:
    """The caller's own registers that are live where the call returns to."""
    suffix = program.suffixes[site.caller]
    live = program.live_in[program.block_at(site.back)]
    return sorted(name for name in live if name.endswith(suffix))


def _wrap(program: Program, back: str, kept: list[str], first: int, size: int) -> None:
    """Code before the call and at its return."""
    code = program.instructions
    call = next(k for k, i in enumerate(code) if i.opcode == CALL and symbol_name(i) == back)
    origin = code[call]
    base = program.stack_base + first
    places = [Address(Register(FRAME), base + _SLOT * k) for k in range(len(kept))]

    def made(tokens: tuple[str, ...], *operands: Operand) -> Instruction:
        return replace(origin, tokens=tokens, operands=operands)

    before = [made((STACK,), _number(size))]
    after = [made(("add", "s64"), Register(FRAME), Register(FRAME), _number(-size))]
    for name, place in zip(kept, places, strict=True):
        kind = program.registers[name]
        if kind == "pred":
            truth = Register(_TRUTH)
            one, zero = _number(1), _number(0)
            before.append(made(("selp", "b32"), truth, one, zero, Register(name)))
            before.append(made(("st", "local", "b32"), place, truth))
            after.append(made(("ld", "local", "b32"), truth, place))
            after.append(made(("setp", "ne", "s32"), Register(name), truth, zero))
        else:
            plain = f"b{TYPE_BITS[kind]}"
            before.append(made(("st", "local", plain), place, Register(name)))
            after.append(made(("ld", "local", plain), Register(name), place))
    before.append(made(("add", "s64"), Register(FRAME), Register(FRAME), _number(size)))
    _insert(program, call + 1, after)
    _insert(program, call, before)


def _insert(program: Program, index: int, added: Iterable[Instruction]) -> None:
    """Puts instructions at `index`; labels there come to stand before them."""
    new = list(added)
    program.instructions[index:index] = new
    for label, place in program.labels.items():
        if place > index:
            program.labels[label] = place + len(new)


def _number(value: int) -> Immediate:
    return Immediate(str(value), value)
