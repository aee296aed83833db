"""First contents of module variables, as far as they are numbers."""

from __future__ import annotations

import re

from gpuwatch.ptx.model import Variable
from gpuwatch.ptx.types import type_bytes

_NUMBER = re.compile(r"([-+]?(?:0[xX][0-9a-fA-F]+|\d+))U?$|0[fFdD]([0-9a-fA-F]+)$")


def initial_bytes(variable: Variable) -> bytes:
    """The bytes of a variable's initialiser; zeros where an address stands, and behind it."""
    element = type_bytes(variable.type.rpartition(".")[2])
    values = [_value(item) for item in re.sub(r"[{}\s]", "", variable.initial).split(",")]
    masked = [value & ((1 << (8 * element)) - 1) for value in values]
    content = b"".join(value.to_bytes(element, "little") for value in masked)
    return content.ljust(type_bytes(variable.type) * max(1, variable.count), b"\0")


def _value(item: str) -> int:
    match = _NUMBER.match(item)
    if match is None:
        return 0
    return int(match[1], 0) if match[1] else int(match[2], 16)
