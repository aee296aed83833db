"""One time axis for the clocks of all SMs, from steps of the timer that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Real = NDArray[np.float64]

_WIDEST = 3.0
"""A reading that took so many times as long as most do was interrupted, and does not count."""
_LEAST_STEPS = 4
"""Of each half of an SM's readings."""


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """`origin` is each SM's clock at the axis's zero, -1 where an SM gave no readings. SMs tick
    alike: `ns_per_cycle` holds for all of them as of the measurement.

    `step_ns` is the resolution of the timer, `residual_ns` how far readings lie from the axis
    (root mean square), `rate_spread` the greatest relative difference of an SM's own rate from
    the common one. `drift_ns` is how far SMs moved against each other, at most, since they were
    measured before, `drift_seconds` earlier; None for the first time.
    """

    origin: Whole
    ns_per_cycle: float
    step_ns: float
    residual_ns: float
    rate_spread: float
    modelled: bool = False
    drift_ns: float | None = None
    drift_seconds: float = 0.0

    @staticmethod
    def shared(sm_count: int, clock_hz: float) -> TimeAxis:
        """The axis of modelled SMs, whose clocks all start at 0 with the launch."""
        cycle = 1e9 / clock_hz
        return TimeAxis(np.zeros(sm_count, np.int64), cycle, cycle, 0.0, 0.0, modelled=True)

    @property
    def described(self) -> str:
        """How good it is."""
        if self.modelled:
            return "modelled"
        words = f"timer steps of {self.step_ns:,.0f} ns, fit within {self.residual_ns:,.1f} ns"
        if self.drift_ns is None:
            return words
        return f"{words}, SMs moved {self.drift_ns:,.0f} ns apart in {self.drift_seconds:,.1f} s"

    @property
    def error_ns(self) -> float:
        """How far two SMs may be apart on the axis: what was seen of readings and of drift."""
        return max(self.residual_ns, self.drift_ns or 0.0)

    def covers(self, sm: NDArray[np.integer]) -> bool:
        """Whether each of these SMs is on the axis."""
        known = (sm >= 0) & (sm < len(self.origin))
        return bool(known.all() and (self.origin[sm] >= 0).all())

    def cycles(self, sm: NDArray[np.integer], clock: Whole) -> Whole:
        """Clocks of these SMs as cycles since the axis's zero."""
        since: Whole = clock - self.origin[sm]
        return since

    def drift_from(self, former: TimeAxis) -> float:
        """Nanoseconds by which SMs moved against each other, at most, since `former`."""
        both = (self.origin >= 0) & (former.origin >= 0)
        moved = (self.origin[both] - former.origin[both]).astype(np.float64)
        return float(np.ptp(moved)) * self.ns_per_cycle if len(moved) else 0.0


def fit(steps: NDArray[np.uint64]) -> TimeAxis | None:
    """The axis through `steps`, (SMs, readings, 3): the SM's clock before and after the timer came
    to show a time (ns), in two halves that lie apart; zeros for no reading.

    Each SM's readings lie on a line, of the common slope, by least squares. None where no SM has
    enough of them.
    """
    before, after, time = (steps[:, :, part].astype(np.int64) for part in range(3))
    counts = _counting(before, after)
    half = steps.shape[1] // 2
    known = (counts[:, :half].sum(1) >= _LEAST_STEPS) & (counts[:, half:].sum(1) >= _LEAST_STEPS)
    if not known.any():
        return None
    before, after, time, counts = before[known], after[known], time[known], counts[known]
    first = np.argmax(counts, axis=1)
    base = np.take_along_axis(before, first[:, None], axis=1)
    zero = int(time[counts].min())
    clock = (before - base) + (after - before) / 2.0
    since = (time - zero).astype(np.float64)
    slopes = _slopes(clock, since, counts)
    slope = float(np.median(slopes))
    apart = np.where(counts, since - slope * clock, 0.0)
    shift = apart.sum(1) / counts.sum(1)
    residual = np.where(counts, apart - shift[:, None], 0.0)
    origin = np.full(len(steps), -1, np.int64)
    origin[known] = base[:, 0] - np.rint(shift / slope).astype(np.int64)
    return TimeAxis(
        origin=_above_zero(origin, known),
        ns_per_cycle=slope,
        step_ns=_step(time, counts),
        residual_ns=float(np.sqrt((residual**2).sum() / counts.sum())),
        rate_spread=float(np.abs(slopes / slope - 1.0).max()),
    )


def _counting(before: Whole, after: Whole) -> NDArray[np.bool_]:
    """Readings that are there and took no longer than most."""
    there = after > 0
    width = np.where(there, after - before, 0)
    usual = float(np.median(width[there])) if there.any() else 0.0
    return there & (width <= _WIDEST * usual)


def _slopes(clock: Real, since: Real, counts: NDArray[np.bool_]) -> Real:
    """Each SM's own rate in ns a cycle, by least squares."""
    number = counts.sum(1, keepdims=True)
    x = np.where(counts, clock - np.where(counts, clock, 0.0).sum(1, keepdims=True) / number, 0.0)
    y = np.where(counts, since - np.where(counts, since, 0.0).sum(1, keepdims=True) / number, 0.0)
    slopes: Real = (x * y).sum(1) / (x * x).sum(1)
    return slopes


def _step(time: Whole, counts: NDArray[np.bool_]) -> float:
    """The least distance (ns) of two times that an SM read one after the other."""
    distance = np.diff(time, axis=1)
    both = counts[:, 1:] & counts[:, :-1] & (distance > 0)
    return float(distance[both].min())


def _above_zero(origin: Whole, known: NDArray[np.bool_]) -> Whole:
    """The same axis with its zero later, if need be, so that every known origin is a clock."""
    least = int(origin[known].min())
    return np.where(known, origin - min(least, 0), -1)
