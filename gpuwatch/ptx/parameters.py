"""Where a kernel's parameters lie in its parameter block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gpuwatch.ptx.model import Parameter
from gpuwatch.ptx.types import type_bytes


class Placed(NamedTuple):
    """Offset and size in bytes."""

    parameter: Parameter
    offset: int
    size: int


def placed(parameters: Iterable[Parameter]) -> list[Placed]:
    """Each parameter behind the one before, at its alignment."""
    found: list[Placed] = []
    end = 0
    for one in parameters:
        element = type_bytes(one.type)
        align = one.align or element
        offset = -(-end // align) * align
        found.append(Placed(one, offset, element * max(1, one.count)))
        end = offset + found[-1].size
    return found


def block_bytes(parameters: Iterable[Parameter]) -> int:
    """Bytes of the whole block."""
    found = placed(parameters)
    return found[-1].offset + found[-1].size if found else 0
