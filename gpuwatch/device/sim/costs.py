"""The cycles that a launch's generated code adds up, from the profile."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwatch.device.sim.layout import SECTOR_BYTES
from gpuwatch.device.sim.profiles import Profile
from gpuwatch.device.sim.program import Program


@dataclass(frozen=True, slots=True)
class Costs:
    """Cycles: per basic block; per sector of an access beyond the first; of an access that
    misses the L1; per bank conflict; of a global atomic; of a barrier."""

    blocks: tuple[int, ...]
    sector: int
    miss: int
    conflict: int
    atomic: int
    barrier: int


def model_costs(program: Program, profile: Profile, resident_warps: int) -> Costs:
    """Issue-bound costs: every resident warp of a scheduler issues in turn."""
    sharing = max(1, resident_warps // profile.schedulers)
    latency = profile.latency
    per_sector = SECTOR_BYTES * resident_warps / (profile.l1_bandwidth * profile.l1_achieved)
    return Costs(
        blocks=tuple(sharing * (block.end - block.first) for block in program.blocks),
        sector=max(1, round(per_sector)),
        miss=round(latency["l2"] - latency["l1"]),
        conflict=max(1, resident_warps // profile.schedulers),
        atomic=round(latency["atomic"]),
        barrier=round(latency["barrier"]),
    )
