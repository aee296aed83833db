"""Cuts a program into basic blocks, and finds what is live between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gpuwatch.device.sim.polling import polling_headers
from gpuwatch.device.sim.program import (
    ALL_MEMBERS,
    BARRIER,
    CALL,
    CLOCKS,
    RETURN,
    Block,
    Program,
    entry_label,
    meets,
    member_mask,
    read,
    symbol_name,
    written,
)
from gpuwatch.errors import UserError
from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Instruction, Operand, Register

_ENDS = frozenset(["bra", "brx", "ret", "exit", "trap", CALL, RETURN, BARRIER])
_NEVER_ON = frozenset(["bra", "brx", "ret", "exit", "trap", CALL, RETURN])
"""Without a guard, control does not go on behind these."""


def cut(program: Program) -> None:
    """Finds the blocks and what is live between them."""
    code = program.instructions
    leaders = {0, *program.labels.values()}
    leaders.update(k + 1 for k, i in enumerate(code) if i.opcode in _ENDS)
    joined = {k + 1 for k, i in enumerate(code) if not CLOCKS.isdisjoint(read(i))}
    meeting = _meetings(code, leaders)
    joined = (joined | meeting) - leaders
    starts = sorted(k for k in leaders | joined if k < len(code))
    index = {start: k for k, start in enumerate(starts)} | {len(code): len(starts)}
    program.blocks = [
        Block(first, end, _successors(program, end, index), first in joined, first in meeting)
        for first, end in zip(starts, [*starts[1:], len(code)], strict=True)
    ]
    program.entry = index[program.labels.get(entry_label(""), 0)]
    _find_live(program)
    program.polling = polling_headers(program)


def _meetings(code: Sequence[Instruction], leaders: Collection[int]) -> set[int]:
    """Instructions at which lanes must wait for each other.

    In straight code lanes that have met stay together, so the next meeting by the same mask
    needs no wait.
    """
    found: set[int] = set()
    together: Operand | None = None
    for k, instruction in enumerate(code):
        if k in leaders:
            together = None
        if meets(instruction):
            mask = member_mask(instruction) or ALL_MEMBERS
            if mask != together:
                found.add(k)
            together = mask
        if isinstance(together, Register) and together.name in written(instruction):
            together = None
    return found


def _successors(program: Program, end: int, index: dict[int, int]) -> tuple[int, ...]:
    """Where the block that ends before instruction `end` goes, its branch first."""
    last = program.instructions[end - 1]
    found: list[int] = []
    if last.opcode in ("ret", "exit", "trap"):
        found.append(index[len(program.instructions)])
    else:
        found += [index[program.labels[label]] for label in _targets(program, last)]
    if last.opcode not in _NEVER_ON or last.guard is not None:
        found.append(index[end])
    return tuple(dict.fromkeys(found)) if last.guard is None else tuple(found)


def _targets(program: Program, last: Instruction) -> Iterable[str]:
    if last.opcode == CALL:
        return [entry_label(name) for name in program.call_site(last).callees]
    if last.opcode == RETURN:
        return [site.back for site in program.calls if symbol_name(last) in site.callees]
    name = isa.branch_targets(last)
    if not name:
        return []
    labels = program.targets.get(name, (name,))
    for label in labels:
        if label not in program.labels:
            raise UserError(f"no label '{label}' in {program.name}")
    return labels


def _effects(program: Program, block: Block) -> tuple[set[str], set[str]]:
    """Registers that a block reads before it writes them, and those that it surely writes."""
    used: set[str] = set()
    defined: set[str] = set()
    known = program.registers
    for instruction in program.instructions[block.first : block.end]:
        used.update(r for r in read(instruction) if r in known and r not in defined)
        if instruction.guard is None:
            defined.update(r for r in written(instruction) if r in known)
    return used, defined


def _live_successors(program: Program, block: Block) -> tuple[int, ...]:
    """A call also leads to where it comes back: what its caller needs there outlives the call,
    even where a recursive callee defines it anew."""
    last = program.instructions[block.end - 1]
    if last.opcode != CALL:
        return block.successors
    return (*block.successors, program.block_at(symbol_name(last)))


def _find_live(program: Program) -> None:
    """Backward data flow to the fixed point, a bit for each register."""
    bits = {name: 1 << k for k, name in enumerate(program.registers)}
    masks = [
        [sum(bits[name] for name in names) for names in _effects(program, block)]
        for block in program.blocks
    ]
    live_in = [used for used, _ in masks] + [0]
    live_out = [0] * len(masks)
    following = [_live_successors(program, block) for block in program.blocks]
    before: list[list[int]] = [[] for _ in live_in]
    for k, successors in enumerate(following):
        for successor in successors:
            before[successor].append(k)
    waiting = list(range(len(masks)))
    while waiting:
        k = waiting.pop()
        out = 0
        for successor in following[k]:
            out |= live_in[successor]
        live_out[k] = out
        used, defined = masks[k]
        live = used | out & ~defined
        if live != live_in[k]:
            live_in[k] = live
            waiting += before[k]
    names = list(bits)
    lasting = frozenset(program.always_live)
    program.live_in = [_names(names, mask) | lasting for mask in live_in[:-1]]
    program.live_out = [_names(names, mask) | lasting for mask in live_out]
    program.spanning = lasting.union(*program.live_in, *program.live_out)


def _names(names: Sequence[str], mask: int) -> frozenset[str]:
    found = []
    while mask:
        low = mask & -mask
        found.append(names[low.bit_length() - 1])
        mask ^= low
    return frozenset(found)
