"""The block scheduler: which SM each block goes to, and when."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class BlockScheduler:
    """Gives blocks to SM slots in the order of their index, the slot that is free first first.

    Every SM has `resident` slots. Equal times go by slot, then SM, so an empty device fills
    breadth first: blocks 0 .. S-1 to SMs 0 .. S-1, the next S to their second slots.

    Blocks are handed out in waves, for the durations of one wave become known only when it has
    run. A wave takes the slots that are free before any of its own blocks could be done,
    supposing that none is shorter than the shortest so far; where that holds the assignment is
    the one a scheduler of single blocks would make.
    """

    def __init__(self, sm_count: int, resident: int, block_overhead: int = 0) -> None:
        """`block_overhead` are the cycles between a slot's getting free and the next start."""
        slots = np.arange(sm_count * resident, dtype=np.int64)
        self._sm = (slots % sm_count).astype(np.int32)
        self._slot = (slots // sm_count).astype(np.int32)
        self._free = np.zeros(slots.size, np.int64)
        self._overhead = block_overhead
        self._shortest: int | None = None
        self._wave: NDArray[np.int64] = np.empty(0, np.int64)
        self._start: NDArray[np.int64] = np.empty(0, np.int64)

    def next_wave(
        self, remaining: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """SM, slot and start cycle of the next blocks, at most `remaining` of them."""
        if self._wave.size:
            raise RuntimeError("the wave before is not finished")
        order = np.lexsort((self._sm, self._slot, self._free))
        if self._shortest is not None:
            horizon = self._free[order[0]] + self._overhead + self._shortest
            # A slot free at the horizon itself may tie with one of this wave: it waits.
            order = order[: max(1, np.searchsorted(self._free[order], horizon, side="left"))]
        self._wave = order[:remaining]
        self._start = self._free[self._wave] + self._overhead
        return self._sm[self._wave], self._slot[self._wave], self._start

    def finish(self, durations: NDArray[np.int64]) -> None:
        """Takes the cycles that each block of the wave ran, in the wave's order."""
        if durations.shape != self._wave.shape:
            raise ValueError(f"{self._wave.size} durations wanted, not {durations.shape}")
        self._free[self._wave] = self._start + durations
        if durations.size:
            shortest = int(durations.min())
            self._shortest = min(shortest, self._shortest or shortest)
        self._wave = self._wave[:0]

    @property
    def last_end(self) -> int:
        """The cycle at which the last finished block ended."""
        return int(self._free.max())


def kernel_cycles(last_end: int, launch_overhead: int) -> int:
    """A kernel's duration: from the start of cycle 0 to its last block's end, plus what a launch
    costs before the first block and after the last one."""
    return last_end + launch_overhead
