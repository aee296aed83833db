"""What `printf` of the device makes of a format and its arguments."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

_FIELD = re.compile(r"%([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|)([diouxXcsfFeEgGp%])")


def formatted(
    form: str, arguments: int, take: Callable[[int, int], int], text: Callable[[int], str]
) -> str:
    """`take` reads so many bytes at an address, `text` a string. Arguments lie one behind another
    from `arguments` on, aligned to their sizes; what is shorter than 4 bytes takes 4."""
    place = arguments

    def argument(size: int) -> int:
        nonlocal place
        place = -(-place // size) * size + size
        return take(place - size, size)

    def field(match: re.Match[str]) -> str:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        sizes = [str(argument(4)) if one == "*" else one for one in (width, precision)]
        head = f"%{flags}{sizes[0]}" + (f".{sizes[1]}" if sizes[1] is not None else "")
        if kind in "fFeEgG":
            number: float = struct.unpack("<d", argument(8).to_bytes(8, "little"))[0]
            return (head + kind) % number
        if kind == "s":
            return (head + kind) % text(argument(8))
        if kind == "p":
            return (head + "s") % hex(argument(8))
        size = 8 if length in ("l", "ll", "j", "z", "t") else 4
        bits = argument(size)
        if kind == "c":
            return (head + kind) % chr(bits & 0xFF)
        width_of = {"hh": 8, "h": 16}.get(length, 8 * size)
        bits &= (1 << width_of) - 1
        if kind in "di":
            bits -= bits >> (width_of - 1) << width_of
        return (head + (kind if kind in "xXo" else "d")) % bits

    return _FIELD.sub(field, form)
