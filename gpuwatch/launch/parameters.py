"""The parameter block of a kernel: where each parameter lies, and which words are addresses."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.launch.model import ParameterSlot, Relocation
from gpuwatch.ptx.model import Function
from gpuwatch.ptx.types import type_bytes

WORD = 8


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


def relocate(
    block: bytes, allocations: Sequence[tuple[int, int]]
) -> tuple[bytes, tuple[Relocation, ...]]:
    """Takes the addresses out of a parameter block.

    `allocations` are (address, size in bytes). Every 8-byte aligned word that lies in one, its
    end included, becomes a relocation and zeros.
    """
    cleared = bytearray(block)
    found = []
    for offset in range(0, len(block) - WORD + 1, WORD):
        value = int.from_bytes(block[offset : offset + WORD], "little")
        for buffer, (address, size) in enumerate(allocations):
            if address <= value <= address + size:
                found.append(Relocation(offset, buffer, value - address))
                cleared[offset : offset + WORD] = bytes(WORD)
                break
    return bytes(cleared), tuple(found)
