"""Which resource bounds a launch, found by running some of its blocks.

A few blocks run once for each resource, counting only that one's cycles: the times T_r that a
block takes of each. All warps of an SM together keep the shared ones busy while each waits for its
own chain, so a block lasts about as long as the largest. Where two are close they get into each
other's way, so it is the norm D = (sum of T_r^p)^(1/p). An event then counts the sum over the
resources of (T_r / D)^(p-1) times what it takes of r: over the block those sum to D.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.sim.costs import CHAIN, DRAM, Costs, ResourceCosts

SHARPNESS = 3.0
"""p: how well resources overlap; the larger, the nearer to their maximum."""
SAMPLES = 4
MOST_INSTRUCTIONS = 100_000_000
"""Thread instructions of a sampled block beyond which no more are run for a balance."""


@dataclass(frozen=True, slots=True)
class Sample:
    """`cycles` of each warp of one block, and the thread instructions that it `executed`."""

    cycles: NDArray[np.int64]
    executed: int


def sampled_blocks(blocks: int) -> list[int]:
    """Indices spread over the grid."""
    count = min(SAMPLES, blocks)
    return [(2 * k + 1) * blocks // (2 * count) for k in range(count)]


def balance(
    costs: ResourceCosts, blocks: int, run: Callable[[Costs, Sequence[int]], list[Sample]]
) -> Costs:
    """The costs of a launch of `blocks`; `run` runs the blocks of the given indices."""
    places = sampled_blocks(blocks)
    alone = np.eye(len(costs.names))
    first = run(costs.combined(alone[0]), places[:1])[0]
    if first.executed > MOST_INSTRUCTIONS:
        return costs.highest()
    places = places[: max(1, MOST_INSTRUCTIONS // (SAMPLES * max(1, first.executed)))]
    times, shares = [], []
    for name, weights in zip(costs.names, alone, strict=True):
        found = run(costs.combined(weights), places)
        longest = sum(int(sample.cycles.max()) for sample in found)
        mean = sum(float(sample.cycles.mean()) for sample in found)
        share = 1.0 if name == CHAIN or not longest else mean / longest
        if name == DRAM and longest:
            share = min(share, costs.most_dram * len(places) / longest)
        shares.append(share)
        times.append(share * longest / len(places))
    return costs.combined(_weights(np.array(times)) * shares)


def _weights(times: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = times.max()
    if not largest:
        return np.ones(times.size)
    whole = float(((times / largest) ** SHARPNESS).sum() ** (1 / SHARPNESS)) * largest
    return np.asarray((times / whole) ** (SHARPNESS - 1))
