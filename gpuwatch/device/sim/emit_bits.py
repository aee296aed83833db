"""Bit counting, fields, permutations and small dot products."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, type_of
from gpuwatch.device.sim.ir import BITS, SCALAR, splat
from gpuwatch.ptx.model import Immediate, Instruction

Emit = Callable[[Emitter, Instruction], None]


def _count(name: str, extra: str) -> Emit:
    def emit(e: Emitter, instruction: Instruction) -> None:
        scalar = SCALAR[type_of(instruction)]
        value = e.value(instruction.operands[1], type_of(instruction))
        counted = e.ir.intrinsic(name, scalar, value, extra=extra)
        e.write(instruction.operands[0], e.resize(counted, scalar, "i32"), "u32")

    return emit


def _brev(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    value = e.value(instruction.operands[1], kind)
    e.write(instruction.operands[0], e.ir.intrinsic("bitreverse", SCALAR[kind], value), kind)


def _low_byte(e: Emitter, instruction: Instruction, index: int, scalar: str) -> str:
    value = e.value(instruction.operands[index], "u32")
    byte = e.ir.binary("and", "i32", value, splat("i32", 255))
    return e.resize(byte, "i32", scalar)


def _ones(e: Emitter, scalar: str, count: str) -> str:
    """`count` low bits set; all of them from the type's width on."""
    bits = BITS[scalar]
    wide = e.ir.compare("uge", scalar, count, splat(scalar, bits))
    safe = e.ir.select(wide, scalar, splat(scalar, 0), count)
    power = e.ir.binary("shl", scalar, splat(scalar, 1), safe)
    ones = e.ir.binary("sub", scalar, power, splat(scalar, 1))
    return e.ir.select(wide, scalar, splat(scalar, -1), ones)


def _shift_or_zero(e: Emitter, operation: str, scalar: str, value: str, count: str) -> str:
    wide = e.ir.compare("uge", scalar, count, splat(scalar, BITS[scalar]))
    safe = e.ir.select(wide, scalar, splat(scalar, 0), count)
    moved = e.ir.binary(operation, scalar, value, safe)
    return e.ir.select(wide, scalar, splat(scalar, 0), moved)


def _bfi(e: Emitter, instruction: Instruction) -> None:
    ir, kind = e.ir, type_of(instruction)
    scalar = SCALAR[kind]
    source, base = (e.value(operand, kind) for operand in instruction.operands[1:3])
    position, length = (_low_byte(e, instruction, k, scalar) for k in (3, 4))
    field = _shift_or_zero(e, "shl", scalar, _ones(e, scalar, length), position)
    moved = ir.binary("and", scalar, _shift_or_zero(e, "shl", scalar, source, position), field)
    kept = ir.binary("and", scalar, base, ir.binary("xor", scalar, field, splat(scalar, -1)))
    e.write(instruction.operands[0], ir.binary("or", scalar, moved, kept), kind)


def _bfe(e: Emitter, instruction: Instruction) -> None:
    ir, kind = e.ir, type_of(instruction)
    scalar, bits = SCALAR[kind], BITS[SCALAR[kind]]
    source = e.value(instruction.operands[1], kind)
    position, length = (_low_byte(e, instruction, k, scalar) for k in (2, 3))
    ones = _ones(e, scalar, length)
    signed = kind.startswith("s")
    if signed:
        last = ir.intrinsic("umin", scalar, position, splat(scalar, bits - 1))
        moved = ir.binary("ashr", scalar, source, last)
    else:
        moved = _shift_or_zero(e, "lshr", scalar, source, position)
    field = ir.binary("and", scalar, moved, ones)
    if signed:
        top = ir.binary("sub", scalar, ir.binary("add", scalar, position, length), splat(scalar, 1))
        top = ir.intrinsic("umin", scalar, top, splat(scalar, bits - 1))
        sign = ir.binary("and", scalar, ir.binary("lshr", scalar, source, top), splat(scalar, 1))
        negative = ir.compare("ne", scalar, sign, splat(scalar, 0))
        some = ir.compare("ne", scalar, length, splat(scalar, 0))
        negative = ir.binary("and", "i1", negative, some)
        filled = ir.binary("xor", scalar, ones, splat(scalar, -1))
        field = ir.select(negative, scalar, ir.binary("or", scalar, field, filled), field)
    e.write(instruction.operands[0], field, kind)


def _bfind(e: Emitter, instruction: Instruction) -> None:
    ir, kind = e.ir, type_of(instruction)
    scalar, bits = SCALAR[kind], BITS[SCALAR[kind]]
    value = e.value(instruction.operands[1], kind)
    if kind.startswith("s"):
        sign = ir.binary("ashr", scalar, value, splat(scalar, bits - 1))
        value = ir.binary("xor", scalar, value, sign)
    zeros = ir.intrinsic("ctlz", scalar, value, extra="false")
    found = ir.binary("sub", scalar, splat(scalar, bits - 1), zeros)
    if "shiftamt" in instruction.tokens:
        none = ir.compare("eq", scalar, value, splat(scalar, 0))
        found = ir.select(none, scalar, splat(scalar, -1), zeros)
    e.write(instruction.operands[0], e.resize(found, scalar, "i32", signed=True), "u32")


def _prmt(e: Emitter, instruction: Instruction) -> None:
    ir, mode = e.ir, instruction.tokens[2] if len(instruction.tokens) > 2 else ""
    a, b, choice = (e.value(operand, "b32") for operand in instruction.operands[1:4])
    high = ir.binary("shl", "i64", ir.cast("zext", "i32", b, "i64"), splat("i64", 32))
    both = ir.binary("or", "i64", high, ir.cast("zext", "i32", a, "i64"))
    wide = ir.cast("zext", "i32", choice, "i64")
    result = splat("i32", 0)
    for k in range(4):
        nibble = _PERMUTATIONS[mode](e, wide, k)
        index = ir.binary("and", "i64", nibble, splat("i64", 7))
        distance = ir.binary("shl", "i64", index, splat("i64", 3))
        picked = ir.cast("trunc", "i64", ir.binary("lshr", "i64", both, distance), "i8")
        if not mode:
            sign = ir.cast("trunc", "i64", ir.binary("lshr", "i64", nibble, splat("i64", 3)), "i1")
            filled = ir.binary("ashr", "i8", picked, splat("i8", 7))
            picked = ir.select(sign, "i8", filled, picked)
        byte = ir.cast("zext", "i8", picked, "i32")
        result = ir.binary("or", "i32", result, ir.binary("shl", "i32", byte, splat("i32", 8 * k)))
    e.write(instruction.operands[0], result, "b32")


def _low_two(e: Emitter, choice: str) -> str:
    return e.ir.binary("and", "i64", choice, splat("i64", 3))


_Permutation = Callable[[Emitter, str, int], str]
_PERMUTATIONS: dict[str, _Permutation] = {
    "": lambda e, choice, k: e.ir.binary("lshr", "i64", choice, splat("i64", 4 * k)),
    "f4e": lambda e, choice, k: e.ir.binary("add", "i64", _low_two(e, choice), splat("i64", k)),
    "b4e": lambda e, choice, k: e.ir.binary("sub", "i64", _low_two(e, choice), splat("i64", k)),
    "rc8": lambda e, choice, _: _low_two(e, choice),
    "ecl": lambda e, choice, k: e.ir.intrinsic("umax", "i64", _low_two(e, choice), splat("i64", k)),
    "ecr": lambda e, choice, k: e.ir.intrinsic("umin", "i64", _low_two(e, choice), splat("i64", k)),
    "rc16": lambda e, choice, k: e.ir.binary(
        "add",
        "i64",
        e.ir.binary("and", "i64", e.ir.binary("shl", "i64", choice, splat("i64", 1)),
                    splat("i64", 2)),
        splat("i64", k & 1),
    ),
}  # fmt: skip
"""For each mode of prmt the source byte of result byte k."""


def _lop3(e: Emitter, instruction: Instruction) -> None:
    """The sum of products that the 8-bit table stands for."""
    table = instruction.operands[4]
    if not isinstance(table, Immediate) or len(instruction.operands) != 5:
        raise UnsupportedError("this form of lop3")
    ir = e.ir
    inputs = [e.value(operand, "b32") for operand in instruction.operands[1:4]]
    negated = [ir.binary("xor", "i32", value, splat("i32", -1)) for value in inputs]
    result = splat("i32", 0)
    for row in range(8):
        if int(table.value) >> row & 1:
            term = splat("i32", -1)
            for k in range(3):
                factor = inputs[k] if row >> (2 - k) & 1 else negated[k]
                term = ir.binary("and", "i32", term, factor)
            result = ir.binary("or", "i32", result, term)
    e.write(instruction.operands[0], result, "b32")


def field(e: Emitter, kind: str, value: str, bits: int, index: int) -> str:
    """Field `index` of `bits` bits, extended by the sign of `kind`."""
    top = e.ir.binary("shl", "i32", value, splat("i32", 32 - bits * (index + 1)))
    shift = "ashr" if kind.startswith("s") else "lshr"
    return e.ir.binary(shift, "i32", top, splat("i32", 32 - bits))


def _dot(instruction: Instruction) -> tuple[int, int]:
    """Bits of a field of the first factor, and the first byte of the second."""
    if instruction.opcode == "dp4a":
        return 8, 0
    return 16, 2 * (instruction.tokens[1] == "hi")


def _dot_product(e: Emitter, instruction: Instruction) -> None:
    """dp4a: four bytes by four bytes; dp2a: two halves by two bytes."""
    ir = e.ir
    a, b, total = (e.value(operand, "b32") for operand in instruction.operands[1:4])
    kinds = instruction.tokens[-2:]
    bits, first = _dot(instruction)
    for k in range(32 // bits):
        product = ir.binary("mul", "i32", field(e, kinds[0], a, bits, k),
                            field(e, kinds[1], b, 8, first + k))  # fmt: skip
        total = ir.binary("add", "i32", total, product)
    e.write(instruction.operands[0], total, "b32")


def _wrapped(e: Emitter, value: str) -> str:
    return e.ir.binary("and", "i32", value, splat("i32", 31))


def _bmsk(e: Emitter, instruction: Instruction) -> None:
    """`width` ones from bit `start` on."""
    start, width = (e.value(operand, "u32") for operand in instruction.operands[1:3])
    if instruction.tokens[1] == "wrap":
        start, width = _wrapped(e, start), _wrapped(e, width)
    ones = _ones(e, "i32", width)
    e.write(instruction.operands[0], _shift_or_zero(e, "shl", "i32", ones, start), "b32")


def _szext(e: Emitter, instruction: Instruction) -> None:
    """The low `width` bits, extended to the whole by sign or with zeros."""
    ir, mode, kind = e.ir, instruction.tokens[1], type_of(instruction)
    value, width = (e.value(operand, "u32") for operand in instruction.operands[1:3])
    if mode == "wrap":
        width = _wrapped(e, width)
    width = ir.intrinsic("umin", "i32", width, splat("i32", 32))
    none = ir.compare("eq", "i32", width, splat("i32", 0))
    rest = ir.binary("and", "i32", ir.binary("sub", "i32", splat("i32", 32), width),
                     splat("i32", 31))  # fmt: skip
    top = ir.binary("shl", "i32", value, rest)
    extended = ir.binary("ashr" if kind == "s32" else "lshr", "i32", top, rest)
    e.write(instruction.operands[0], ir.select(none, "i32", splat("i32", 0), extended), kind)


def _fns(e: Emitter, instruction: Instruction) -> None:
    """Position of the |offset|-th set bit from `base` on, upwards or downwards; -1 for none."""
    ir = e.ir
    mask, base, offset = (e.value(operand, "b32") for operand in instruction.operands[1:4])
    zero, last = splat("i32", 0), splat("i32", 31)
    down = ir.compare("slt", "i32", offset, zero)
    mirrored = ir.intrinsic("bitreverse", "i32", mask)
    mask = ir.select(down, "i32", mirrored, mask)
    start = ir.select(down, "i32", ir.binary("sub", "i32", last, base), base)
    size = ir.intrinsic("abs", "i32", offset, extra="false")
    found = _shift_or_zero(e, "shl", "i32", splat("i32", -1), start)
    found = ir.binary("and", "i32", mask, found)
    only = ir.binary("and", "i32", found, _shift_or_zero(e, "shl", "i32", splat("i32", 1), start))
    found = ir.select(ir.compare("eq", "i32", size, zero), "i32", only, found)
    for passed in range(1, 32):
        without = ir.binary("and", "i32", found, ir.binary("sub", "i32", found, splat("i32", 1)))
        more = ir.compare("ugt", "i32", size, splat("i32", passed))
        found = ir.select(more, "i32", without, found)
    beyond = ir.compare("ugt", "i32", size, splat("i32", 32))
    none = ir.binary("or", "i1", ir.compare("eq", "i32", found, zero), beyond)
    place = ir.intrinsic("cttz", "i32", found, extra="false")
    place = ir.select(down, "i32", ir.binary("sub", "i32", last, place), place)
    e.write(instruction.operands[0], ir.select(none, "i32", splat("i32", -1), place), "b32")


OPCODES: dict[str, Emit] = {
    "popc": _count("ctpop", ""),
    "clz": _count("ctlz", "false"),
    "brev": _brev,
    "bfi": _bfi,
    "bfe": _bfe,
    "bfind": _bfind,
    "prmt": _prmt,
    "lop3": _lop3,
    "dp4a": _dot_product,
    "dp2a": _dot_product,
    "bmsk": _bmsk,
    "szext": _szext,
    "fns": _fns,
}
