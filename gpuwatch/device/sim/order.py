"""Whether the order in which blocks run could show in what a launch leaves behind."""

from __future__ import annotations

from gpuwatch.device.sim.access import space_of
from gpuwatch.device.sim.emit_float import is_floating
from gpuwatch.device.sim.polling import POLLING_LOADS
from gpuwatch.device.sim.program import PRINT, Program
from gpuwatch.ptx.model import Address, Instruction, Register


def must_run_serially(program: Program, private_prefix: str) -> bool:
    """Whether the order of blocks could show: used results of global atomics, float sums,
    polling, and which prints find the buffer full.

    Atomics addressed by a register with `private_prefix` touch words of one block alone.
    """
    instructions = program.instructions
    return (program.polls and any(map(_polls_globally, instructions))) or any(
        i.opcode == PRINT or _updates_globally(i, private_prefix) for i in instructions
    )


def _polls_globally(instruction: Instruction) -> bool:
    return (
        instruction.opcode == "ld"
        and space_of(instruction) != "shared"
        and not POLLING_LOADS.isdisjoint(instruction.tokens)
    )


def _updates_globally(instruction: Instruction, private_prefix: str) -> bool:
    opcode = instruction.opcode
    return (
        opcode in ("atom", "red")
        and space_of(instruction) != "shared"
        and (opcode == "atom" or is_floating(instruction.tokens[-1]))
        and not (private_prefix and _address_register(instruction).startswith(private_prefix))
    )


def _address_register(instruction: Instruction) -> str:
    for operand in instruction.operands:
        if isinstance(operand, Address) and isinstance(operand.base, Register):
            return operand.base.name
    return ""
