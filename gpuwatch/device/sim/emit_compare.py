"""Comparisons and choices: setp, set, selp, slct."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emit_float import SMALLEST_NORMAL, flush, is_floating, work_type
from gpuwatch.device.sim.emit_formats import NARROW, PACKED, join, narrow, split, widen
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, type_of
from gpuwatch.device.sim.ir import SCALAR, number, splat
from gpuwatch.ptx.model import Instruction, Pair

Emit = Callable[[Emitter, Instruction], None]

INTEGER_CONDITIONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
FLOAT_CONDITIONS = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
    "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
    "num": "ord", "nan": "uno",
}  # fmt: skip
_COMBINATIONS = ("and", "or", "xor")


def compare(e: Emitter, instruction: Instruction, kind: str, values: list[str]) -> str:
    """The mask of lanes for which the comparison that the opcode names holds."""
    name, scalar = instruction.tokens[1], SCALAR[kind]
    if not is_floating(kind):
        name = INTEGER_CONDITIONS.get(name, name)
        sign = "" if name in ("eq", "ne") else "s" if kind.startswith("s") else "u"
        return e.ir.compare(sign + name, scalar, *values)
    if "ftz" in instruction.tokens and scalar in SMALLEST_NORMAL:
        values = [flush(e, value, scalar) for value in values]
    if kind in NARROW:
        values = [widen(e, kind, value) for value in values]
    return e.ir.compare(FLOAT_CONDITIONS[name], work_type(kind), *values)


def _comparisons(e: Emitter, instruction: Instruction, kind: str) -> list[str]:
    """One mask, or one for each element of a packed type."""
    values = [e.value(operand, kind) for operand in instruction.operands[1:3]]
    if kind not in PACKED:
        return [compare(e, instruction, kind, values)]
    pairs = [split(e, kind, value) for value in values]
    return [compare(e, instruction, PACKED[kind], [p[k] for p in pairs]) for k in (0, 1)]


def _combined(e: Emitter, instruction: Instruction, holds: str) -> str:
    combination = instruction.tokens[2]
    if combination not in _COMBINATIONS:
        return holds
    other = e.value(instruction.operands[3], "pred")
    return e.ir.binary(combination, "i1", holds, other)


def _setp(e: Emitter, instruction: Instruction) -> None:
    target = instruction.operands[0]
    holds = _comparisons(e, instruction, type_of(instruction))
    if not isinstance(target, Pair):
        e.write(target, _combined(e, instruction, holds[0]), "pred")
        return
    second = holds[1] if len(holds) == 2 else e.invert(holds[0])
    first = _combined(e, instruction, holds[0])
    second = _combined(e, instruction, second)
    e.write(target.first, first, "pred")
    e.write(target.second, second, "pred")


def _set(e: Emitter, instruction: Instruction) -> None:
    target, source = [token for token in instruction.tokens if token in SCALAR][-2:]
    masks = [_combined(e, instruction, m) for m in _comparisons(e, instruction, source)]
    if len(masks) == 2:
        packed = target if target in PACKED else "u16x2"
        values = [_truth(e, PACKED[packed], mask) for mask in masks]
        e.write(instruction.operands[0], join(e, packed, *values), "b32")
        return
    e.write(instruction.operands[0], _truth(e, target, masks[0]), target)


def _truth(e: Emitter, kind: str, mask: str) -> str:
    """1.0 or all bits set where the mask holds, else 0."""
    if kind in NARROW:
        return narrow(e, kind, _truth(e, "f32", mask))
    if is_floating(kind):
        return e.ir.cast("uitofp", "i1", mask, SCALAR[kind])
    return e.ir.cast("sext", "i1", mask, SCALAR[kind])


def _selp(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    a, b = (e.value(operand, kind) for operand in instruction.operands[1:3])
    choice = e.value(instruction.operands[3], "pred")
    e.write(instruction.operands[0], e.ir.select(choice, SCALAR[kind], a, b), kind)


def _slct(e: Emitter, instruction: Instruction) -> None:
    kind, chooser = instruction.tokens[-2:]
    if chooser not in ("s32", "f32"):
        raise UnsupportedError(f"slct by {chooser}")
    a, b = (e.value(operand, kind) for operand in instruction.operands[1:3])
    c = e.value(instruction.operands[3], chooser)
    if chooser == "f32":
        c = flush(e, c) if "ftz" in instruction.tokens else c
        choice = e.ir.compare("oge", "float", c, number("float", 0))
    else:
        choice = e.ir.compare("sge", "i32", c, splat("i32", 0))
    e.write(instruction.operands[0], e.ir.select(choice, SCALAR[kind], a, b), kind)


OPCODES: dict[str, Emit] = {"setp": _setp, "set": _set, "selp": _selp, "slct": _slct}
