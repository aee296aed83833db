"""Classes of instructions, as an instruction mix counts them, and floating-point operations."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gpuwatch.ptx import isa
from gpuwatch.ptx.loops import block_starts
from gpuwatch.ptx.model import Instruction, Statement

_BY_OPCODE = {
    **dict.fromkeys(("ld", "ldu", "ldmatrix", "tex", "tld4", "suld", "prefetch", "prefetchu"),
                    "load"),
    **dict.fromkeys(("st", "stmatrix", "sust"), "store"),
    **dict.fromkeys(("atom", "red", "sured", "multimem"), "atomic"),
    "cp": "load",
    **dict.fromkeys(("mma", "wgmma", "tcgen05"), "tensor"),
    **dict.fromkeys(("bar", "barrier", "mbarrier", "membar", "fence"), "barrier"),
    **dict.fromkeys(("bra", "brx", "ret", "exit", "call", "trap", "brkpt", "nanosleep"), "control"),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "activemask", "elect"), "warp"),
    **dict.fromkeys(("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"), "special"),
    **dict.fromkeys(("cvt", "cvta", "mov", "isspacep", "mapa", "getctarank"), "convert"),
}  # fmt: skip
_BY_TYPE = {"f16": "fp16", "f16x2": "fp16", "bf16": "fp16", "bf16x2": "fp16", "f32": "fp32",
            "f32x2": "fp32", "f64": "fp64"}  # fmt: skip
_WMMA = {"load": "load", "store": "store", "mma": "tensor"}
_OPERATIONS = {"add": 1, "sub": 1, "mul": 1, "fma": 2, "mad": 2}
_PACKED = frozenset({"f16x2", "bf16x2", "f32x2"})
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
_LANES = 32
Mix = tuple[tuple[str, int], ...]
"""(class, number of instructions) for each class that is there, and ("flop", number)."""
LineMix = tuple[tuple[int, str, int], ...]
"""The same by source line: (line, class, number); line 0 where that is not known."""


def class_of(instruction: Instruction) -> str:
    """The one class that it is in. Arithmetic goes by its first type, so `setp.lt.f32` is fp32;
    it is "int" without a float type, and what has no type is "other"."""
    tokens = instruction.tokens
    if tokens[0] == "wmma":
        return _WMMA.get(tokens[1], "other")
    found = _BY_OPCODE.get(tokens[0])
    if found:
        return found
    for token in tokens[1:]:
        if token in _BY_TYPE:
            return _BY_TYPE[token]
    return "int" if len(tokens) > 1 else "other"


def operations(instruction: Instruction) -> int:
    """Floating-point operations of one thread: 2 of a multiply-add, 1 of an addition or a
    multiplication, twice that of packed types; of a matrix product of m, n, k its 2 m n k,
    shared by 32 lanes. Divisions, roots and the like count for none."""
    tokens = instruction.tokens
    shape = next((match for match in map(_SHAPE.match, tokens) if match), None)
    if shape and "mma" in tokens:
        m, n, k = map(int, shape.groups())
        return 2 * m * n * k // _LANES
    if not any(token in _BY_TYPE for token in tokens[1:]):
        return 0
    packed = 2 if _PACKED.intersection(tokens) else 1
    return _OPERATIONS.get(tokens[0], 0) * packed


def block_mixes(
    body: Sequence[Statement], lines: Mapping[int, int]
) -> dict[int, tuple[Mix, LineMix]]:
    """What each basic block is made of, by the index of its first instruction: all of it, and by
    source line. `lines` are those of instructions, by index."""
    starts = block_starts(body)
    mixes = {}
    for start, following in zip(starts, [*starts[1:], len(body)], strict=True):
        block: dict[int, list[Instruction]] = defaultdict(list)
        for index in range(start, following):
            one = body[index]
            if isinstance(one, Instruction):
                block[lines.get(index, 0)].append(one)
                if isa.ends_block(one):
                    break
        by_line = tuple(
            (line, name, number)
            for line, instructions in sorted(block.items())
            for name, number in mix_of(instructions)
        )
        mixes[start] = mix_of(one for part in block.values() for one in part), by_line
    return mixes


def mix_of(instructions: Iterable[Instruction]) -> Mix:
    """The classes of some instructions; "flop" is the operations that one thread makes."""
    counts: Counter[str] = Counter()
    for one in instructions:
        counts[class_of(one)] += 1
        flop = operations(one)
        if flop:
            counts["flop"] += flop
    return tuple(sorted(counts.items()))
