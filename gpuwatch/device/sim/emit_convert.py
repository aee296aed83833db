"""cvt: between integers, between floating types, and across, singly and in pairs."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emit_float import clip, flush, is_floating, saturate, write
from gpuwatch.device.sim.emit_formats import (
    NARROW,
    PACKED,
    join,
    narrow,
    odd_from_double,
    split,
    widen,
)
from gpuwatch.device.sim.emit_rounding import MODES, convert, mode_of
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError
from gpuwatch.device.sim.ir import BITS, SCALAR, SUFFIX, WARP, splat, vector
from gpuwatch.ptx.model import Instruction

_TO_INTEGRAL = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_EXACT_BITS = 53
"""Integers of so many bits are exact in f64."""


def _cvt(e: Emitter, instruction: Instruction) -> None:
    tokens, operands = instruction.tokens, instruction.operands
    if tokens[1] == "pack":
        _pack(e, instruction)
        return
    target, source = (token for token in tokens[1:] if token in SCALAR)
    given = [e.value(operand, source) for operand in operands[1:]]
    if target not in PACKED:
        if len(given) != 1 or source in PACKED:
            raise UnsupportedError("this conversion")
        write(e, instruction, _one(e, tokens, target, source, given[0]), target)
        return
    if source in PACKED:
        given = split(e, source, given[0])[::-1]
        source = PACKED[source]
    high, low = (_one(e, tokens, PACKED[target], source, value) for value in given)
    e.write(operands[0], join(e, target, low, high), f"b{BITS[SCALAR[target]]}")


def _one(e: Emitter, tokens: tuple[str, ...], target: str, source: str, value: str) -> str:
    if "ftz" in tokens and source == "f32":
        value = flush(e, value)
    come = source
    if source in NARROW:
        value, come = widen(e, source, value), "f32"
    floats = (is_floating(target) or target in NARROW, is_floating(come))
    return _CONVERSIONS[floats](e, tokens, target, come, value)


def _integers(e: Emitter, tokens: tuple[str, ...], target: str, source: str, value: str) -> str:
    if "sat" in tokens:
        value = clamp(e, target, source, value)
    return e.resize(value, SCALAR[source], SCALAR[target], signed=source.startswith("s"))


def clamp(e: Emitter, target: str, source: str, value: str) -> str:
    """A value of integer type `source`, limited to what `target` holds."""
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


def _pack(e: Emitter, instruction: Instruction) -> None:
    """cvt.pack.sat: b lowest, a above it, and in the place above what fits of c."""
    target, source = instruction.tokens[3:5]
    bits = BITS[SCALAR[target]]
    a, b, *rest = instruction.operands[1:]
    whole = splat("i32", 0)
    if rest:
        whole = e.ir.binary("shl", "i32", e.value(rest[0], "b32"), splat("i32", 2 * bits))
    for place, operand in enumerate((b, a)):
        part = clamp(e, target, source, e.value(operand, source))
        part = e.ir.binary("and", "i32", part, splat("i32", (1 << bits) - 1))
        part = e.ir.binary("shl", "i32", part, splat("i32", bits * place))
        whole = e.ir.binary("or", "i32", whole, part)
    e.write(instruction.operands[0], whole, "b32")


def _floats(e: Emitter, tokens: tuple[str, ...], target: str, source: str, value: str) -> str:
    have = SCALAR[source]
    for token, intrinsic in _TO_INTEGRAL.items():
        if token in tokens:
            value = e.ir.intrinsic(intrinsic, have, value)
    mode = "rna" if "rna" in tokens else mode_of(tokens)
    if target in NARROW:
        value = odd_from_double(e, value) if source == "f64" else value
        return _finish_narrow(e, tokens, target, value, mode)
    want = SCALAR[target]
    if BITS[want] > BITS[have]:
        value = e.ir.cast("fpext", have, value, want)
    elif BITS[want] < BITS[have] and mode in MODES:
        value = convert(e, "fptrunc", have, value, want, mode)
    elif BITS[want] < BITS[have]:
        value = e.ir.cast("fptrunc", have, value, want)
    if "ftz" in tokens and target == "f32":
        value = flush(e, value)
    return saturate(e, value, want) if "sat" in tokens else value


def _finish_narrow(e: Emitter, tokens: tuple[str, ...], target: str, value: str, mode: str) -> str:
    if "sat" in tokens:
        value = saturate(e, value, "float")
    if "relu" in tokens:
        value = clip(e, value, "float")
    return narrow(e, target, value, mode, finite="satfinite" in tokens)


def _to_float(e: Emitter, tokens: tuple[str, ...], target: str, source: str, value: str) -> str:
    have, mode = SCALAR[source], mode_of(tokens)
    signed = source.startswith("s")
    operation = "sitofp" if signed else "uitofp"
    if target in NARROW:
        if BITS[have] > _EXACT_BITS:
            value = _sticky(e, have, value, signed=signed)
        wide = e.ir.cast(operation, have, value, "double")
        return _finish_narrow(e, tokens, target, odd_from_double(e, wide), mode)
    want = SCALAR[target]
    if mode in MODES:
        # Rounding down, some hosts make -0 of 0.
        result = convert(e, operation, have, value, want, mode)
        zero = e.ir.compare("eq", have, value, splat(have, 0))
        result = e.ir.select(zero, want, "zeroinitializer", result)
    else:
        result = e.ir.cast(operation, have, value, want)
    return saturate(e, result, want) if "sat" in tokens else result


def _sticky(e: Emitter, scalar: str, value: str, *, signed: bool) -> str:
    """A 64-bit integer made exact in f64: of a large one the low bits become one that says
    whether any was set, far below what a narrow type can tell apart."""
    ir = e.ir
    low = ir.binary("and", scalar, value, splat(scalar, 0xFFF))
    some = ir.compare("ne", scalar, low, splat(scalar, 0))
    rest = ir.select(some, scalar, splat(scalar, 0x800), splat(scalar, 0))
    kept = ir.binary("or", scalar, ir.binary("and", scalar, value, splat(scalar, -0x1000)), rest)
    moved, limit = value, 1 << _EXACT_BITS
    if signed:
        moved = ir.binary("add", scalar, value, splat(scalar, limit >> 1))
    large = ir.compare("uge", scalar, moved, splat(scalar, limit))
    return ir.select(large, scalar, kept, value)


def _to_integer(e: Emitter, tokens: tuple[str, ...], target: str, source: str, value: str) -> str:
    """Out of range gives the nearest; NaN 0, or only the top bit where 64 bits take part."""
    have, want = SCALAR[source], SCALAR[target]
    for token, intrinsic in _TO_INTEGRAL.items():
        if token in tokens:
            value = e.ir.intrinsic(intrinsic, have, value)
    sign = "s" if target.startswith("s") else "u"
    name = f"llvm.fpto{sign}i.sat.v{WARP}{want}.v{WARP}{SUFFIX[have]}"
    result = e.ir.call(vector(want), name, [(vector(have), value)])
    if source != "f64" and BITS[want] != 64:
        return result
    unordered = e.ir.compare("uno", have, value, value)
    return e.ir.select(unordered, want, splat(want, -(1 << (BITS[want] - 1))), result)


_Convert = Callable[[Emitter, tuple[str, ...], str, str, str], str]
_CONVERSIONS: dict[tuple[bool, bool], _Convert] = {
    (False, False): _integers,
    (True, True): _floats,
    (True, False): _to_float,
    (False, True): _to_integer,
}

OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {"cvt": _cvt}
