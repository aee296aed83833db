"""The one NaN that a GPU's arithmetic gives, at little cost.

f32 results that are NaN are 0x7fffffff there; a CPU keeps an operand's payload or sets the sign.
Arithmetic does not look at the pattern, so registers that only arithmetic writes keep the CPU's
NaN until something else reads them: a store, a move, a comparison of bits. Registers that other
instructions write too are put right at each arithmetic result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch.device.sim.ir import BITS, SCALAR, Builder, number
from gpuwatch.device.sim.program import Program, written
from gpuwatch.ptx.model import Immediate, Instruction

CANONICAL_NAN = {"half": 0x7FFF, "float": 0x7FFFFFFF, "double": 0xFFF8000000000000}
"""By LLVM type. That of f64 is what invalid operations give; payloads of operands get lost here."""
_ARITHMETIC = frozenset(
    (
        *("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt", "neg", "abs", "cvt"),
        *("ex2", "lg2", "sin", "cos", "tanh"),
    )
)
_BLIND = _ARITHMETIC | {"setp", "set", "testp", "min", "max"}
_KINDS = ("f32", "f64")
_BITS_MOVED = ("cvt", "f32", "bf16")
"""A bf16 number is the upper half of an f32 one; GPUs shift it there, NaN or not."""


@dataclass(frozen=True, slots=True)
class Nans:
    """Registers to put right when they are read, with their type, and when they are written."""

    at_read: Mapping[str, str]
    at_write: frozenset[str]


def canonical(ir: Builder, value: str, scalar: str) -> str:
    """A vector of which every NaN is the one of the GPU."""
    unordered = ir.compare("uno", scalar, value, value)
    return ir.select(unordered, scalar, number(scalar, CANONICAL_NAN[scalar]), value)


def nans_of(program: Program) -> Nans:
    computed: dict[str, str] = {}
    others: set[str] = set()
    for instruction in program.instructions:
        kind = _result_kind(instruction)
        if kind:
            computed |= dict.fromkeys(written(instruction), kind)
        elif not _is_number(instruction):
            others.update(written(instruction))
    at_read = {name: kind for name, kind in computed.items() if name not in others}
    return Nans(at_read, frozenset(computed.keys() & others))


def is_blind(instruction: Instruction) -> bool:
    """Whether the instruction treats all NaN operands of a floating type alike."""
    return instruction.opcode in _BLIND and "xorsign" not in instruction.tokens


def _result_kind(instruction: Instruction) -> str:
    """f32 or f64 where the instruction computes such a number."""
    if instruction.opcode not in _ARITHMETIC or instruction.tokens == _BITS_MOVED:
        return ""
    kinds = [token for token in instruction.tokens[1:] if token in SCALAR]
    return kinds[0] if kinds and kinds[0] in _KINDS else ""


def _is_number(instruction: Instruction) -> bool:
    """A move of a constant that is no NaN."""
    source = instruction.operands[-1] if instruction.operands else None
    if instruction.opcode != "mov" or not isinstance(source, Immediate):
        return False
    kind = instruction.tokens[-1]
    if not source.is_float or isinstance(source.value, float):
        return True
    bits = BITS[SCALAR[kind]]
    infinity = {32: 0x7F800000, 64: 0x7FF << 52}.get(bits, 0)
    return source.value & (1 << (bits - 1)) - 1 <= infinity
