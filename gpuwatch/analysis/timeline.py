"""When a warp ran within the busy span of its SM."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def relative_spans(
    sm: NDArray[np.int32], start: NDArray[np.int64], elapsed: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Begin and end of each warp (n,) as parts 0..1 of its SM's span, first start to last end.

    Relative to its own SM because the clocks of two SMs cannot be compared. Rows with SM -1
    share one span.
    """
    if len(sm) == 0:
        return np.empty(0), np.empty(0)
    slot = sm.astype(np.int64) + 1
    slots = int(slot.max()) + 1
    end = start + elapsed
    first = np.full(slots, np.iinfo(np.int64).max)
    last = np.full(slots, np.iinfo(np.int64).min)
    np.minimum.at(first, slot, start)
    np.maximum.at(last, slot, end)
    origin = first[slot]
    span = np.maximum(last[slot] - origin, 1)
    return (start - origin) / span, (end - origin) / span
