"""Arithmetic with carry: add.cc, addc, sub.cc, subc, mad.cc, madc.

The carry is one bit a thread, kept as a predicate register of a name that PTX cannot declare.
After a subtraction it holds the borrow.
"""

from __future__ import annotations

from gpuwatch.device.sim.emitter import Emitter, type_of
from gpuwatch.device.sim.ir import SCALAR
from gpuwatch.device.sim.program import CARRY
from gpuwatch.ptx.model import Instruction, Register

_FLAG = Register(CARRY)


def add(e: Emitter, instruction: Instruction) -> None:
    """add.cc, addc, sub.cc and subc."""
    kind = type_of(instruction)
    a, b = (e.value(operand, kind) for operand in instruction.operands[1:])
    add_to(e, instruction, kind, a, b)


def add_to(e: Emitter, instruction: Instruction, kind: str, a: str, b: str) -> None:
    """Writes a + b, or a - b, with the carry in where the opcode ends in "c"."""
    ir, scalar, opcode = e.ir, SCALAR[kind], instruction.opcode
    operation = "sub" if opcode.startswith("sub") else "add"
    result = ir.binary(operation, scalar, a, b)
    carried = _wrapped(e, operation, scalar, a, result)
    if opcode.endswith("c"):
        carry = e.resize(e.value(_FLAG, "pred"), "i1", scalar)
        final = ir.binary(operation, scalar, result, carry)
        again = _wrapped(e, operation, scalar, result, final)
        result, carried = final, ir.binary("or", "i1", carried, again)
    e.write(instruction.operands[0], result, kind)
    if "cc" in instruction.tokens:
        e.write(_FLAG, carried, "pred")


def _wrapped(e: Emitter, operation: str, scalar: str, before: str, after: str) -> str:
    return e.ir.compare("ult" if operation == "add" else "ugt", scalar, after, before)
