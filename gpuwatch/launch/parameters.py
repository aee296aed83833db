"""What an entry of a module says of its launches: parameters, block and cluster limits."""

from __future__ import annotations

import re

from gpuwatch.launch.model import Dim3, ParameterSlot
from gpuwatch.ptx.model import Function
from gpuwatch.ptx.parameters import placed

_SHAPE = re.compile(r"\.(\w+)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")


def parameter_slots(function: Function) -> tuple[ParameterSlot, ...]:
    """Each parameter of an entry at its natural alignment, as the PTX `.param` list says."""
    return tuple(
        ParameterSlot(parameter.name, parameter.type, offset, size)
        for parameter, offset, size in placed(function.parameters)
    )


def shape_directive(function: Function, *names: str) -> Dim3 | None:
    """The shape of the first directive with one of these names, like "maxntid"; None without."""
    for directive in function.directives:
        match = _SHAPE.match(directive)
        if match and match[1] in names:
            x, y, z = (int(number or 1) for number in match.groups()[1:])
            return x, y, z
    return None
