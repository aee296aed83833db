"""A thread of the reference interpreter as its other parts see it."""

from __future__ import annotations

from typing import Protocol

from reference_memory import Memory

from gpuwatch.ptx.model import Instruction, Operand

WARP = 32


class Operands(Protocol):
    def read(self, operand: Operand, kind: str) -> int: ...
    def write(self, operand: Operand, value: int, kind: str) -> None: ...


class Thread(Operands, Protocol):
    def place(self, instruction: Instruction, operand: Operand) -> tuple[Memory, int]: ...
