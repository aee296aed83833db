"""The simulated device's memory: one block of host memory seen at fixed device addresses."""

from __future__ import annotations

import mmap
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.sim.layout import ARENA_BASE
from gpuwatch.ptx.model import Module
from gpuwatch.ptx.types import type_bytes

ALIGNMENT = 256
RED_ZONE = 256
"""Bytes between allocations that belong to none."""
RED = 0xA5
"""What red zones hold."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """`address` is the device's; `name` is for messages."""

    name: str
    address: int
    size: int

    def holds(self, address: int) -> bool:
        return self.address <= address < self.address + self.size


class Plan:
    """Gives out device addresses in order; the same requests get the same addresses."""

    def __init__(self) -> None:
        self.allocations: list[Allocation] = []
        self._next = ARENA_BASE + RED_ZONE

    def take(self, name: str, size: int) -> Allocation:
        allocation = Allocation(name, self._next, size)
        self.allocations.append(allocation)
        self._next += -(-(size + RED_ZONE) // ALIGNMENT) * ALIGNMENT
        return allocation

    @property
    def size(self) -> int:
        return self._next - ARENA_BASE


def place_variables(plan: Plan, module: Module, last: str) -> dict[str, Allocation]:
    """Allocations of the module's global and constant variables, by name; that of `last` behind
    all others."""
    held = [variable for variable in module.variables if variable.space in ("global", "const")]
    return {
        variable.name: plan.take(variable.name, type_bytes(variable.type) * max(1, variable.count))
        for variable in sorted(held, key=lambda variable: variable.name == last)
    }


class Arena:
    """The memory behind a finished Plan, zeroed."""

    def __init__(self, plan: Plan) -> None:
        self.allocations = tuple(plan.allocations)
        self.size = plan.size
        self._memory = np.frombuffer(mmap.mmap(-1, plan.size), np.uint8)
        for zone in self._red_zones():
            zone[:] = RED

    def _red_zones(self) -> list[NDArray[np.uint8]]:
        """The bytes behind each allocation that belong to none."""
        ends = [a.address + a.size - ARENA_BASE for a in self.allocations]
        starts = [a.address - ARENA_BASE for a in self.allocations]
        following = [*starts[1:], self.size][: len(starts)]
        return [self._memory[end:start] for end, start in zip(ends, following, strict=True)]

    def overrun(self) -> Allocation | None:
        """The first allocation behind whose end something was written; marks are renewed."""
        found = None
        for allocation, zone in zip(self.allocations, self._red_zones(), strict=True):
            if (zone != RED).any():
                zone[:] = RED
                found = found or allocation
        return found

    @property
    def delta(self) -> int:
        """Host address minus device address."""
        return int(self._memory.ctypes.data) - ARENA_BASE

    def view(self, allocation: Allocation) -> NDArray[np.uint8]:
        first = allocation.address - ARENA_BASE
        return self._memory[first : first + allocation.size]

    def write(self, allocation: Allocation, content: bytes | NDArray[np.uint8]) -> None:
        data = np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content
        self.view(allocation)[: data.size] = data

    def bytes_at(self, address: int, size: int) -> bytes:
        """Up to `size` bytes at an address, as far as its allocation reaches."""
        allocation = self.find(address)
        if allocation is None:
            return b""
        first = address - allocation.address
        return bytes(self.view(allocation)[first : first + size])

    def text(self, address: int) -> str:
        """The string at an address, up to its zero byte."""
        return self.bytes_at(address, 4096).split(b"\0", 1)[0].decode("utf-8", "replace")

    def find(self, address: int) -> Allocation | None:
        """The allocation that holds `address`."""
        return next((a for a in self.allocations if a.holds(address)), None)

    def nearest(self, address: int) -> Allocation | None:
        """The last allocation that starts at or before `address`."""
        below = [a for a in self.allocations if a.address <= address]
        return below[-1] if below else None
