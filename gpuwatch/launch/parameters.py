"""What an entry of a module says of its launches: parameters, block and cluster limits."""

from __future__ import annotations

import re

from gpuwatch.launch.model import Dim3, ParameterSlot
from gpuwatch.ptx.model import Function
from gpuwatch.ptx.types import type_bytes

_SHAPE = re.compile(r"\.(\w+)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")


def parameter_slots(function: Function) -> tuple[ParameterSlot, ...]:
    """Each parameter of an entry at its natural alignment, as the PTX `.param` list says."""
    slots = []
    end = 0
    for parameter in function.parameters:
        element = type_bytes(parameter.type)
        align = parameter.align or element
        offset = -(-end // align) * align
        size = element * (parameter.count or 1)
        slots.append(ParameterSlot(parameter.name, parameter.type, offset, size))
        end = offset + size
    return tuple(slots)


def shape_directive(function: Function, *names: str) -> Dim3 | None:
    """The shape of the first directive with one of these names, like "maxntid"; None without."""
    for directive in function.directives:
        match = _SHAPE.match(directive)
        if match and match[1] in names:
            x, y, z = (int(number or 1) for number in match.groups()[1:])
            return x, y, z
    return None
