"""wmma: loading and storing matrices, and their product."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.access import Access, effective_address, space_of
from gpuwatch.device.sim.emit_formats import join, split
from gpuwatch.device.sim.emit_matrix import matrix_fragment, multiply, register_kind
from gpuwatch.device.sim.emit_memory import gather, scatter
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError
from gpuwatch.device.sim.fragments import MATRIX_BITS, shape_of
from gpuwatch.device.sim.ir import constants, splat
from gpuwatch.ptx.model import Instruction, Vector


class _Matrix:
    """A matrix in memory: where elements of a fragment lie."""

    def __init__(self, e: Emitter, instruction: Instruction, which: str) -> None:
        tokens = instruction.tokens
        self.e = e
        self.kind = next(t for t in reversed(tokens) if t in MATRIX_BITS)
        self.shape = shape_of(tokens)
        self.part = matrix_fragment(self.shape, which, self.kind)
        self.space = space_of(instruction)
        by_lines = "col" if which == "b" else "row"
        self.along = by_lines in tokens
        """Whether a line's elements follow one another in memory."""
        store = tokens[1] == "store"
        place = instruction.operands[0 if store else 1]
        self.base = effective_address(e, place, self.space)
        rest = instruction.operands[2:]
        if rest:
            self.stride = e.resize(e.value(rest[0], "u32"), "i32", "i64")
        else:
            minor = self.part.minor if self.along else self.part.major
            self.stride = splat("i64", minor)

    def access(self, places: list[tuple[int, int]], element: int, scalar: str) -> Access:
        """Of the lanes' element `element` behind their first ones, with LLVM type `scalar`."""
        ir = self.e.ir
        lines = [line for line, _ in places]
        inside = [first + element for _, first in places]
        if not self.along:
            lines, inside = inside, lines
        far = ir.binary("mul", "i64", self.stride, constants("i64", lines))
        index = ir.binary("add", "i64", far, constants("i64", inside))
        bits = MATRIX_BITS[self.kind]
        if bits >= 8:
            offset = ir.binary("mul", "i64", index, splat("i64", bits // 8))
        else:
            offset = ir.binary("udiv", "i64", index, splat("i64", 8 // bits))
        address = ir.binary("add", "i64", self.base, offset)
        return Access(self.e, self.space, scalar, 1, address)


def _load(e: Emitter, instruction: Instruction) -> None:
    which = instruction.tokens[2]
    matrix = _Matrix(e, instruction, which)
    target = instruction.operands[0]
    if not isinstance(target, Vector):
        raise UnsupportedError("this form of wmma.load")
    load = _load_sum if which == "c" else _load_factor
    registers = load(matrix)
    for k, item in enumerate(target.items):
        e.write(item, registers[k % len(registers)], register_kind(matrix.kind))


def _load_factor(matrix: _Matrix) -> list[str]:
    """A or B: whole registers where their elements follow one another, else one by one."""
    ir, kind, part = matrix.e.ir, matrix.kind, matrix.part
    whole = "double" if kind == "f64" else "i32"
    registers = []
    for register in range(part.registers):
        places = part.places(register)
        if matrix.along or part.packed == 1:
            registers += gather(matrix.access(places, 0, whole))
            continue
        bits = MATRIX_BITS[kind]
        value = ""
        for k in range(part.packed):
            (loaded,) = gather(matrix.access(places, k, f"i{bits}"))
            piece = ir.cast("zext", f"i{bits}", loaded, "i32")
            piece = ir.binary("shl", "i32", piece, splat("i32", bits * k))
            value = ir.binary("or", "i32", value, piece) if value else piece
        registers.append(value)
    return registers


_SUM_TYPES = {"f16": "half", "f32": "float", "f64": "double", "s32": "i32"}


def _load_sum(matrix: _Matrix) -> list[str]:
    """C: each element by itself; f16 in pairs."""
    part, scalar = matrix.part, _SUM_TYPES[matrix.kind]
    elements = [
        gather(matrix.access(part.places(register), k, scalar))[0]
        for register in range(part.registers)
        for k in (0, 1)
    ]
    if scalar != "half":
        return elements
    return [join(matrix.e, "f16x2", *elements[k : k + 2]) for k in range(0, len(elements), 2)]


def _store(e: Emitter, instruction: Instruction) -> None:
    matrix = _Matrix(e, instruction, "d")
    source = instruction.operands[1]
    if not isinstance(source, Vector):
        raise UnsupportedError("this form of wmma.store")
    scalar = _SUM_TYPES[matrix.kind]
    values = [e.value(item, register_kind(matrix.kind)) for item in source.items]
    if scalar == "half":
        values = [half for value in values for half in split(e, "f16x2", value)]
    for index, value in enumerate(values):
        scatter(matrix.access(matrix.part.places(index // 2), index % 2, scalar), [value])


def _wmma(e: Emitter, instruction: Instruction) -> None:
    _FORMS[instruction.tokens[1]](e, instruction)


_FORMS: dict[str, Callable[[Emitter, Instruction], None]] = {
    "load": _load,
    "store": _store,
    "mma": multiply,
}
OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {"wmma": _wmma}
