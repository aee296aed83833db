"""SIMD video instructions: four bytes or two halves of a register at a time."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emit_bits import field
from gpuwatch.device.sim.emit_compare import INTEGER_CONDITIONS
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError
from gpuwatch.device.sim.ir import splat
from gpuwatch.ptx.model import Instruction

Combine = Callable[[Emitter, Instruction, str, str], str]
"""From two fields, extended to 32 bits, to the result before it is cut to a field."""


def _binary(operation: str) -> Combine:
    return lambda e, _, a, b: e.ir.binary(operation, "i32", a, b)


def _intrinsic(name: str) -> Combine:
    return lambda e, _, a, b: e.ir.intrinsic(name, "i32", a, b)


def _distance(e: Emitter, _: Instruction, a: str, b: str) -> str:
    return e.ir.intrinsic("abs", "i32", e.ir.binary("sub", "i32", a, b), extra="false")


def _average(e: Emitter, _: Instruction, a: str, b: str) -> str:
    """Half the sum, a half away from zero."""
    total = e.ir.binary("add", "i32", a, b)
    not_negative = e.ir.compare("sge", "i32", total, splat("i32", 0))
    total = e.ir.binary("add", "i32", total, e.resize(not_negative, "i1", "i32"))
    return e.ir.binary("ashr", "i32", total, splat("i32", 1))


def _compare(e: Emitter, instruction: Instruction, a: str, b: str) -> str:
    name = next(t for t in instruction.tokens if t in _CONDITIONS)
    condition = INTEGER_CONDITIONS.get(name, name)
    prefix = "" if condition in ("eq", "ne") else "s"
    return e.resize(e.ir.compare(prefix + condition, "i32", a, b), "i1", "i32")


_CONDITIONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", *INTEGER_CONDITIONS))
_COMBINATIONS: dict[str, Combine] = {
    "vadd": _binary("add"),
    "vsub": _binary("sub"),
    "vabsdiff": _distance,
    "vmin": _intrinsic("smin"),
    "vmax": _intrinsic("smax"),
    "vavrg": _average,
    "vset": _compare,
}


def _limited(e: Emitter, kind: str, value: str, bits: int) -> str:
    """Saturated to a field of the result's type."""
    signed = kind.startswith("s")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    value = e.ir.intrinsic("smax", "i32", value, splat("i32", low))
    return e.ir.intrinsic("smin", "i32", value, splat("i32", high))


def _simd(count: int) -> Callable[[Emitter, Instruction], None]:
    def emit(e: Emitter, instruction: Instruction) -> None:
        ir, tokens = e.ir, instruction.tokens
        kinds = [t for t in tokens[1:] if t in ("u32", "s32")]
        if len(instruction.operands) != 4 or (len(kinds) != 3 and "vset" not in tokens[0]):
            raise UnsupportedError(f"this form of {tokens[0]}")
        result_kind, sources = kinds[0], kinds[-2:]
        a, b, c = (e.value(operand, "b32") for operand in instruction.operands[1:4])
        bits = 32 // count
        combine = _COMBINATIONS[tokens[0][:-1]]
        total = c if "add" in tokens else splat("i32", 0)
        for k in range(count):
            x, y = (field(e, t, v, bits, k) for t, v in zip(sources, (a, b), strict=True))
            value = combine(e, instruction, x, y)
            if "sat" in tokens:
                value = _limited(e, result_kind, value, bits)
            if "add" in tokens:
                total = ir.binary("add", "i32", total, value)
                continue
            value = ir.binary("and", "i32", value, splat("i32", (1 << bits) - 1))
            value = ir.binary("shl", "i32", value, splat("i32", bits * k))
            total = ir.binary("or", "i32", total, value)
        e.write(instruction.operands[0], total, "b32")

    return emit


OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {
    f"{name}{count}": _simd(count) for name in _COMBINATIONS for count in (2, 4)
}
