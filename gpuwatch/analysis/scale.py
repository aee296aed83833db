"""Axes that a reader can take in: round numbers, linear or logarithmic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_SHRINK_BELOW = 0.45
"""An axis is kept until the data cover less than this part of it, so that it does not jump."""
_FEW_TICKS = 3
_RESOLUTION = 1e-12
"""Smallest step, as a part of the values: floating point tells no finer ones apart."""

Range = tuple[float, float]


def nice_step(span: float, divisions: int, *, least: float = 1.0) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that divides `span` at most that often.

    After P. Heckbert, "Nice numbers for graph labels", Graphics Gems, 1990. Not below `least`,
    1 for cycles and counts, which are whole.
    """
    rough = max(span, 1e-300) / max(divisions, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in _STEPS if s * power >= rough * (1 - 1e-9))
    return max(least, step)


def nice_range(low: float, high: float, divisions: int = 8, *, least: float = 1.0) -> Range:
    """`low` and `high` widened outwards to multiples of a nice step; never empty."""
    span = high - low or max(least, abs(high) / divisions) or 1.0
    step = max(nice_step(span, divisions, least=least), abs(high) * _RESOLUTION)
    start = math.floor(low / step) * step
    stop = math.ceil(high / step) * step
    return (start, stop) if stop > start else (start, start + step)


def steady_range(previous: Range | None, low: float, high: float, *, least: float = 1.0) -> Range:
    """`previous` while it holds the data and they fill enough of it, else a new nice range."""
    if previous is not None:
        inside = previous[0] <= low and high <= previous[1]
        filled = (high - low) / (previous[1] - previous[0])
        if inside and filled >= _SHRINK_BELOW:
            return previous
    return nice_range(low, high, least=least)


def octave_range(low: float, high: float) -> Range:
    """Powers of two around the positive numbers `low` and `high`; never empty."""
    start = math.floor(math.log2(low))
    stop = max(math.ceil(math.log2(high)), start + 1)
    return 2.0**start, 2.0**stop


def ticks(low: float, high: float, divisions: int, *, least: float = 1.0) -> list[float]:
    """Multiples of a nice step within [low, high], at most `divisions` + 1."""
    step = nice_step(high - low, divisions, least=least)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def column_of(value: float, low: float, high: float, columns: int) -> int:
    """The column, 0 to `columns` - 1, that `value` falls into; clipped to the ends."""
    if high <= low:
        return 0
    return min(columns - 1, max(0, int((value - low) / (high - low) * columns)))


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high`, which are positive where it is logarithmic (`log`).

    `whole` says that only whole numbers are marked.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = True

    def edges(self, bins: int) -> NDArray[np.float64]:
        """`bins` + 1 edges of bins that look equally wide."""
        if self.log:
            return np.geomspace(self.low, self.high, bins + 1)
        return np.linspace(self.low, self.high, bins + 1)

    def column(self, value: float, columns: int) -> int:
        """The column that `value` falls into; clipped to the ends."""
        if not self.log:
            return column_of(value, self.low, self.high, columns)
        if value <= self.low:
            return 0
        low, high = math.log(self.low), math.log(self.high)
        return column_of(math.log(value), low, high, columns)

    def ticks(self, divisions: int) -> list[float]:
        """At most `divisions` + 1 round values to mark."""
        if not self.log:
            return ticks(self.low, self.high, divisions, least=1.0 if self.whole else 0.0)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = self._decades(digits)
            if len(found) <= divisions + 1:
                break
        if len(found) < _FEW_TICKS:
            return ticks(self.low, self.high, divisions, least=1.0 if self.whole else 0.0)
        return found[:: -(-len(found) // (divisions + 1))]

    def _decades(self, digits: tuple[int, ...]) -> list[float]:
        first = math.floor(math.log10(self.low))
        last = math.ceil(math.log10(self.high))
        values = (digit * 10.0**power for power in range(first, last + 1) for digit in digits)
        return [value for value in values if self.low <= value <= self.high]
