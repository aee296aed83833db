"""Per-SM figures from warp records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.idle import idle_cycles


@dataclass(slots=True)
class SmColumns:
    """One row per SM of the device, idle ones included (zeros).

    `occupancy` is 0..1: the sum of its warps' elapsed cycles over (its busy span times its
    maximum resident warps). `busy_cycles` is that span, first start to last end; `idle_cycles`
    the article's idle gaps summed.
    """

    sm: NDArray[np.int32]
    blocks: NDArray[np.int64]
    warps: NDArray[np.int64]
    occupancy: NDArray[np.float64]
    busy_cycles: NDArray[np.int64]
    idle_cycles: NDArray[np.int64]

    @property
    def used(self) -> NDArray[np.intp]:
        """Rows of the SMs that ran a warp."""
        return np.flatnonzero(self.warps)

    @property
    def mean_occupancy(self) -> float | None:
        """Over the SMs that ran a warp; None where none did."""
        used = self.used
        return float(self.occupancy[used].mean()) if len(used) else None


def sm_columns(
    sm: NDArray[np.int32],
    block: NDArray[np.int64],
    start: NDArray[np.int64],
    elapsed: NDArray[np.int64],
    *,
    sm_count: int,
    warps_per_sm: int,
) -> SmColumns:
    """The per-SM table of warps given by equally long columns, in any order.

    Starts are compared within one SM only: the clocks of two SMs do not agree. Rows are SM 0 to
    the highest of `sm_count` and those seen. A block counts on each SM that ran a warp of it.
    """
    rows = max(sm_count, int(sm.max()) + 1 if len(sm) else 0)
    order = np.lexsort((start, sm))
    sm, block, start = sm[order], block[order], start[order]
    elapsed = elapsed[order]
    end = start + elapsed
    bounds = np.searchsorted(sm, np.arange(rows + 1))
    warps = np.diff(bounds)
    busy = np.zeros(rows, dtype=np.int64)
    work = np.zeros(rows, dtype=np.int64)
    blocks = np.zeros(rows, dtype=np.int64)
    used = np.flatnonzero(warps)
    if len(used):
        firsts = bounds[used]
        busy[used] = np.maximum.reduceat(end, firsts) - start[firsts]
        work[used] = np.add.reduceat(elapsed, firsts)
        blocks = _distinct_blocks(sm, block, rows)
    room = busy * warps_per_sm
    occupancy = np.divide(work, room, out=np.zeros(rows), where=room > 0)
    return SmColumns(
        np.arange(rows, dtype=np.int32),
        blocks,
        warps,
        occupancy,
        busy,
        idle_cycles(start, end, bounds),
    )


def _distinct_blocks(
    sm: NDArray[np.int32], block: NDArray[np.int64], rows: int
) -> NDArray[np.int64]:
    """How many different blocks each SM ran warps of."""
    width = int(block.max()) + 1
    pairs = np.sort(sm * np.int64(width) + block)
    new = np.append(True, pairs[1:] != pairs[:-1])
    return np.bincount(pairs[new] // width, minlength=rows).astype(np.int64)
