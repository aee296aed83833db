"""Initial values of PTX variables as bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuwatch.errors import Location, UserError
from gpuwatch.ptx.model import Module, Variable
from gpuwatch.ptx.types import type_bytes

_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|\d+)U?$")
_BITS = re.compile(r"0[fFdD]([0-9a-fA-F]+)$")
_SYMBOL = re.compile(r"(?:generic\s*\(\s*)?([%$A-Za-z_][\w$]*)\s*\)?(?:\s*\+\s*(\d+))?$")


def initial_bytes(module: Module, variable: Variable, addresses: Mapping[str, int]) -> bytes:
    """The bytes of `variable`'s initialiser; symbols become their addresses."""
    size = type_bytes(variable.type)
    items = [item.strip() for item in re.sub(r"[{}]", " ", variable.initial).split(",")]
    content = b""
    for item in items:
        if item:
            value = _value(item, addresses)
            if value is None:
                raise UserError(
                    f"the simulator cannot read the initial value '{item}'",
                    at=Location.in_text(module.source, module.text, variable.start),
                    hint="run this kernel on a GPU (--device cuda)",
                )
            content += (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
    return content


def _value(item: str, addresses: Mapping[str, int]) -> int | None:
    if _NUMBER.match(item):
        return int(item.rstrip("U"), 0)
    if bits := _BITS.match(item):
        return int(bits[1], 16)
    symbol = _SYMBOL.match(item)
    if symbol and symbol[1] in addresses:
        return addresses[symbol[1]] + int(symbol[2] or 0)
    return None
