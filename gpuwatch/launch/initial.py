"""First contents of module variables, as far as they are numbers."""

from __future__ import annotations

from gpuwatch.ptx import initial
from gpuwatch.ptx.model import Variable
from gpuwatch.ptx.types import type_bytes


def initial_bytes(variable: Variable) -> bytes:
    """The bytes of a variable's initialiser; zeros where an address stands, behind it, and for
    a handle."""
    content = initial.initial_bytes(variable, lambda _address: 0)
    return content.ljust(type_bytes(variable.type) * max(1, variable.count), b"\0")
