"""How much of an SM a running program's blocks can fill."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from gpuwatch.device.sim.occupancy import resident_blocks
from gpuwatch.device.sim.profiles import Profile, load
from gpuwatch.errors import UserError
from gpuwatch.inject.protocol import DeviceWords

_LIKE = ((7, "t4"), (8, "a100"), (9, "h200"))
"""The profile whose units a GPU of this major compute capability, or a later one, shares."""


def resident(device: DeviceWords, threads: int, registers: int, shared: int) -> int | None:
    """Blocks of so many threads, with so many registers each and bytes of shared memory a block,
    that fit on an SM; None where not even one should by these rules. Rules: the CUDA occupancy
    calculator, with the limits that the driver tells."""
    try:
        return resident_blocks(_profile(device), threads, registers, shared).blocks
    except UserError:
        return None


def occupancy(device: DeviceWords, threads: int, blocks: int | None) -> float | None:
    """Share of an SM's warps that so many blocks fill; None for None."""
    if blocks is None:
        return None
    return blocks * -(-threads // 32) / (device.threads_per_sm // 32)


@cache
def _profile(device: DeviceWords) -> Profile:
    name = next((name for major, name in reversed(_LIKE) if device.major >= major), "t4")
    return replace(
        load(name),
        sm_count=device.sm_count,
        warps_per_sm=device.threads_per_sm // 32,
        blocks_per_sm=device.blocks_per_sm,
        registers_per_sm=device.registers_per_sm,
        shared_per_sm=device.shared_per_sm,
        shared_reserved=device.shared_reserved,
        shared_per_block_max=device.shared_per_sm,
    )
