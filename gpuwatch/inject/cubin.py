"""What a cubin says of its kernels: their names, and where their parameters lie."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

from gpuwatch.launch.binary import Elf
from gpuwatch.ptx.model import Module
from gpuwatch.ptx.parameters import placed

Signatures: TypeAlias = dict[str, tuple[tuple[int, int], ...]]
"""Offset and size in bytes of each kernel's parameters, in order, by its name."""

_FUNCTION = 2
"""Kind of a symbol."""
_ENTRY = 0x10
"""Bit of a kernel's symbol in `st_other`."""
_PARAMETER, _LONG_PARAMETER = 0x17, 0x45
"""Attributes of `.nv.info.KERNEL`: one for each parameter, the second one where any takes more
than 16 KB; seen in what ptxas 13.0 writes for sm_75 to sm_121."""
_SIZED = 4
"""Form of an attribute with a payload behind it."""


def kernels_of(cubin: bytes) -> tuple[str, ...]:
    """Names of the kernels in a cubin. Raises UserError when it is none, or damaged."""
    return tuple(_kernels(Elf(cubin, "the cubin")))


def cubin_signatures(cubin: bytes) -> Signatures:
    """The parameters of the kernels in a cubin. Raises UserError as `kernels_of` does."""
    elf = Elf(cubin, "the cubin")
    return {name: _parameters(elf.section(f".nv.info.{name}")) for name in _kernels(elf)}


def ptx_signatures(module: Module) -> Signatures:
    """The same of the kernels in a PTX module."""
    return {
        one.name: tuple((offset, size) for _, offset, size in placed(one.parameters))
        for one in module.entries()
    }


def _kernels(elf: Elf) -> Iterator[str]:
    symbols, strings = elf.section(".symtab"), elf.section(".strtab")
    whole = len(symbols) // 24 * 24
    for name, kind, other, *_ in struct.iter_unpack("<IBBHQQ", symbols[:whole]):
        if kind & 15 == _FUNCTION and other & _ENTRY:
            yield elf.string(strings, name)


def _parameters(info: bytes) -> tuple[tuple[int, int], ...]:
    found = {}
    for kind, payload in _attributes(info):
        if kind in (_PARAMETER, _LONG_PARAMETER) and len(payload) == 12:
            _, ordinal, offset, size = struct.unpack("<IHHI", payload)
            found[ordinal] = offset, size >> 18 if kind == _PARAMETER else size
    return tuple(found[ordinal] for ordinal in sorted(found))


def _attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    """Attributes: form at byte 0, kind at 1, then a value of two bytes or the payload's size."""
    at = 0
    while at + 4 <= len(info):
        form, kind, size = struct.unpack_from("<BBH", info, at)
        end = at + 4 + (size if form == _SIZED else 0)
        yield kind, info[at + 4 : end]
        at = end
