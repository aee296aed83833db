"""Binning of cycle counts, and axes that a reader can take in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_SHRINK_BELOW = 0.45
"""An axis is kept until the data cover less than this part of it, so that it does not jump."""

Range = tuple[float, float]


def bin_counts(values: NDArray[Any], low: float, high: float, bins: int) -> NDArray[np.int64]:
    """How many of `values` (n,) fall into each of `bins` equal bins of [low, high]; (bins,).

    The last bin holds `high` itself. Values outside the range are not counted.
    """
    counts = np.zeros(bins, np.int64)
    if len(values) == 0 or high <= low:
        return counts
    place = ((values - low) * (bins / (high - low))).astype(np.int64)
    place[values == high] = bins - 1
    if values.min() < low or values.max() > high:
        place = place[(values >= low) & (values <= high)]
    return np.bincount(np.minimum(place, bins - 1), minlength=bins).astype(np.int64)


def nice_step(span: float, divisions: int) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that divides `span` at most that often.

    After P. Heckbert, "Nice numbers for graph labels", Graphics Gems, 1990. At least 1, since
    cycles and counts are whole.
    """
    rough = max(span, 1e-12) / max(divisions, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in _STEPS if s * power >= rough * (1 - 1e-9))
    return max(1.0, step)


def nice_range(low: float, high: float, divisions: int = 8) -> Range:
    """`low` and `high` widened outwards to multiples of a nice step; never empty."""
    step = nice_step(high - low, divisions)
    start = math.floor(low / step) * step
    stop = math.ceil(high / step) * step
    return (start, stop) if stop > start else (start, start + step)


def steady_range(previous: Range | None, low: float, high: float) -> Range:
    """`previous` while it holds the data and they fill enough of it, else a new nice range."""
    if previous is not None:
        inside = previous[0] <= low and high <= previous[1]
        filled = (high - low) / (previous[1] - previous[0])
        if inside and filled >= _SHRINK_BELOW:
            return previous
    return nice_range(low, high)


def ticks(low: float, high: float, divisions: int) -> list[float]:
    """Multiples of a nice step within [low, high], at most `divisions` + 1."""
    step = nice_step(high - low, divisions)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def column_of(value: float, low: float, high: float, columns: int) -> int:
    """The column, 0 to `columns` - 1, that `value` falls into; clipped to the ends."""
    if high <= low:
        return 0
    return min(columns - 1, max(0, int((value - low) / (high - low) * columns)))
