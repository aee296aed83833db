"""Where a kernel's results can differ from the hardware's in their last bits."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch.device.sim.emit_float import APPROXIMATE
from gpuwatch.ptx.model import Instruction

_FLOATING = ("f16", "f32", "f64")
_MATRICES = "tensor-core sums"


def inexact(instructions: Iterable[Instruction]) -> tuple[str, ...]:
    """What the instructions use of that, sorted: "ex2.approx", "tensor-core sums", ..."""
    return tuple(sorted({use for i in instructions if (use := _use(i))}))


def _use(instruction: Instruction) -> str:
    tokens = instruction.tokens
    if tokens[0] in APPROXIMATE:
        return next((f"{tokens[0]}.{t}" for t in tokens if t in ("approx", "full")), "")
    is_product = tokens[0] == "mma" or tokens[:2] == ("wmma", "mma")
    return _MATRICES if is_product and any(t in _FLOATING for t in tokens) else ""
