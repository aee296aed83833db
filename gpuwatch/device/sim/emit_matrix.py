"""mma and wmma: products of small matrices that the lanes of a warp hold together.

Integers are exact. Products of floating-point elements are added one after another, in the order
of k, each with one rounding (a fused multiply-add in f32, for f64 in f64); a result in f16 is
rounded once more at the end. The hardware adds in an order and with a rounding of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpuwatch.device.sim.emit_bits import field
from gpuwatch.device.sim.emit_formats import NARROW, join, narrow, split, widen
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, items_of
from gpuwatch.device.sim.fragments import (
    MATRIX_BITS,
    Fragment,
    Shape,
    fragment_a,
    fragment_b,
    fragment_c,
    per_register,
    shape_of,
)
from gpuwatch.device.sim.ir import SCALAR, WARP, Builder, splat, vector
from gpuwatch.device.sim.nans import canonical
from gpuwatch.ptx.model import Instruction

_SUPPORTED = frozenset(
    (
        *(("f16", "f16", "f16", "f16"), ("f32", "f16", "f16", "f16"), ("f16", "f16", "f16", "f32")),
        *(("f32", kind, kind, "f32") for kind in ("f16", "bf16", "tf32")),
        *(("f32", a, b, "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
        ("f64", "f64", "f64", "f64"),
        *(("s32", a, b, "s32") for a in ("s8", "u8") for b in ("s8", "u8")),
        *(("s32", a, b, "s32") for a in ("s4", "u4") for b in ("s4", "u4")),
        ("s32", "b1", "b1", "s32"),
    )
)


@dataclass(frozen=True, slots=True)
class Product:
    """D = A * B + C by shape and element types; `combine` is xor or and for single bits."""

    shape: Shape
    d: str
    a: str
    b: str
    c: str
    saturated: bool
    combine: str

    @property
    def name(self) -> str:
        s = self.shape
        parts = (self.d, self.a, self.b, self.c, "sat" * self.saturated, self.combine)
        return f"mma.m{s.m}n{s.n}k{s.k}.{'.'.join(filter(None, parts))}"


def product_of(instruction: Instruction) -> Product:
    tokens = instruction.tokens
    kinds = [token for token in tokens[1:] if token in MATRIX_BITS]
    if tokens[0] == "wmma" and len(kinds) == 2:
        kinds = [kinds[0], "f16", "f16", kinds[1]]
    shape = shape_of(tokens)
    if tuple(kinds) not in _SUPPORTED or "sp" in tokens or (shape.k, kinds[1]) == (4, "f16"):
        raise UnsupportedError("matrices of this shape and these types")
    combine = next((token for token in tokens if token in ("xor", "and")), "")
    if kinds[1] == "b1" and not combine:
        combine = "xor"
    d, a, b, c = kinds
    return Product(shape, d, a, b, c, "satfinite" in tokens, combine)


def multiply(e: Emitter, instruction: Instruction) -> None:
    """mma.sync and wmma.mma."""
    product = product_of(instruction)
    target, a, b, c = (items_of(operand) for operand in instruction.operands)
    counts = (
        fragment_a(product.shape, product.a).registers,
        fragment_b(product.shape, product.b).registers,
        len(c),
    )
    kinds = [register_kind(kind) for kind in (product.a, product.b, product.c)]
    values = [
        (vector(SCALAR[kind]), e.value(operand, kind))
        for operands, count, kind in zip((a, b, c), counts, kinds, strict=True)
        for operand in operands[:count]
    ]
    scalar = SCALAR[register_kind(product.d)]
    results = outlined(
        e,
        product.name,
        values,
        [scalar] * len(target),
        lambda inner, names: _multiplied(inner, product, names),
    )
    for operand, result in zip(target, results, strict=True):
        e.write(operand, result, register_kind(product.d))


def register_kind(kind: str) -> str:
    """The type as which registers with elements of `kind` are read and written."""
    return kind if kind in ("f32", "f64", "s32") else "b32"


def outlined(
    e: Emitter,
    name: str,
    values: Sequence[tuple[str, str]],
    results: Sequence[str],
    body: Callable[[Emitter, list[str]], list[str]],
) -> list[str]:
    """Calls a function of the module that holds what `body` emits; vectors go in and out."""
    kinds = ", ".join(vector(scalar) for scalar in results)
    if name not in e.ir.functions:
        e.ir.functions[name] = ""
        outer, e.ir = e.ir, Builder()
        returned = body(e, [f"%a{k}" for k in range(len(values))])
        inner, e.ir = e.ir, outer
        outer.declarations |= inner.declarations
        outer.functions.update(inner.functions)
        outer.functions[name] = _definition(name, [k for k, _ in values], kinds, results, inner,
                                            returned)  # fmt: skip
    answer = e.ir.call(f"{{{kinds}}}", name, list(values))
    return [e.ir.value(f"extractvalue {{{kinds}}} {answer}, {k}") for k in range(len(results))]


def _definition(
    name: str,
    given: list[str],
    kinds: str,
    results: Sequence[str],
    inner: Builder,
    returned: list[str],
) -> str:
    parameters = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(given))
    whole = "poison"
    for k, (scalar, value) in enumerate(zip(results, returned, strict=True)):
        whole = inner.value(f"insertvalue {{{kinds}}} {whole}, {vector(scalar)} {value}, {k}")
    lines = "\n".join(inner.lines)
    return (
        f"define internal {{{kinds}}} @{name}({parameters}) noinline nounwind #0 {{\n"
        f"{lines}\n  ret {{{kinds}}} {whole}\n}}\n"
    )


def _multiplied(e: Emitter, product: Product, given: list[str]) -> list[str]:
    shape = product.shape
    a_part, b_part = fragment_a(shape, product.a), fragment_b(shape, product.b)
    a = [_unpacked(e, product.a, r) for r in given[: a_part.registers]]
    b = [_unpacked(e, product.b, r) for r in given[a_part.registers :][: b_part.registers]]
    totals = _accumulators(e, product, given[a_part.registers + b_part.registers :])
    row_blocks, column_blocks = shape.m // 8, shape.n // 8
    unit = 32 if product.a == "b1" else 1
    for k in range(0, shape.k, unit):
        rows = [_line(e, product, a_part, a, block, k) for block in range(row_blocks)]
        columns = [
            _column(e, product, b_part, b, block, odd, k)
            for block in range(column_blocks)
            for odd in (0, 1)
        ]
        for index, total in enumerate(totals):
            pair, odd = divmod(index, 2)
            row, column = rows[pair % row_blocks], columns[pair // row_blocks * 2 + odd]
            totals[index] = _accumulated(e, product, row, column, total)
    return _finished(e, product, totals)


def _work(product: Product) -> str:
    """LLVM type of the sums."""
    if product.d == "s32":
        return "i64" if product.saturated else "i32"
    return "double" if product.d == "f64" else "float"


def _line(
    e: Emitter, product: Product, part: Fragment, a: list[list[str]], block: int, k: int
) -> str:
    """A[row of the lane's results in the block of rows, k]."""
    held = a[part.register_of(8 * block, k)][k % part.packed]
    places = [part.lane_of(lane // 4, k) for lane in range(WARP)]
    return e.ir.permute(_element_type(product), held, places)


def _column(
    e: Emitter, product: Product, part: Fragment, b: list[list[str]], block: int, odd: int, k: int
) -> str:
    """B[k, column of the lane's even or odd results in the block of columns]."""
    held = b[part.register_of(8 * block, k)][k % part.packed]
    places = [part.lane_of(lane % 4 * 2 + odd, k) for lane in range(WARP)]
    return e.ir.permute(_element_type(product), held, places)


def _element_type(product: Product) -> str:
    """LLVM type of elements of A and B when they are multiplied."""
    if product.d == "s32":
        return "i32"
    return "double" if product.d == "f64" else "float"


def _unpacked(e: Emitter, kind: str, register: str) -> list[str]:
    """The elements of a register of A or B, lowest first, ready to be multiplied."""
    if kind in ("f64", "b1"):
        return [register]
    if kind == "tf32":
        return [widen(e, kind, register)]
    if kind in NARROW:
        return [
            widen(e, kind, e.resize(_bits(e, register, MATRIX_BITS[kind], k), "i32", SCALAR[kind]))
            for k in range(per_register(kind))
        ]
    return [field(e, kind, register, MATRIX_BITS[kind], k) for k in range(per_register(kind))]


def _bits(e: Emitter, register: str, bits: int, index: int) -> str:
    return e.ir.binary("lshr", "i32", register, splat("i32", bits * index))


def _accumulators(e: Emitter, product: Product, registers: list[str]) -> list[str]:
    if product.c == "f16":
        return [widen(e, "f16", half) for r in registers for half in split(e, "f16x2", r)]
    if product.d == "s32" and product.saturated:
        return [e.ir.cast("sext", "i32", r, "i64") for r in registers]
    return registers


def _accumulated(e: Emitter, product: Product, a: str, b: str, total: str) -> str:
    ir, work = e.ir, _work(product)
    if product.d != "s32":
        return ir.intrinsic("fma", work, a, b, total)
    if product.a == "b1":
        term = ir.intrinsic("ctpop", "i32", ir.binary(product.combine, "i32", a, b))
    else:
        term = ir.binary("mul", "i32", a, b)
    if work == "i64":
        term = ir.cast("sext", "i32", term, "i64")
    return ir.binary("add", work, total, term)


def _finished(e: Emitter, product: Product, totals: list[str]) -> list[str]:
    if product.d == "f16":
        halves = [narrow(e, "f16", total) for total in totals]
        return [join(e, "f16x2", *halves[k : k + 2]) for k in range(0, len(halves), 2)]
    if product.d == "s32" and product.saturated:
        low, high = splat("i64", -(1 << 31)), splat("i64", (1 << 31) - 1)
        limited = [
            e.ir.intrinsic("smin", "i64", e.ir.intrinsic("smax", "i64", t, low), high)
            for t in totals
        ]
        return [e.ir.cast("trunc", "i64", t, "i32") for t in limited]
    if product.d == "s32":
        return totals
    return [canonical(e.ir, total, _work(product)) for total in totals]


def matrix_fragment(shape: Shape, which: str, kind: str) -> Fragment:
    """The fragment of matrix a, b, c or d."""
    if which == "a":
        return fragment_a(shape, kind)
    return fragment_b(shape, kind) if which == "b" else fragment_c(shape)


OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {"mma": multiply}
