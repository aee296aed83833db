"""cvt: between integers, between floating types, and across."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emit_float import flush, saturate
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, is_float
from gpuwatch.device.sim.ir import BITS, SCALAR, SUFFIX, WARP, splat, vector
from gpuwatch.ptx.model import Instruction

_TO_INTEGRAL = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_UNSUPPORTED = frozenset(("rz", "rm", "rp", "rna", "relu", "satfinite"))


def _cvt(e: Emitter, instruction: Instruction) -> None:
    kinds = [token for token in instruction.tokens[1:] if token in SCALAR]
    if len(kinds) != 2 or {"bf16", "bf16x2", "f16x2"} & set(kinds):
        raise UnsupportedError("this conversion")
    target, source = kinds
    value = e.value(instruction.operands[1], source)
    if "ftz" in instruction.tokens and source == "f32":
        value = flush(e, value)
    convert = _CONVERSIONS[is_float(target), is_float(source)]
    e.write(instruction.operands[0], convert(e, instruction, target, source, value), target)


def _refuse_rounding(instruction: Instruction) -> None:
    refused = _UNSUPPORTED & set(instruction.tokens)
    if refused:
        raise UnsupportedError(f".{min(refused)}")


def _integers(e: Emitter, instruction: Instruction, target: str, source: str, value: str) -> str:
    if "sat" in instruction.tokens:
        value = _clamp(e, target, source, value)
    return e.resize(value, SCALAR[source], SCALAR[target], signed=source.startswith("s"))


def _clamp(e: Emitter, target: str, source: str, value: str) -> str:
    signed = source.startswith("s")
    bits = BITS[SCALAR[target]]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if not target.startswith("s"):
        low, high = 0, (1 << bits) - 1
    have = BITS[SCALAR[source]]
    least, most = (-(1 << (have - 1)), (1 << (have - 1)) - 1) if signed else (0, (1 << have) - 1)
    sign, scalar = ("s" if signed else "u"), SCALAR[source]
    if low > least:
        value = e.ir.intrinsic(f"{sign}max", scalar, value, splat(scalar, low))
    if high < most:
        value = e.ir.intrinsic(f"{sign}min", scalar, value, splat(scalar, high))
    return value


def _floats(e: Emitter, instruction: Instruction, target: str, source: str, value: str) -> str:
    have, want = SCALAR[source], SCALAR[target]
    for token, intrinsic in _TO_INTEGRAL.items():
        if token in instruction.tokens:
            value = e.ir.intrinsic(intrinsic, have, value)
    if BITS[want] > BITS[have]:
        value = e.ir.cast("fpext", have, value, want)
    elif BITS[want] < BITS[have]:
        _refuse_rounding(instruction)
        value = e.ir.cast("fptrunc", have, value, want)
    if "ftz" in instruction.tokens and target == "f32":
        value = flush(e, value)
    return saturate(e, value, want) if "sat" in instruction.tokens else value


def _to_float(e: Emitter, instruction: Instruction, target: str, source: str, value: str) -> str:
    _refuse_rounding(instruction)
    operation = "sitofp" if source.startswith("s") else "uitofp"
    value = e.ir.cast(operation, SCALAR[source], value, SCALAR[target])
    return saturate(e, value, SCALAR[target]) if "sat" in instruction.tokens else value


def _to_integer(e: Emitter, instruction: Instruction, target: str, source: str, value: str) -> str:
    """Out of range gives the nearest; NaN 0, or only the top bit where 64 bits take part."""
    have, want = SCALAR[source], SCALAR[target]
    for token, intrinsic in _TO_INTEGRAL.items():
        if token in instruction.tokens:
            value = e.ir.intrinsic(intrinsic, have, value)
    sign = "s" if target.startswith("s") else "u"
    name = f"llvm.fpto{sign}i.sat.v{WARP}{want}.v{WARP}{SUFFIX[have]}"
    result = e.ir.call(vector(want), name, [(vector(have), value)])
    if source != "f64" and BITS[want] != 64:
        return result
    unordered = e.ir.compare("uno", have, value, value)
    return e.ir.select(unordered, want, splat(want, -(1 << (BITS[want] - 1))), result)


_Convert = Callable[[Emitter, Instruction, str, str, str], str]
_CONVERSIONS: dict[tuple[bool, bool], _Convert] = {
    (False, False): _integers,
    (True, True): _floats,
    (True, False): _to_float,
    (False, True): _to_integer,
}

OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {"cvt": _cvt}
