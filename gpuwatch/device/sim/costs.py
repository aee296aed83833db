"""The cycles that a launch's generated code adds up, from the profile.

An event (one run of a basic block, a miss, a bank conflict ...) takes time of several resources:
the warp's own chain of dependences, and the units that warps share. `ResourceCosts` holds a column
for each; `combined` weighs them into the one number of cycles that the code adds. The weights are
those of a launch, see `balance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.sim.layout import SECTOR_BYTES
from gpuwatch.device.sim.profiles import Profile
from gpuwatch.device.sim.program import Program
from gpuwatch.device.sim.timing import (
    ISSUE,
    PATH,
    BlockTiming,
    block_timings,
    request_cycles,
    wavefront_cycles,
)

CHAIN, FAR, DRAM = "chain", "far", "dram"
"""A warp's own time; and what lies behind the L1 and the L2, of which an SM has its share."""
Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Costs:
    """Cycles: per basic block; of an access in it that misses the L1; per 128 bytes of a global
    access beyond the first; per bank conflict; per 32 bytes read behind the L1, written, and
    touched by an atomic; of a barrier."""

    blocks: tuple[int, ...]
    misses: tuple[int, ...]
    wavefront: int
    conflict: int
    sector: int
    written: int
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


@dataclass(frozen=True, slots=True)
class ResourceCosts:
    """Like `Costs`, with one more axis: the resources in the order of `names`."""

    names: tuple[str, ...]
    blocks: Column
    misses: Column
    wavefront: Column
    conflict: Column
    sector: Column
    written: Column
    atomic: Column
    barrier: Column
    most_dram: float
    """Cycles of the DRAM for one block: what its sectors take beyond that, the L2 serves."""

    def highest(self) -> Costs:
        """Where nothing is known of the launch: each event at the cost of its slowest resource."""
        found = {item.name: np.rint(getattr(self, item.name).max(axis=-1)).astype(np.int64)
                 for item in fields(Costs)}  # fmt: skip
        return _as_costs(found)

    def combined(self, weights: Column) -> Costs:
        """Each event's cycles: the sum over the resources, weighed."""
        return _as_costs(
            {
                item.name: np.rint(getattr(self, item.name) @ weights).astype(np.int64)
                for item in fields(Costs)
            }
        )


def _as_costs(found: dict[str, NDArray[np.int64]]) -> Costs:
    """At least a cycle for each block: a loop must come to its end, or be stopped."""
    blocks = tuple(np.maximum(found.pop("blocks"), 1).tolist())
    misses = tuple(found.pop("misses").tolist())
    return Costs(blocks, misses, **{name: int(value) for name, value in found.items()})


def resource_costs(program: Program, profile: Profile, load: Load) -> ResourceCosts:
    """Those of one launch; what warps share is charged to each as if all wanted it at once."""
    timings = block_timings(program, profile)
    names = (CHAIN, *_units(timings), FAR, DRAM)

    def column(**cycles: float) -> Column:
        found = np.zeros(len(names))
        for name, value in cycles.items():
            found[names.index(name)] = value
        return found

    blocks = np.array([_of_block(timing, names, profile, load.warps) for timing in timings])
    late = missed_latency(profile, load.footprint)
    misses = np.zeros_like(blocks)
    misses[:, 0] = [late / timing.overlap for timing in timings]
    reading, writing = (
        load.warps * SECTOR_BYTES / _share(profile, load, rate)
        for rate in (profile.l2_bandwidth, profile.l2_write_bandwidth)
    )
    crossing = 0.0
    if load.footprint > profile.l2_bytes:
        crossing = load.warps * SECTOR_BYTES / _share(profile, load, profile.dram_bandwidth)
    atomics = min(profile.sm_count, load.blocks) / profile.l2_atomics
    extra = wavefront_cycles(profile, "global")
    return ResourceCosts(
        names,
        blocks,
        misses,
        wavefront=column(chain=extra, path=load.warps * extra),
        conflict=column(chain=1.0, path=load.warps * request_cycles(profile, "shared")),
        sector=column(far=reading, dram=crossing),
        written=column(far=writing, dram=crossing),
        atomic=column(far=load.warps * atomics),
        barrier=column(chain=profile.latency["barrier"]),
        most_dram=_most_dram_cycles(profile, load),
    )


def _units(timings: Sequence[BlockTiming]) -> list[str]:
    """The units that may bound the launch: those busy longer than the issue slots somewhere."""
    names = dict.fromkeys(unit for timing in timings for unit in timing.busy)
    return [ISSUE, PATH] + [
        name
        for name in names
        if name not in (ISSUE, PATH) and any(t.busy.get(name, 0.0) > t.busy[ISSUE] for t in timings)
    ]


def _of_block(
    timing: BlockTiming, names: Sequence[str], profile: Profile, warps: int
) -> list[float]:
    per_scheduler = max(1.0, warps / profile.schedulers)
    shares = {PATH: warps, CHAIN: 1.0}
    busy = {**timing.busy, CHAIN: timing.chain}
    return [shares.get(name, per_scheduler) * busy.get(name, 0.0) for name in names]


def _share(profile: Profile, load: Load, rate: float) -> float:
    """An SM's part of a device-wide rate in bytes a cycle, and no more than one SM can take."""
    return min(profile.l2_sm_bandwidth, rate / min(profile.sm_count, load.blocks))


def missed_latency(profile: Profile, footprint: int) -> float:
    """Cycles of a miss of the L1 beyond those of a hit: the L2 serves its part of the footprint,
    DRAM the rest."""
    latency = profile.latency
    in_dram = max(0.0, 1.0 - profile.l2_bytes / footprint) if footprint else 0.0
    return latency["l2"] + (latency["dram"] - latency["l2"]) * in_dram - latency["l1"]


def _most_dram_cycles(profile: Profile, load: Load) -> float:
    """For a block's part of the buffers: what is used again is found in the L2."""
    device = load.footprint / profile.dram_bandwidth
    return device * min(load.blocks, profile.sm_count * load.resident) / load.blocks
