"""Floating types narrower than 32 bits: their values as f32 lanes, and f32 lanes rounded to them.

Every narrow value is an f32. A result goes the other way: computed in f32 (or f64, rounded to
f32 towards the odd neighbour, so that nothing is rounded twice), then rounded once by integer
arithmetic, in any mode. NaN becomes the type's canonical pattern.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuwatch.device.sim.emitter import Emitter
from gpuwatch.device.sim.ir import BITS, SCALAR, number, splat


@dataclass(frozen=True, slots=True)
class Narrow:
    """`exponent` and `fraction` bits; patterns without sign of the first overflow (infinity where
    there is one), of the largest number and of the canonical NaN."""

    exponent: int
    fraction: int
    overflow: int
    largest: int
    nan: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.fraction)


NARROW = {
    "f16": Narrow(5, 10, 0x7C00, 0x7BFF, 0x7FFF),
    "bf16": Narrow(8, 7, 0x7F80, 0x7F7F, 0x7FFF),
    "tf32": Narrow(8, 10, 0x3FC00, 0x3FBFF, 0x3FFFF),
    "e4m3": Narrow(4, 3, 0x7F, 0x7E, 0x7F),
    "e5m2": Narrow(5, 2, 0x7C, 0x7B, 0x7F),
}
PACKED = {"f16x2": "f16", "bf16x2": "bf16", "s16x2": "s16", "u16x2": "u16",
          "e4m3x2": "e4m3", "e5m2x2": "e5m2"}  # fmt: skip
"""Element types of packed types."""
TF32_DROPPED = 13
"""Low bits of an f32 that a tf32 lacks."""
_INFINITY = 0x7F800000
_SIGN = -(1 << 31)
_MAGNITUDE = (1 << 31) - 1


def split(e: Emitter, kind: str, value: str) -> list[str]:
    """The two elements of a packed value, low one first, as vectors of the element's type."""
    whole, element = SCALAR[kind], PACKED[kind]
    bits = BITS[whole] // 2
    high = e.ir.binary("lshr", whole, value, splat(whole, bits))
    return [
        e.resize(e.ir.cast("trunc", whole, part, f"i{bits}"), f"i{bits}", SCALAR[element])
        for part in (value, high)
    ]


def join(e: Emitter, kind: str, low: str, high: str) -> str:
    """A packed value of its two elements."""
    whole, element = SCALAR[kind], SCALAR[PACKED[kind]]
    low, high = (e.resize(part, element, whole) for part in (low, high))
    high = e.ir.binary("shl", whole, high, splat(whole, BITS[whole] // 2))
    return e.ir.binary("or", whole, high, low)


def widen(e: Emitter, kind: str, value: str) -> str:
    """A value of a narrow type as f32."""
    ir = e.ir
    if kind == "f16":
        return ir.cast("fpext", "half", value, "float")
    if kind == "bf16":
        wide = ir.binary("shl", "i32", ir.cast("zext", "i16", value, "i32"), splat("i32", 16))
        return ir.cast("bitcast", "i32", wide, "float")
    if kind == "tf32":
        kept = ir.binary("and", "i32", value, splat("i32", -(1 << TF32_DROPPED)))
        return ir.cast("bitcast", "i32", kept, "float")
    return ir.cast("fpext", "half", _eighth_as_half(e, kind, value), "float")


def _eighth_as_half(e: Emitter, kind: str, value: str) -> str:
    """An 8-bit float as f16, which holds all of both formats."""
    ir = e.ir
    wide = ir.binary("shl", "i16", ir.cast("zext", "i8", value, "i16"), splat("i16", 8))
    if kind == "e5m2":
        return ir.cast("bitcast", "i16", wide, "half")
    # e4m3: the pattern a place lower, then 2^8 for the difference of the biases.
    sign = ir.binary("and", "i16", wide, splat("i16", -(1 << 15)))
    size = ir.binary("and", "i16", wide, splat("i16", 0x7F00))
    lower = ir.binary("lshr", "i16", size, splat("i16", 1))
    scaled = ir.cast("bitcast", "i16", ir.binary("or", "i16", lower, sign), "half")
    single = ir.cast("fpext", "half", scaled, "float")
    product = ir.binary("fmul", "float", single, number("float", 0x43800000))
    half = ir.cast("fptrunc", "float", product, "half")
    is_nan = ir.compare("eq", "i16", size, splat("i16", 0x7F00))
    return ir.select(is_nan, "half", number("half", 0x7FFF), half)


def narrow(e: Emitter, kind: str, value: str, mode: str = "rn", *, finite: bool = False) -> str:
    """f32 lanes as a narrow type; `finite` (`.satfinite`) gives the largest number on overflow."""
    if mode == "rn" and not finite and kind in ("f16", "bf16"):
        return _nearest_half(e, value) if kind == "f16" else _nearest_brain(e, value)
    return _rounded(e, kind, value, mode, finite=finite)


def _nearest_half(e: Emitter, value: str) -> str:
    result = e.ir.cast("fptrunc", "float", value, "half")
    unordered = e.ir.compare("uno", "float", value, value)
    return e.ir.select(unordered, "half", number("half", NARROW["f16"].nan), result)


def _nearest_brain(e: Emitter, value: str) -> str:
    ir = e.ir
    bits = ir.cast("bitcast", "float", value, "i32")
    odd = ir.binary("and", "i32", ir.binary("lshr", "i32", bits, splat("i32", 16)), splat("i32", 1))
    bias = ir.binary("add", "i32", odd, splat("i32", 0x7FFF))
    top = ir.binary("lshr", "i32", ir.binary("add", "i32", bits, bias), splat("i32", 16))
    unordered = ir.compare("uno", "float", value, value)
    result = ir.select(unordered, "i32", splat("i32", NARROW["bf16"].nan), top)
    return ir.cast("trunc", "i32", result, "i16")


def _rounded(e: Emitter, kind: str, value: str, mode: str, *, finite: bool) -> str:
    ir, f = e.ir, NARROW[kind]
    bits = ir.cast("bitcast", "float", value, "i32")
    size = ir.binary("and", "i32", bits, splat("i32", _MAGNITUDE))
    negative = ir.compare("slt", "i32", bits, splat("i32", 0))
    exponent = ir.binary("lshr", "i32", size, splat("i32", 23))
    is_normal = ir.compare("ne", "i32", exponent, splat("i32", 0))
    exponent = ir.intrinsic("umax", "i32", exponent, splat("i32", 1))
    fraction = ir.binary("and", "i32", size, splat("i32", (1 << 23) - 1))
    hidden = ir.select(is_normal, "i32", splat("i32", 1 << 23), splat("i32", 0))
    significand = ir.binary("or", "i32", fraction, hidden)
    least = 128 - f.bias
    below = ir.binary("sub", "i32", splat("i32", least), exponent)
    below = ir.intrinsic("smax", "i32", below, splat("i32", 0))
    shift = ir.binary("add", "i32", below, splat("i32", 23 - f.fraction))
    shift = ir.intrinsic("umin", "i32", shift, splat("i32", 25))
    bias = _rounding_bias(e, mode, significand, shift, negative)
    steps = ir.binary("lshr", "i32", ir.binary("add", "i32", significand, bias), shift)
    above = ir.binary("sub", "i32", exponent, splat("i32", least))
    above = ir.intrinsic("smax", "i32", above, splat("i32", 0))
    base = ir.binary("shl", "i32", above, splat("i32", f.fraction))
    result = ir.binary("add", "i32", base, steps)
    result = _overflowed(e, f, mode, size, result, negative, finite=finite)
    return _signed(e, kind, size, result, negative)


def _rounding_bias(e: Emitter, mode: str, significand: str, shift: str, negative: str) -> str:
    """What is added below the kept bits before they are cut off."""
    ir = e.ir
    zero, one = splat("i32", 0), splat("i32", 1)
    if mode == "rz":
        return zero
    half = ir.binary("lshr", "i32", ir.binary("shl", "i32", one, shift), one)
    if mode == "rna":
        return half
    if mode == "rn":
        odd = ir.binary("and", "i32", ir.binary("lshr", "i32", significand, shift), one)
        return ir.binary("add", "i32", ir.binary("sub", "i32", half, one), odd)
    all_below = ir.binary("sub", "i32", ir.binary("shl", "i32", one, shift), one)
    away = (all_below, zero) if mode == "rm" else (zero, all_below)
    return ir.select(negative, "i32", *away)


def _overflowed(
    e: Emitter, f: Narrow, mode: str, size: str, result: str, negative: str, *, finite: bool
) -> str:
    ir = e.ir
    beyond = {"rz": (f.largest, f.largest), "rm": (f.overflow, f.largest),
              "rp": (f.largest, f.overflow)}.get(mode, (f.overflow, f.overflow))  # fmt: skip
    if finite:
        beyond = (f.largest, f.largest)
    limit = ir.select(negative, "i32", *(splat("i32", pattern) for pattern in beyond))
    over = ir.compare("uge", "i32", result, splat("i32", f.overflow))
    result = ir.select(over, "i32", limit, result)
    if finite:
        return result
    infinite = ir.compare("eq", "i32", size, splat("i32", _INFINITY))
    return ir.select(infinite, "i32", splat("i32", f.overflow), result)


def _signed(e: Emitter, kind: str, size: str, result: str, negative: str) -> str:
    """The pattern with its sign, NaN where the source was one, in the type's own width."""
    ir, f = e.ir, NARROW[kind]
    unordered = ir.compare("ugt", "i32", size, splat("i32", _INFINITY))
    sign = ir.select(negative, "i32", splat("i32", f.sign), splat("i32", 0))
    result = ir.binary("or", "i32", result, sign)
    result = ir.select(unordered, "i32", splat("i32", f.nan), result)
    if kind == "tf32":
        return ir.binary("shl", "i32", result, splat("i32", TF32_DROPPED))
    return e.resize(result, "i32", SCALAR[kind])


def odd_from_double(e: Emitter, value: str) -> str:
    """f64 lanes as f32: exact, or the neighbour whose last bit is set."""
    nearest = e.ir.cast("fptrunc", "double", value, "float")
    back = e.ir.cast("fpext", "float", nearest, "double")
    return towards_odd(e, "float", nearest, e.ir.binary("fsub", "double", value, back), "double")


def towards_odd(e: Emitter, scalar: str, nearest: str, error: str, error_scalar: str) -> str:
    """`nearest` plus `error`, which is less than a unit of it: exact, or the odd neighbour."""
    ir, integer = e.ir, f"i{BITS[scalar]}"
    zero = number(error_scalar, 0)
    bits = ir.cast("bitcast", scalar, nearest, integer)
    inexact = ir.compare("one", error_scalar, error, zero)
    last = ir.cast("trunc", integer, bits, "i1")
    moved = ir.binary("and", "i1", inexact, e.invert(last))
    down = ir.compare("olt", error_scalar, error, zero)
    negative = ir.compare("slt", integer, bits, splat(integer, 0))
    inwards = ir.binary("xor", "i1", down, negative)
    step = ir.select(inwards, integer, splat(integer, -1), splat(integer, 1))
    step = ir.select(moved, integer, step, splat(integer, 0))
    return ir.cast("bitcast", integer, ir.binary("add", integer, bits, step), scalar)


def odd_sum(e: Emitter, scalar: str, a: str, b: str) -> str:
    """a + b, exact or the odd neighbour of the exact sum (Knuth's two-sum gives the error)."""
    ir = e.ir
    total = ir.binary("fadd", scalar, a, b)
    b_part = ir.binary("fsub", scalar, total, a)
    a_part = ir.binary("fsub", scalar, total, b_part)
    a_error = ir.binary("fsub", scalar, a, a_part)
    b_error = ir.binary("fsub", scalar, b, b_part)
    error = ir.binary("fadd", scalar, a_error, b_error)
    return towards_odd(e, scalar, total, error, scalar)
