"""Columns of the warp table, one row per warp (numpy arrays of equal length)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class WarpColumns:
    """`start` and `elapsed` in cycles of the warp's SM; `sm` is -1 where the probe records none.

    `average` is the mean elapsed over the launches observed since the last reset, `count` how
    many those were. `fields` holds the probe's remaining fields by name.
    """

    warp: NDArray[np.int64]
    block: NDArray[np.int64]
    sm: NDArray[np.int32]
    start: NDArray[np.int64]
    elapsed: NDArray[np.int64]
    average: NDArray[np.float64]
    count: NDArray[np.int64]
    fields: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.warp)
