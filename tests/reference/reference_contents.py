"""First contents of variables: numbers, the bits of floats, addresses with offsets. What else PTX
can say there is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ADDRESS = re.compile(r"(?:generic\((\w[\w$]*)\)|([A-Za-z_$][\w$]*))(?:\+(\d+))?", re.ASCII)
_BITS = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")


def first_bytes(initial: str, size: int, symbols: Mapping[str, int]) -> bytes:
    """The bytes of an initialiser with elements of `size` bytes; `symbols` are addresses."""
    parts = (part for part in re.split(r"[{},]", "".join(initial.split())) if part)
    values = (_value(part, size, symbols) for part in parts)
    return b"".join((value % (1 << 8 * size)).to_bytes(size, "little") for value in values)


def _value(text: str, size: int, symbols: Mapping[str, int]) -> int:
    if (bits := _BITS.fullmatch(text)) and len(text) == 2 + 2 * size:
        return int(bits[1] or bits[2], 16)
    if address := _ADDRESS.fullmatch(text):
        return symbols[address[1] or address[2]] + int(address[3] or 0)
    return int(text, 0)
