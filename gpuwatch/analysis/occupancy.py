"""Per-SM figures from warp records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
