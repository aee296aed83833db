"""The parameter block of a kernel: where each parameter lies."""

from __future__ import annotations

from gpuwatch.launch.model import ParameterSlot
from gpuwatch.ptx.model import Function
from gpuwatch.ptx.types import type_bytes


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
