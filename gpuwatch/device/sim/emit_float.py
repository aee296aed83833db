"""Floating-point arithmetic: exact where PTX asks for it, libm where it asks for `.approx`.

f32 and f64 are computed in their own type. f16 and bf16, alone or in pairs, are computed in f32
and rounded once; their `fma` goes through a sum that is rounded to odd.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emit_formats import (
    NARROW,
    PACKED,
    join,
    narrow,
    odd_from_double,
    odd_sum,
    split,
    widen,
)
from gpuwatch.device.sim.emit_rounding import directed, mode_of
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, type_of
from gpuwatch.device.sim.ir import BITS, SCALAR, WARP, number, splat
from gpuwatch.device.sim.nans import canonical
from gpuwatch.ptx.model import Instruction, Register

Emit = Callable[[Emitter, Instruction], None]
Compute = Callable[[Emitter, Instruction, str, list[str]], str]
"""From operands of an element type to the result, both f32 where the type is narrower."""

FLOATING = frozenset(("f16", "bf16", "f32", "f64", "f16x2", "bf16x2"))
SMALLEST_NORMAL = {"float": 0x00800000, "half": 0x0400, "double": 1 << 52}
_ONE = {"half": 0x3C00, "float": 0x3F800000, "double": 0x3FF0000000000000}


def is_floating(kind: str) -> bool:
    """Whether a PTX type holds floating-point numbers that instructions compute with."""
    return kind in FLOATING


def flush(e: Emitter, value: str, scalar: str = "float") -> str:
    """Subnormal numbers become zeros of their sign."""
    ir, integer = e.ir, f"i{BITS[scalar]}"
    sign_bit = 1 << (BITS[scalar] - 1)
    bits = ir.cast("bitcast", scalar, value, integer)
    size = ir.binary("and", integer, bits, splat(integer, sign_bit - 1))
    small = ir.compare("ult", integer, size, splat(integer, SMALLEST_NORMAL[scalar]))
    sign = ir.binary("and", integer, bits, splat(integer, -sign_bit))
    return ir.cast("bitcast", integer, ir.select(small, integer, sign, bits), scalar)


def saturate(e: Emitter, value: str, scalar: str) -> str:
    """Clamps to 0..1; NaN becomes 0."""
    above = e.ir.intrinsic("maximumnum", scalar, value, number(scalar, 0))
    return e.ir.intrinsic("minimumnum", scalar, above, number(scalar, _ONE[scalar]))


def clip(e: Emitter, value: str, scalar: str) -> str:
    """`.relu`: numbers below 0 become +0, NaN stays."""
    return e.ir.intrinsic("maximum", scalar, value, number(scalar, 0))


def elements(
    e: Emitter, instruction: Instruction, kind: str, one: Callable[[str, list[str]], str]
) -> str:
    """What `one(element type, operands)` gives, for both elements where `kind` is packed."""
    values = [e.value(operand, kind) for operand in instruction.operands[1:]]
    if kind not in PACKED:
        return one(kind, values)
    element = PACKED[kind]
    pairs = [split(e, kind, value) for value in values]
    low, high = (one(element, [pair[k] for pair in pairs]) for k in (0, 1))
    return join(e, kind, low, high)


def _simple(compute: Compute) -> Emit:
    """An instruction whose operands and result have one floating type, single or packed."""

    def emit(e: Emitter, instruction: Instruction) -> None:
        kind = type_of(instruction)
        if not is_floating(kind):
            raise UnsupportedError(f"{instruction.opcode} of {kind}")
        result = elements(
            e, instruction, kind, lambda element, v: _element(e, instruction, compute, element, v)
        )
        write(e, instruction, result, kind)

    return emit


def write(e: Emitter, instruction: Instruction, result: str, kind: str) -> None:
    """Writes a computed number, NaN put right where the register needs it."""
    target = instruction.operands[0]
    if kind in ("f32", "f64") and isinstance(target, Register) and target.name in e.nans.at_write:
        result = canonical(e.ir, result, SCALAR[kind])
    e.write(target, result, kind)


def _element(
    e: Emitter, instruction: Instruction, compute: Compute, kind: str, values: list[str]
) -> str:
    """One element: `.ftz`, widening, the computation, `.sat`, `.relu`, narrowing."""
    tokens, scalar = instruction.tokens, SCALAR[kind]
    ftz = "ftz" in tokens and scalar in SMALLEST_NORMAL
    if ftz:
        values = [flush(e, value, scalar) for value in values]
    is_narrow = kind in ("f16", "bf16")
    work = "float" if is_narrow else scalar
    if is_narrow:
        values = [widen(e, kind, value) for value in values]
    result = compute(e, instruction, kind, values)
    if "sat" in tokens:
        result = saturate(e, result, work)
    if "relu" in tokens:
        result = clip(e, result, work)
    if is_narrow:
        result = narrow(e, kind, result)
    return flush(e, result, scalar) if ftz else result


def work_type(kind: str) -> str:
    """LLVM type in which elements of a floating type are computed."""
    return "double" if kind == "f64" else "float"


def _directable(operation: str, *, is_intrinsic: bool = False) -> Compute:
    """An operation that is exact in any rounding mode."""

    def compute(e: Emitter, instruction: Instruction, kind: str, values: list[str]) -> str:
        scalar, mode = work_type(kind), mode_of(instruction.tokens)
        if mode != "rn":
            return directed(e, operation, scalar, mode, *values)
        if is_intrinsic:
            return e.ir.intrinsic(operation, scalar, *values)
        return e.ir.binary(operation, scalar, *values)

    return compute


def _fused(e: Emitter, instruction: Instruction, kind: str, values: list[str]) -> str:
    if kind == "f16":
        product = e.ir.binary("fmul", "float", values[0], values[1])
        return odd_sum(e, "float", product, values[2])
    if kind == "bf16":
        a, b, c = (e.ir.cast("fpext", "float", value, "double") for value in values)
        return odd_from_double(e, odd_sum(e, "double", e.ir.binary("fmul", "double", a, b), c))
    return _FMA(e, instruction, kind, values)


_FMA = _directable("fma", is_intrinsic=True)
_DIVIDE = _directable("fdiv")
_ROOT = _directable("sqrt", is_intrinsic=True)


def _reciprocal(e: Emitter, instruction: Instruction, kind: str, values: list[str]) -> str:
    scalar = work_type(kind)
    result = _DIVIDE(e, instruction, kind, [number(scalar, _ONE[scalar]), values[0]])
    return _gross(e, instruction, kind, result)


def _reciprocal_root(e: Emitter, instruction: Instruction, kind: str, values: list[str]) -> str:
    scalar = work_type(kind)
    root = e.ir.intrinsic("sqrt", scalar, values[0])
    result = e.ir.binary("fdiv", scalar, number(scalar, _ONE[scalar]), root)
    return _gross(e, instruction, kind, result)


def _gross(e: Emitter, instruction: Instruction, kind: str, result: str) -> str:
    """`.approx.ftz.f64` results have no low word."""
    if kind != "f64" or not {"approx", "ftz"} <= set(instruction.tokens):
        return result
    bits = e.ir.cast("bitcast", "double", result, "i64")
    return e.ir.cast("bitcast", "i64", e.ir.binary("and", "i64", bits, splat("i64", -(1 << 32))),
                     "double")  # fmt: skip


def _function(name: str) -> Compute:
    return lambda e, _, kind, values: e.ir.intrinsic(name, work_type(kind), *values)


def extreme(name: str) -> Emit:
    """PTX min and max: a NaN loses against a number, except with `.NaN`; -0 is below +0."""

    def compute(e: Emitter, instruction: Instruction, kind: str, values: list[str]) -> str:
        tokens, scalar = instruction.tokens, work_type(kind)
        suffix = "imum" if "NaN" in tokens else "imumnum"
        signs = values
        if "xorsign" in tokens:
            values = [e.ir.intrinsic("fabs", scalar, value) for value in values]
        result = values[0]
        for other in values[1:]:
            result = e.ir.intrinsic(name + suffix, scalar, result, other)
        if "xorsign" in tokens:
            result = _with_sign_of_product(e, scalar, result, signs)
        return canonical(e.ir, result, scalar)

    return _simple(compute)


def _with_sign_of_product(e: Emitter, scalar: str, size: str, values: list[str]) -> str:
    integer = f"i{BITS[scalar]}"
    a, b = (e.ir.cast("bitcast", scalar, value, integer) for value in values)
    signs = e.ir.cast("bitcast", integer, e.ir.binary("xor", integer, a, b), scalar)
    return e.ir.intrinsic("copysign", scalar, size, signs)


def _sign_change(wide: Emit, operation: str) -> Emit:
    """neg ("xor") or abs ("and"): `wide` for f32 and f64, else on the bits of one or two halves."""

    def emit(e: Emitter, instruction: Instruction) -> None:
        kind = type_of(instruction)
        if kind in ("f32", "f64"):
            wide(e, instruction)
            return
        result = elements(e, instruction, kind, lambda element, v: one(e, instruction, element, v))
        e.write(instruction.operands[0], result, kind)

    def one(e: Emitter, instruction: Instruction, kind: str, values: list[str]) -> str:
        (value,), scalar = values, SCALAR[kind]
        if "ftz" in instruction.tokens and scalar in SMALLEST_NORMAL:
            value = flush(e, value, scalar)
        bits = e.resize(value, scalar, "i16")
        pattern = splat("i16", -(1 << 15) if operation == "xor" else (1 << 15) - 1)
        changed = e.ir.binary(operation, "i16", bits, pattern)
        format_ = NARROW[kind]
        size = e.ir.binary("and", "i16", bits, splat("i16", (1 << 15) - 1))
        is_nan = e.ir.compare("ugt", "i16", size, splat("i16", format_.overflow))
        return e.resize(
            e.ir.select(is_nan, "i16", splat("i16", format_.nan), changed), "i16", scalar
        )

    return emit


def _copysign(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    sign, size = (e.value(operand, kind) for operand in instruction.operands[1:])
    result = e.ir.intrinsic("copysign", SCALAR[kind], size, sign)
    e.write(instruction.operands[0], result, kind)


def _testp(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    scalar, test = SCALAR[kind], instruction.tokens[1]
    name = f"llvm.is.fpclass.v{WARP}{kind}"
    value = e.value(instruction.operands[1], kind)
    result = e.ir.call(
        f"<{WARP} x i1>",
        name,
        [(f"<{WARP} x {scalar}>", value), ("i32", str(_CLASSES[test]))],
    )
    e.write(instruction.operands[0], result, "pred")


_CLASSES = {
    "notanumber": 0x003,
    "infinite": 0x204,
    "normal": 0x108,
    "subnormal": 0x090,
    "finite": 0x1F8,
    "number": 0x3FC,
}
"""Bits of LLVM's floating-point class test."""

add = _simple(_directable("fadd"))
sub = _simple(_directable("fsub"))
mul = _simple(_directable("fmul"))
div = _simple(_DIVIDE)
fma = _simple(_fused)
neg = _sign_change(_simple(lambda e, _, kind, v: e.ir.unary("fneg", SCALAR[kind], v[0])), "xor")
absolute = _sign_change(_simple(_function("fabs")), "and")

OPCODES: dict[str, Emit] = {
    "fma": fma,
    "sqrt": _simple(_ROOT),
    "rsqrt": _simple(_reciprocal_root),
    "rcp": _simple(_reciprocal),
    "ex2": _simple(_function("exp2")),
    "lg2": _simple(_function("log2")),
    "sin": _simple(_function("sin")),
    "cos": _simple(_function("cos")),
    "tanh": _simple(_function("tanh")),
    "copysign": _copysign,
    "testp": _testp,
}
APPROXIMATE = frozenset(["ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp", "sqrt", "div"])
"""Opcodes whose `.approx` form differs from the hardware's in the last bits."""
