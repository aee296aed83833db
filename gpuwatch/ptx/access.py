"""The memory access of an instruction: state space, kind, width, addresses (PTX ISA 9.0)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gpuwatch.ptx.model import Address, Group, Immediate, Instruction, Operand
from gpuwatch.ptx.types import TYPE_BITS

AccessKind = Literal["load", "store", "atomic", "reduction", "prefetch", "copy"]

SPACES = frozenset({"global", "shared", "local", "const", "param"})

PLAIN: dict[str, AccessKind] = {
    "ld": "load",
    "ldu": "load",
    "st": "store",
    "atom": "atomic",
    "red": "reduction",
}
"""Opcodes with one address, in any state space where they name none, whose width and space follow
from their tokens."""

_LANES = 32
_VECTOR = {"v2": 2, "v4": 4, "v8": 8}
_COUNT = {"x1": 1, "x2": 2, "x4": 4}
_SHAPE = re.compile(r"m(\d+)n(\d+)(?:k(\d+))?")
_MBARRIER_BYTES = 8
_MATRIX_ELEMENT_BITS = {"m8n8": 16, "m8n16": 8, "m16n16": 8, "m16n8": 8}
"""Bits of an element in shared memory of the shapes of `ldmatrix` and `stmatrix`."""


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """`bytes` is what one thread moves by one run of the instruction, None where that is known at
    run time only (bulk copies)."""

    kind: AccessKind
    space: str
    """global, shared, local, const, param or generic; of a copy, that of its source."""
    bytes: int | None
    addresses: tuple[Address | Group, ...]
    """The operand that holds the address; of a copy, destination and source. A Group is an
    address with coordinates behind it: `[map, {x, y}]`."""
    window: str = ""
    """What follows `::` behind the space: "cta" or "cluster" of shared, "entry" or "func" of
    param."""
    destination: str = ""
    """State space that a copy writes to."""


def memory_access(instruction: Instruction) -> MemoryAccess | None:
    """The access that the instruction makes, or None. Textures and surfaces are none."""
    find = _FINDERS.get(instruction.tokens[0])
    return find(instruction) if find else None


def state_space(instruction: Instruction) -> tuple[str, str]:
    """Space and window of the first space that the opcode names; ("generic", "") without one."""
    named = _named_spaces(instruction)
    return named[0] if named else ("generic", "")


def _named_spaces(instruction: Instruction) -> list[tuple[str, str]]:
    found = []
    for token in instruction.tokens[1:]:
        space, _, window = token.partition("::")
        if space in SPACES:
            found.append((space, window))
    return found


def _bracketed(instruction: Instruction) -> tuple[Address | Group, ...]:
    """Addresses among the operands; argument lists of calls do not come this way."""
    return tuple(each for each in instruction.operands if isinstance(each, Address | Group))


def _width(instruction: Instruction) -> int | None:
    """Type width by vector length; None when no type is named."""
    bits, count = 0, 1
    for token in instruction.tokens[1:]:
        bits = TYPE_BITS.get(token, bits)
        count = _VECTOR.get(token, count)
    return (bits + 7) // 8 * count if bits else None


def _one(instruction: Instruction, kind: AccessKind, size: int | None) -> MemoryAccess:
    space, window = state_space(instruction)
    return MemoryAccess(kind, space, size, _bracketed(instruction)[:1], window)


def _plain(kind: AccessKind) -> Callable[[Instruction], MemoryAccess]:
    def find(instruction: Instruction) -> MemoryAccess:
        size = None if "bulk" in instruction.tokens else _width(instruction)
        return _one(instruction, kind, size)

    return find


def _prefetch(instruction: Instruction) -> MemoryAccess:
    return _one(instruction, "prefetch", None)


def _copy(instruction: Instruction) -> MemoryAccess | None:
    """`cp.async`, `cp.async.bulk`, `cp.reduce.async.bulk` and their prefetching forms."""
    addresses = _bracketed(instruction)
    if not addresses or "mbarrier" in instruction.tokens:
        return None
    if "prefetch" in instruction.tokens:
        return _prefetch(instruction)
    spaces = [*_named_spaces(instruction), ("generic", ""), ("generic", "")]
    (destination, _), (source, window) = spaces[:2]
    size = None if "bulk" in instruction.tokens else _literal(instruction.operands[2:3])
    return MemoryAccess("copy", source, size, addresses[:2], window, destination)


def _literal(operands: tuple[Operand, ...]) -> int | None:
    for operand in operands:
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return operand.value
    return None


def _matrix(kind: AccessKind) -> Callable[[Instruction], MemoryAccess]:
    """`ldmatrix` and `stmatrix`: the matrices' bytes, shared by the 32 lanes."""

    def find(instruction: Instruction) -> MemoryAccess:
        bits, count = 0, 1
        for token in instruction.tokens[1:]:
            if token in _MATRIX_ELEMENT_BITS:
                rows, columns, _ = _extents(token)
                bits = rows * columns * _MATRIX_ELEMENT_BITS[token]
            count = _COUNT.get(token, count)
        return _one(instruction, kind, bits * count // 8 // _LANES or None)

    return find


def _extents(shape: str) -> tuple[int, int, int]:
    match = _SHAPE.fullmatch(shape)
    assert match
    rows, columns, depth = match.groups("0")
    return int(rows), int(columns), int(depth)


def _wmma(instruction: Instruction) -> MemoryAccess | None:
    """`wmma.load.a` and the like: the fragment's bytes, shared by the 32 lanes."""
    tokens = instruction.tokens
    if tokens[1] not in ("load", "store"):
        return None
    shape = next((token for token in tokens if _SHAPE.fullmatch(token)), "")
    rows, columns, depth = _extents(shape) if shape else (0, 0, 0)
    elements = {"a": rows * depth, "b": depth * columns}.get(tokens[2], rows * columns)
    bits = TYPE_BITS.get(tokens[-1]) or _SUBBYTE_BITS.get(tokens[-1], 0)
    kind: AccessKind = "load" if tokens[1] == "load" else "store"
    return _one(instruction, kind, elements * bits // 8 // _LANES or None)


_SUBBYTE_BITS = {"u4": 4, "s4": 4, "b1": 1}


def _mbarrier(instruction: Instruction) -> MemoryAccess | None:
    """An mbarrier object is one word of 8 bytes in shared memory; `pending_count` reads none."""
    if not _bracketed(instruction):
        return None
    kind = _MBARRIER_KINDS.get(instruction.tokens[1], "atomic")
    return _one(instruction, kind, _MBARRIER_BYTES)


_MBARRIER_KINDS: dict[str, AccessKind] = {
    "init": "store",
    "inval": "store",
    "test_wait": "load",
    "try_wait": "load",
}


def _multimem(instruction: Instruction) -> MemoryAccess | None:
    kind = _MULTIMEM_KINDS.get(instruction.tokens[1])
    return _plain(kind)(instruction) if kind else _copy(instruction)


_MULTIMEM_KINDS: dict[str, AccessKind] = {"ld_reduce": "load", "st": "store", "red": "reduction"}

_FINDERS: dict[str, Callable[[Instruction], MemoryAccess | None]] = {
    **{opcode: _plain(kind) for opcode, kind in PLAIN.items()},
    "prefetch": _prefetch,
    "prefetchu": _prefetch,
    "cp": _copy,
    "ldmatrix": _matrix("load"),
    "stmatrix": _matrix("store"),
    "wmma": _wmma,
    "mbarrier": _mbarrier,
    "multimem": _multimem,
}
OPCODES = frozenset(_FINDERS)
"""Opcodes some of whose forms access memory; which of them do is known at the instruction."""
