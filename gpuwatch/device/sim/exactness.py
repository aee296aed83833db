"""Where a kernel's results can differ from the hardware's in their last bits."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.device.sim.emit_float import APPROXIMATE
from gpuwatch.device.sim.program import read, written
from gpuwatch.ptx.model import Instruction

_FLOATING = ("f16", "f32", "f64")
MATRICES = "tensor-core sums"
FUSIBLE = "mul and add that ptxas may fuse"
_ROUNDINGS = frozenset(["rn", "rz", "rm", "rp"])


def inexact(instructions: Sequence[Instruction]) -> tuple[str, ...]:
    """What the instructions use of that, sorted: "ex2.approx", "tensor-core sums", ..."""
    found = {use for i in instructions if (use := _use(i))}
    return tuple(sorted(found | ({FUSIBLE} if _has_fusible(instructions) else set())))


def _use(instruction: Instruction) -> str:
    tokens = instruction.tokens
    if tokens[0] in APPROXIMATE:
        return next((f"{tokens[0]}.{t}" for t in tokens if t in ("approx", "full")), "")
    is_product = tokens[0] == "mma" or tokens[:2] == ("wmma", "mma")
    return MATRICES if is_product and any(t in _FLOATING for t in tokens) else ""


def _has_fusible(instructions: Sequence[Instruction]) -> bool:
    """Whether a product without a rounding mode goes into nothing but such sums: PTX leaves it
    open whether both are rounded then, and ptxas makes one `fma` of them."""
    products: set[str] = set()
    summed: set[str] = set()
    otherwise: set[str] = set()
    for instruction in instructions:
        if _is_free(instruction, "mul"):
            products.update(written(instruction))
        uses = summed if _is_free(instruction, "add", "sub") else otherwise
        uses.update(read(instruction))
    return not (products & summed).issubset(otherwise)


def _is_free(instruction: Instruction, *opcodes: str) -> bool:
    """Whether it is one of these opcodes on floating-point numbers without a rounding mode."""
    tokens = instruction.tokens
    return tokens[0] in opcodes and tokens[-1] in _FLOATING and _ROUNDINGS.isdisjoint(tokens)
