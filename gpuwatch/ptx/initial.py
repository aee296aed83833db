"""First contents of module variables (PTX ISA 9.0, "Initializers")."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from gpuwatch.ptx.constants import WARP_SZ, ConstantReader
from gpuwatch.ptx.lexer import Cursor
from gpuwatch.ptx.model import Immediate, Variable
from gpuwatch.ptx.types import OPAQUE_TYPES, type_bytes

_PLAIN = re.compile(r"\{\s*(?:(?:0|[1-9]\d*)\s*,\s*)*+(?:0|[1-9]\d*)\s*\}", re.ASCII)

_MASKS = frozenset(0xFF << shift for shift in range(0, 64, 8))


class Address(NamedTuple):
    """The address of `symbol` plus `offset`; of that, the bits of `mask`."""

    symbol: str
    offset: int = 0
    mask: int = -1

    def value(self, base: int) -> int:
        """What stands in memory when the symbol lies at `base`."""
        lowest = (self.mask & -self.mask).bit_length() - 1
        return (base + self.offset & self.mask) >> lowest


def initial_values(variable: Variable) -> list[int | Address]:
    """The values of the initialiser in order, numbers as the bits of an element; braces only
    group them, as for ptxas 13.0. Raises UserError for what cannot be read."""
    cursor = Cursor(variable.initial, f"initial value of {variable.name}")
    size = element_bytes(variable)
    if _PLAIN.fullmatch(variable.initial):
        values: list[int | Address] = [int(digits) for digits in re.findall(r"\d+", cursor.text)]
    else:
        values = _values(cursor, size)
    room = variable.count * type_bytes(variable.type) // size
    if len(values) > room:
        cursor.fail(
            f"{len(values)} values for {room} elements", 0, "leave some out, or declare more"
        )
    return values


def initial_bytes(variable: Variable, place: Callable[[Address], int]) -> bytes:
    """The bytes of the initialiser, zeros for handles; addresses become what `place` says."""
    if variable.type in OPAQUE_TYPES:
        return bytes(type_bytes(variable.type) * max(1, variable.count))
    size = element_bytes(variable)
    most = (1 << (8 * size)) - 1
    values = (place(one) if isinstance(one, Address) else one for one in initial_values(variable))
    return b"".join((value & most).to_bytes(size, "little") for value in values)


def element_bytes(variable: Variable) -> int:
    """Bytes of an element, of a vector's member."""
    return type_bytes(variable.type.rpartition(".")[2])


def _values(cursor: Cursor, size: int) -> list[int | Address]:
    reader = ConstantReader(cursor)
    values = []
    while cursor.peek().kind != "end":
        if not any(map(cursor.take, "{},")):
            values.append(_value(cursor, reader, size))
    return values


def _value(cursor: Cursor, reader: ConstantReader, size: int) -> int | Address:
    """value = address | mask "(" address ")" | constant"""
    if cursor.peek().kind == "word" and not cursor.at(WARP_SZ.text):
        return _address(cursor, reader)
    start = cursor.peek().start
    number = reader.immediate()
    if not cursor.take("("):
        return _bits(number, size)
    if number.value not in _MASKS:
        cursor.fail(f"{number.text} is no mask of one byte", start, "write 0xFF, 0xFF00, ...")
    found = _address(cursor, reader)._replace(mask=int(number.value))
    cursor.expect(")", "the address")
    return found


def _address(cursor: Cursor, reader: ConstantReader) -> Address:
    """address = ( name | "generic" "(" name ")" ) offset"""
    name = cursor.expect_kind("word", "a variable's name").text
    if name == "generic" and cursor.take("("):
        name = cursor.expect_kind("word", "a variable's name").text
        cursor.expect(")", "the name")
    return Address(name, reader.offset())


def _bits(number: Immediate, size: int) -> int:
    """The bits of a number in `size` bytes; a `0d` pattern in four bytes is rounded."""
    value = number.value
    if number.text[:2].lower() == "0d" and size == 4:
        (value,) = struct.unpack("<d", int(value).to_bytes(8, "little"))
    if isinstance(value, int):
        return value
    real = ctypes.c_double if size == 8 else ctypes.c_float
    return int.from_bytes(bytes(real(value)), "little")
