"""The cycles that a launch's generated code adds up, from the profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.device.sim.profiles import Profile
from gpuwatch.device.sim.program import Program
from gpuwatch.device.sim.timing import (
    WAVEFRONT_BYTES,
    BlockTiming,
    block_timings,
    loop_depths,
    request_cycles,
)

_LOOP_WEIGHT = 16
"""How much oftener code is taken to run for each loop around it, where trips are not known."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Cycles: per basic block; per 128 bytes of a global access beyond the first; of an access
    that misses the L1; per bank conflict; of a global atomic; of a barrier."""

    blocks: tuple[int, ...]
    wavefront: int
    miss: int
    conflict: int
    atomic: int
    barrier: int


@dataclass(frozen=True, slots=True)
class Load:
    """What a launch puts on the device: `blocks` of its grid, `resident` ones and their `warps`
    per SM, and the `footprint` of its buffers in bytes."""

    blocks: int
    resident: int
    warps: int
    footprint: int


def model_costs(program: Program, profile: Profile, load: Load) -> Costs:
    """The costs of one launch; what warps share is charged to each by its part."""
    timings = block_timings(program, profile, load.warps)
    blocks = [timing.cycles for timing in timings]
    blocks[program.entry] += _cold_traffic(profile, load)
    extra = WAVEFRONT_BYTES / (profile.l1_bandwidth * profile.l1_achieved)
    l2_share = profile.l2_bandwidth / profile.sm_count
    return Costs(
        blocks=tuple(blocks),
        wavefront=max(1, round(load.warps * extra)),
        miss=_exposed_miss(timings, loop_depths(program.blocks), profile, load.footprint),
        conflict=max(1, round(load.warps * request_cycles(profile, "shared"))),
        atomic=max(1, round(load.warps * 32 / l2_share)),
        barrier=round(profile.latency["barrier"]),
    )


def _cold_traffic(profile: Profile, load: Load) -> int:
    """Cycles that each block waits for its part of the traffic which DRAM must carry.

    Buffers that do not fit in the L2 cross from DRAM once a launch at least.
    """
    if load.footprint <= profile.l2_bytes:
        return 0
    device = load.footprint / profile.dram_bandwidth
    slots = min(load.blocks, profile.sm_count * load.resident)
    return round(device * slots / load.blocks)


def _exposed_miss(
    timings: Sequence[BlockTiming], depths: Sequence[int], profile: Profile, footprint: int
) -> int:
    """Cycles of a miss that other warps' work does not hide, in the block with the most global
    accesses (inner loops weighing more). The L2 serves its part of the footprint, DRAM the rest."""
    weights = [t.global_accesses * _LOOP_WEIGHT**d for t, d in zip(timings, depths, strict=True)]
    hot = max(range(len(weights)), key=weights.__getitem__)
    if not weights[hot]:
        return 0
    latency = profile.latency
    in_dram = max(0.0, 1.0 - profile.l2_bytes / footprint) if footprint else 0.0
    missed = latency["l2"] + (latency["dram"] - latency["l2"]) * in_dram - latency["l1"]
    return round(max(0.0, missed - timings[hot].slack))
