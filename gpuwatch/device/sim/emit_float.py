"""Floating-point arithmetic: exact where PTX asks for it, libm where it asks for `.approx`."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, type_of
from gpuwatch.device.sim.ir import BITS, SCALAR, WARP, splat
from gpuwatch.ptx.model import Instruction, Operand

Emit = Callable[[Emitter, Instruction], None]

_DIRECTED = frozenset(("rz", "rm", "rp"))
_SMALLEST_NORMAL = 0x00800000
_SIGN = -(1 << 31)
CANONICAL_NAN = {"half": 0x7FFF, "float": 0x7FFFFFFF, "double": 0x7FFFFFFFFFFFFFFF}


def number(scalar: str, bits: int) -> str:
    """A constant vector of a floating type from its bit pattern."""
    width = BITS[scalar]
    bits -= (bits >> (width - 1)) << width
    return f"bitcast (<{WARP} x i{width}> splat (i{width} {bits}) to <{WARP} x {scalar}>)"


def flush(e: Emitter, value: str) -> str:
    """Subnormal floats become zeros of their sign."""
    ir = e.ir
    bits = ir.cast("bitcast", "float", value, "i32")
    size = ir.binary("and", "i32", bits, splat("i32", 0x7FFFFFFF))
    small = ir.compare("ult", "i32", size, splat("i32", _SMALLEST_NORMAL))
    sign = ir.binary("and", "i32", bits, splat("i32", _SIGN))
    return ir.cast("bitcast", "i32", ir.select(small, "i32", sign, bits), "float")


def saturate(e: Emitter, value: str, scalar: str) -> str:
    """Clamps to 0..1; NaN becomes 0."""
    one = {"half": 0x3C00, "float": 0x3F800000, "double": 0x3FF0000000000000}[scalar]
    above = e.ir.intrinsic("maximumnum", scalar, value, number(scalar, 0))
    return e.ir.intrinsic("minimumnum", scalar, above, number(scalar, one))


def sources(e: Emitter, instruction: Instruction, operands: tuple[Operand, ...]) -> list[str]:
    """Operand values, flushed when the opcode says so."""
    kind = type_of(instruction)
    given = [e.value(operand, kind) for operand in operands]
    if "ftz" in instruction.tokens and kind == "f32":
        given = [flush(e, value) for value in given]
    return given


def finish(e: Emitter, instruction: Instruction, result: str) -> None:
    """Writes a result after `.ftz` and `.sat`."""
    kind = type_of(instruction)
    if "ftz" in instruction.tokens and kind == "f32":
        result = flush(e, result)
    if "sat" in instruction.tokens:
        result = saturate(e, result, SCALAR[kind])
    e.write(instruction.operands[0], result, kind)


def _simple(emit: Callable[[Emitter, str, list[str]], str]) -> Emit:
    def run(e: Emitter, instruction: Instruction) -> None:
        if _DIRECTED & set(instruction.tokens):
            raise UnsupportedError("directed rounding")
        given = sources(e, instruction, instruction.operands[1:])
        finish(e, instruction, emit(e, SCALAR[type_of(instruction)], given))

    return run


def _binary(operation: str) -> Emit:
    return _simple(lambda e, scalar, v: e.ir.binary(operation, scalar, v[0], v[1]))


def _intrinsic(name: str) -> Emit:
    return _simple(lambda e, scalar, v: e.ir.intrinsic(name, scalar, *v))


def _reciprocal(e: Emitter, scalar: str, value: str) -> str:
    one = {"half": 0x3C00, "float": 0x3F800000, "double": 0x3FF0000000000000}[scalar]
    return e.ir.binary("fdiv", scalar, number(scalar, one), value)


def _fused(e: Emitter, scalar: str, given: list[str]) -> str:
    if scalar == "half":
        raise UnsupportedError("fma of f16")
    return e.ir.intrinsic("fma", scalar, *given)


def extreme(name: str) -> Emit:
    """PTX min and max: a NaN loses against a number, except with `.NaN`; -0 is below +0."""

    def emit(e: Emitter, instruction: Instruction) -> None:
        kind, tokens = type_of(instruction), instruction.tokens
        if "xorsign" in tokens or "abs" in tokens[1:]:
            raise UnsupportedError(".xorsign.abs")
        scalar = SCALAR[kind]
        given = sources(e, instruction, instruction.operands[1:])
        suffix = "imum" if "NaN" in tokens else "imumnum"
        result = given[0]
        for other in given[1:]:
            result = e.ir.intrinsic(name + suffix, scalar, result, other)
        unordered = e.ir.compare("uno", scalar, result, result)
        result = e.ir.select(unordered, scalar, number(scalar, CANONICAL_NAN[scalar]), result)
        finish(e, instruction, result)

    return emit


def _copysign(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    sign, size = (e.value(operand, kind) for operand in instruction.operands[1:])
    result = e.ir.intrinsic("copysign", SCALAR[kind], size, sign)
    e.write(instruction.operands[0], result, kind)


def _testp(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    scalar, test = SCALAR[kind], instruction.tokens[1]
    if test not in _CLASSES:
        raise UnsupportedError(f"testp.{test}")
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

add = _binary("fadd")
sub = _binary("fsub")
mul = _binary("fmul")
div = _binary("fdiv")
fma = _simple(_fused)
neg = _simple(lambda e, scalar, v: e.ir.value(f"fneg <{WARP} x {scalar}> {v[0]}"))
absolute = _intrinsic("fabs")

OPCODES: dict[str, Emit] = {
    "fma": fma,
    "sqrt": _intrinsic("sqrt"),
    "rsqrt": _simple(lambda e, s, v: _reciprocal(e, s, e.ir.intrinsic("sqrt", s, v[0]))),
    "rcp": _simple(lambda e, s, v: _reciprocal(e, s, v[0])),
    "ex2": _intrinsic("exp2"),
    "lg2": _intrinsic("log2"),
    "sin": _intrinsic("sin"),
    "cos": _intrinsic("cos"),
    "tanh": _intrinsic("tanh"),
    "copysign": _copysign,
    "testp": _testp,
}
APPROXIMATE = frozenset(["ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp", "sqrt", "div"])
"""Opcodes whose `.approx` form differs from the hardware's in the last bits."""
