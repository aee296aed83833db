"""Which lane holds which element of a matrix: the fragments of mma and wmma.

The layouts are those that PTX documents for `mma.sync`: groups of four lanes share a row of A and
of C and a column of B, and a register holds elements that follow one another along k (of C, along
n). PTX leaves the layouts of `wmma` open; here they are the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuwatch.device.sim.ir import WARP

MATRIX_BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "e4m3": 8, "e5m2": 8,
    "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_QUAD = 4
_ROWS = 8


@dataclass(frozen=True, slots=True)
class Shape:
    m: int
    n: int
    k: int


def shape_of(tokens: tuple[str, ...]) -> Shape:
    """The `m16n8k16` part of an opcode."""
    found = next(match for token in tokens if (match := _SHAPE.fullmatch(token)))
    return Shape(*map(int, found.groups()))


def per_register(kind: str) -> int:
    """Elements of A, B or (f16) C that one register holds."""
    return max(1, 32 // MATRIX_BITS[kind])


@dataclass(frozen=True, slots=True)
class Fragment:
    """The part of a matrix that a lane holds: `registers` of `packed` elements each.

    `major` counts the lines that groups of four lanes hold (rows of A and C, columns of B),
    `minor` the elements of a line.
    """

    major: int
    minor: int
    packed: int

    @property
    def registers(self) -> int:
        return self.major * self.minor // (self.packed * WARP)

    def places(self, register: int) -> list[tuple[int, int]]:
        """(line, first of the packed elements) of a register, for each lane."""
        line_block = register % (self.major // _ROWS)
        part = register // (self.major // _ROWS)
        return [
            (line_block * _ROWS + lane // _QUAD, (part * _QUAD + lane % _QUAD) * self.packed)
            for lane in range(WARP)
        ]

    def register_of(self, line: int, element: int) -> int:
        return line // _ROWS + self.major // _ROWS * (element // (self.packed * _QUAD))

    def lane_of(self, line: int, element: int) -> int:
        return line % _ROWS * _QUAD + element // self.packed % _QUAD


def fragment_a(shape: Shape, kind: str) -> Fragment:
    return Fragment(shape.m, shape.k, per_register(kind))


def fragment_b(shape: Shape, kind: str) -> Fragment:
    return Fragment(shape.n, shape.k, per_register(kind))


def fragment_c(shape: Shape) -> Fragment:
    """Pairs along a row, whether one register holds them or two."""
    return Fragment(shape.m, shape.n, 2)
