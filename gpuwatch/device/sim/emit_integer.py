"""Integer, logic, comparison and data movement instructions."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim import emit_carry, emit_float
from gpuwatch.device.sim.emit_float import elements, is_floating
from gpuwatch.device.sim.emitter import Emitter, type_of
from gpuwatch.device.sim.ir import BITS, SCALAR, splat
from gpuwatch.ptx.model import Instruction, Operand, Vector

Emit = Callable[[Emitter, Instruction], None]


def is_signed(kind: str) -> bool:
    return kind.startswith("s")


def values(e: Emitter, instruction: Instruction, kind: str) -> list[str]:
    """All source operands as PTX type `kind`."""
    return [e.value(operand, kind) for operand in instruction.operands[1:]]


def arithmetic(integer: str, floating: Emit) -> Emit:
    """An instruction with both an integer and a floating form."""

    def emit(e: Emitter, instruction: Instruction) -> None:
        kind, tokens = type_of(instruction), instruction.tokens
        if is_floating(kind):
            floating(e, instruction)
        elif "cc" in tokens:
            emit_carry.add(e, instruction)
        else:
            one = _saturated if "sat" in tokens else _plain
            result = elements(e, instruction, kind, lambda k, v: one(e, integer, SCALAR[k], v))
            e.write(instruction.operands[0], result, kind)

    return emit


def _plain(e: Emitter, operation: str, scalar: str, values: list[str]) -> str:
    return e.ir.binary(operation, scalar, *values)


def _saturated(e: Emitter, operation: str, scalar: str, values: list[str]) -> str:
    return e.ir.intrinsic(f"s{operation}.sat", scalar, *values)


def _logic(operation: str) -> Emit:
    def emit(e: Emitter, instruction: Instruction) -> None:
        kind = type_of(instruction)
        a, b = values(e, instruction, kind)
        e.write(instruction.operands[0], e.ir.binary(operation, SCALAR[kind], a, b), kind)

    return emit


def _not(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    ones = splat(SCALAR[kind], "true" if kind == "pred" else -1)
    (a,) = values(e, instruction, kind)
    e.write(instruction.operands[0], e.ir.binary("xor", SCALAR[kind], a, ones), kind)


def _cnot(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    (a,) = values(e, instruction, kind)
    zero = e.ir.compare("eq", SCALAR[kind], a, splat(SCALAR[kind], 0))
    e.write(instruction.operands[0], e.resize(zero, "i1", SCALAR[kind]), kind)


def _neg(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    if is_floating(kind):
        emit_float.neg(e, instruction)
        return
    (a,) = values(e, instruction, kind)
    zero = splat(SCALAR[kind], 0)
    e.write(instruction.operands[0], e.ir.binary("sub", SCALAR[kind], zero, a), kind)


def _abs(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    if is_floating(kind):
        emit_float.absolute(e, instruction)
        return
    (a,) = values(e, instruction, kind)
    e.write(instruction.operands[0], e.ir.intrinsic("abs", SCALAR[kind], a, extra="false"), kind)


def _extreme(name: str) -> Emit:
    floating = emit_float.extreme(name)

    def emit(e: Emitter, instruction: Instruction) -> None:
        kind = type_of(instruction)
        if is_floating(kind):
            floating(e, instruction)
            return
        result = elements(e, instruction, kind, lambda k, v: one(e, instruction, k, v))
        e.write(instruction.operands[0], result, kind)

    def one(e: Emitter, instruction: Instruction, kind: str, values: list[str]) -> str:
        sign, scalar = "s" if is_signed(kind) else "u", SCALAR[kind]
        result = e.ir.intrinsic(sign + name, scalar, *values)
        if "relu" in instruction.tokens:
            result = e.ir.intrinsic("smax", scalar, result, splat(scalar, 0))
        return result

    return emit


def _product(e: Emitter, kind: str, form: str, a: str, b: str) -> tuple[str, str]:
    """a * b in the form "lo", "hi" or "wide"; gives the value and its PTX type."""
    scalar, bits = SCALAR[kind], BITS[SCALAR[kind]]
    if form == "lo":
        return e.ir.binary("mul", scalar, a, b), kind
    extension = "sext" if is_signed(kind) else "zext"
    double = f"i{2 * bits}"
    a, b = e.ir.cast(extension, scalar, a, double), e.ir.cast(extension, scalar, b, double)
    product = e.ir.binary("mul", double, a, b)
    if form == "wide":
        return product, f"{kind[0]}{2 * bits}"
    high = e.ir.binary("lshr", double, product, splat(double, bits))
    return e.ir.cast("trunc", double, high, scalar), kind


def _multiply(e: Emitter, instruction: Instruction) -> None:
    kind, tokens = type_of(instruction), instruction.tokens
    if is_floating(kind):
        (emit_float.fma if tokens[0] == "mad" else emit_float.mul)(e, instruction)
        return
    a, b = (e.value(operand, kind) for operand in instruction.operands[1:3])
    result, result_kind = _product(e, kind, tokens[1], a, b)
    if tokens[0] != "mul":
        addend = e.value(instruction.operands[3], result_kind)
        if "cc" in tokens or tokens[0] == "madc":
            emit_carry.add_to(e, instruction, result_kind, result, addend)
            return
        one = _saturated if "sat" in tokens else _plain
        result = one(e, "add", SCALAR[result_kind], [result, addend])
    e.write(instruction.operands[0], result, result_kind)


def _multiply24(e: Emitter, instruction: Instruction) -> None:
    """The low or the high 32 of the 48 bits of a product of 24-bit numbers."""
    kind, tokens = type_of(instruction), instruction.tokens
    extension, shift = ("sext", "ashr") if is_signed(kind) else ("zext", "lshr")
    forty = splat("i64", 40)
    a, b = (
        e.ir.binary(shift, "i64", e.ir.binary("shl", "i64", wide, forty), forty)
        for wide in (
            e.ir.cast(extension, "i32", e.value(operand, kind), "i64")
            for operand in instruction.operands[1:3]
        )
    )
    product = e.ir.binary("mul", "i64", a, b)
    if tokens[1] == "hi":
        product = e.ir.binary("lshr", "i64", product, splat("i64", 16))
    result = e.ir.cast("trunc", "i64", product, "i32")
    if tokens[0] == "mad24":
        one = _saturated if "sat" in tokens else _plain
        result = one(e, "add", "i32", [result, e.value(instruction.operands[3], kind)])
    e.write(instruction.operands[0], result, kind)


def _divide(operation: str) -> Emit:
    def emit(e: Emitter, instruction: Instruction) -> None:
        kind = type_of(instruction)
        if is_floating(kind):
            emit_float.div(e, instruction)
            return
        scalar = SCALAR[kind]
        a, b = values(e, instruction, kind)
        zero = e.ir.compare("eq", scalar, b, splat(scalar, 0))
        unsafe = zero
        if is_signed(kind):
            unsafe = e.ir.binary("or", "i1", zero, _overflows(e, scalar, a, b))
        mask = e.mask()
        if mask is not None:
            unsafe = e.ir.binary("or", "i1", unsafe, e.invert(mask))
        divisor = e.ir.select(unsafe, scalar, splat(scalar, 1), b)
        sign = "s" if is_signed(kind) else "u"
        result = e.ir.binary(f"{sign}{operation}", scalar, a, divisor)
        at_zero = splat(scalar, -1) if operation == "div" else a
        if operation == "rem" and is_signed(kind):
            result = e.ir.select(unsafe, scalar, splat(scalar, 0), result)
        result = e.ir.select(zero, scalar, at_zero, result)
        e.write(instruction.operands[0], result, kind)

    return emit


def _overflows(e: Emitter, scalar: str, a: str, b: str) -> str:
    least = e.ir.compare("eq", scalar, a, splat(scalar, -(1 << (BITS[scalar] - 1))))
    minus_one = e.ir.compare("eq", scalar, b, splat(scalar, -1))
    return e.ir.binary("and", "i1", least, minus_one)


def _shift(left: bool) -> Emit:
    def emit(e: Emitter, instruction: Instruction) -> None:
        ir, kind = e.ir, type_of(instruction)
        scalar, bits = SCALAR[kind], BITS[SCALAR[kind]]
        a = e.value(instruction.operands[1], kind)
        amount = e.value(instruction.operands[2], "u32")
        last = ir.intrinsic("umin", "i32", amount, splat("i32", bits - 1))
        signed = is_signed(kind) and not left
        operation = "shl" if left else "ashr" if signed else "lshr"
        result = ir.binary(operation, scalar, a, e.resize(last, "i32", scalar))
        if not signed:
            over = ir.compare("ugt", "i32", amount, splat("i32", bits - 1))
            result = ir.select(over, scalar, splat(scalar, 0), result)
        e.write(instruction.operands[0], result, kind)

    return emit


def _funnel_shift(e: Emitter, instruction: Instruction) -> None:
    ir, tokens = e.ir, instruction.tokens
    low, high, amount = values(e, instruction, "u32")
    wide_low = ir.cast("zext", "i32", low, "i64")
    wide_high = ir.binary("shl", "i64", ir.cast("zext", "i32", high, "i64"), splat("i64", 32))
    both = ir.binary("or", "i64", wide_high, wide_low)
    if "wrap" in tokens:
        amount = ir.binary("and", "i32", amount, splat("i32", 31))
    else:
        amount = ir.intrinsic("umin", "i32", amount, splat("i32", 32))
    count = ir.cast("zext", "i32", amount, "i64")
    if tokens[1] == "l":
        count = ir.binary("sub", "i64", splat("i64", 32), count)
    shifted = ir.binary("lshr", "i64", both, count)
    e.write(instruction.operands[0], ir.cast("trunc", "i64", shifted, "i32"), "b32")


def _mov(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    target, source = instruction.operands
    if isinstance(target, Vector):
        _unpack(e, target, source, kind)
    elif isinstance(source, Vector):
        _pack(e, target, source, kind)
    else:
        e.write(target, e.value(source, kind), kind)


def _unpack(e: Emitter, target: Vector, source: Operand, kind: str) -> None:
    whole, scalar = e.value(source, kind), SCALAR[kind]
    part = BITS[scalar] // len(target.items)
    for k, item in enumerate(target.items):
        shifted = e.ir.binary("lshr", scalar, whole, splat(scalar, k * part))
        e.write(item, e.ir.cast("trunc", scalar, shifted, f"i{part}"), f"b{part}")


def _pack(e: Emitter, target: Operand, source: Vector, kind: str) -> None:
    scalar = SCALAR[kind]
    part = BITS[scalar] // len(source.items)
    whole = splat(scalar, 0)
    for k, item in enumerate(source.items):
        piece = e.ir.cast("zext", f"i{part}", e.value(item, f"b{part}"), scalar)
        piece = e.ir.binary("shl", scalar, piece, splat(scalar, k * part))
        whole = e.ir.binary("or", scalar, whole, piece)
    e.write(target, whole, kind)


def _sad(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    scalar, sign = SCALAR[kind], "s" if is_signed(kind) else "u"
    a, b, c = values(e, instruction, kind)
    high, low = (e.ir.intrinsic(sign + name, scalar, a, b) for name in ("max", "min"))
    distance = e.ir.binary("sub", scalar, high, low)
    e.write(instruction.operands[0], e.ir.binary("add", scalar, distance, c), kind)


OPCODES: dict[str, Emit] = {
    "add": arithmetic("add", emit_float.add),
    "sub": arithmetic("sub", emit_float.sub),
    "mul": _multiply,
    "mad": _multiply,
    "addc": emit_carry.add,
    "subc": emit_carry.add,
    "madc": _multiply,
    "mul24": _multiply24,
    "mad24": _multiply24,
    "div": _divide("div"),
    "rem": _divide("rem"),
    "min": _extreme("min"),
    "max": _extreme("max"),
    "neg": _neg,
    "abs": _abs,
    "and": _logic("and"),
    "or": _logic("or"),
    "xor": _logic("xor"),
    "not": _not,
    "cnot": _cnot,
    "shl": _shift(left=True),
    "shr": _shift(left=False),
    "shf": _funnel_shift,
    "mov": _mov,
    "sad": _sad,
}
