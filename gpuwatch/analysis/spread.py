"""The spread of a column: least, percentiles, greatest, mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Spread:
    """Of elapsed cycles over the warps of one launch."""

    min: int
    p50: float
    p90: float
    p99: float
    max: int
    mean: float


def spread(values: NDArray[np.int64]) -> Spread | None:
    """None for no values. Percentiles interpolate linearly between neighbours."""
    if len(values) == 0:
        return None
    p50, p90, p99 = np.percentile(values, (50, 90, 99))
    return Spread(
        int(values.min()),
        float(p50),
        float(p90),
        float(p99),
        int(values.max()),
        float(values.mean()),
    )
