"""A kernel's text and memory, as the reference interpreter sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from scalar_opcodes import WIDTHS

from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Instruction, Label, RegisterDeclaration, Variable

GLOBAL_BASE = 0x1000_0000
WINDOW = 1 << 20  # buffers start at multiples of this


@dataclass
class Kernel:
    """A function's instructions, its labels as indices, its registers' widths, its variables'
    offsets by space."""

    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)
    variables: dict[str, tuple[str, int]] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)


def read_kernel(text: str) -> Kernel:
    """The only entry of a PTX text; its parameters must be 8 bytes each."""
    (function,) = parse(text).entries()
    kernel = Kernel()
    kernel.parameters = {p.name: 8 * k for k, p in enumerate(function.parameters)}
    used = {"shared": 0, "local": 0}
    for statement in function.body or ():
        if isinstance(statement, Instruction):
            kernel.code.append(statement)
        elif isinstance(statement, Label):
            kernel.labels[statement.name] = len(kernel.code)
        elif isinstance(statement, RegisterDeclaration):
            _declare(kernel, statement)
        elif isinstance(statement, Variable):
            kernel.variables[statement.name] = (statement.space, used[statement.space])
            used[statement.space] += -(-statement.count * 8 // 16) * 16
    return kernel


def _declare(kernel: Kernel, declaration: RegisterDeclaration) -> None:
    width = WIDTHS[declaration.type]
    for name, count in declaration.names:
        for k in range(count) if count else [""]:
            kernel.widths[f"{name}{k}"] = width


class Memory:
    """Bytes in windows: one for each buffer, addressed from GLOBAL_BASE on, or one for a space."""

    def __init__(self, windows: Iterable[bytearray], base: int) -> None:
        self.windows = list(windows)
        self._base = base

    def address(self, window: int) -> int:
        return self._base + window * WINDOW

    def read(self, address: int, size: int) -> int:
        window, offset = divmod(address - self._base, WINDOW)
        found = self.windows[window][offset : offset + size]
        assert len(found) == size, f"read of {size} bytes at {address:#x}"
        return int.from_bytes(found, "little")

    def write(self, address: int, size: int, bits: int) -> None:
        window, offset = divmod(address - self._base, WINDOW)
        assert 0 <= offset <= len(self.windows[window]) - size, f"write at {address:#x}"
        self.windows[window][offset : offset + size] = bits.to_bytes(size, "little")
