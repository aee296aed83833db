"""One time axis for the clocks of all SMs, from steps of the timer that they share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Real = NDArray[np.float64]

_WIDEST = 3.0
"""A reading that took so many times as long as most do was interrupted, and does not count."""
_LEAST_STEPS = 4
"""Of each half of an SM's readings."""
_SURE = 6.0
"""Standard errors of an SM's rate by which it must differ from the common one to be its own: by
chance not one of 1000 SMs comes near."""


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """`origin` is each SM's clock at the axis's zero, -1 where an SM gave no readings. `rates` are
    the SMs' own, in ns a cycle, where they differ by more than `rate_noise`, the relative error
    that readings leave them; None where all tick alike. `ns_per_cycle` is their median.

    `step_ns` is the resolution of the timer, `residual_ns` how far readings lie from the axis
    (root mean square), `rate_spread` the greatest relative difference of an SM's own rate from
    the median. `drift_ns` is how far apart, at most, SMs have come from where the axis measured
    `drift_seconds` before would have them; None for the first time.
    """

    origin: Whole
    ns_per_cycle: float
    step_ns: float
    residual_ns: float
    rate_spread: float
    modelled: bool = False
    drift_ns: float | None = None
    drift_seconds: float = 0.0
    rates: Real | None = None
    rate_noise: float = 0.0

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
        if self.rates is not None:
            words += f", SMs' own rates up to {self.rate_spread:.1e} off"
        if self.drift_ns is None:
            return words
        beyond = "" if self.rates is None else "beyond them "
        seconds = f"{self.drift_seconds:,.1f} s"
        return f"{words}, SMs moved {self.drift_ns:,.0f} ns apart {beyond}in {seconds}"

    def error_ns(self, seconds: float) -> float:
        """How far two SMs may be apart on the axis so long before or after its zero: what readings
        leave open, and as much drift a second as was seen, or else as two rates' noise allows."""
        if self.drift_ns is None:
            drift = 2e9 * self.rate_noise
        else:
            drift = self.drift_ns / self.drift_seconds
        return self.residual_ns + drift * abs(seconds)

    def covers(self, sm: NDArray[np.integer]) -> bool:
        """Whether each of these SMs is on the axis."""
        known = (sm >= 0) & (sm < len(self.origin))
        return bool(known.all() and (self.origin[sm] >= 0).all())

    def rate(self, sm: NDArray[np.integer] | NDArray[np.bool_]) -> Real | float:
        """Nanoseconds a cycle of these SMs."""
        return self.ns_per_cycle if self.rates is None else self.rates[sm]

    def cycles(self, sm: NDArray[np.integer], clock: Whole) -> Whole:
        """Clocks of these SMs as cycles of `ns_per_cycle` since the axis's zero."""
        since: Whole = clock - self.origin[sm]
        if self.rates is None:
            return since
        scaled: Whole = np.rint(since * (self.rates[sm] / self.ns_per_cycle)).astype(np.int64)
        return scaled

    def drift_from(self, former: TimeAxis) -> float:
        """Nanoseconds by which SMs are apart, at most, from where `former` and its rates would
        have them."""
        told = self._told_by(former)
        return float(np.ptp(told)) if len(told) else 0.0

    def after(self, former: TimeAxis) -> TimeAxis:
        """The same with the drift since `former`; without where clocks have started anew since."""
        told = self._told_by(former)
        seconds = float(np.median(told)) / 1e9 if len(told) else 0.0
        if seconds <= 0.0:
            return self
        return replace(self, drift_ns=float(np.ptp(told)), drift_seconds=seconds)

    def _told_by(self, former: TimeAxis) -> Real:
        """When this axis's zero is on `former` (ns), by the clock of each SM that both have."""
        both = (self.origin >= 0) & (former.origin >= 0)
        moved = (self.origin[both] - former.origin[both]).astype(np.float64)
        told: Real = moved * former.rate(both)
        return told


def fit(steps: NDArray[np.uint64]) -> TimeAxis | None:
    """The axis through `steps`, (SMs, readings, 3): the SM's clock before and after the timer came
    to show a time (ns), in two halves that lie apart; zeros for no reading.

    Each SM's readings lie on a line by least squares, of the common slope, or each of its own
    where one of them is surely not the common one. None where no SM has enough readings.
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
    own, errors = _slopes(clock, since, counts)
    common = float(np.median(own))
    apart, noise = np.abs(own / common - 1.0), _SURE * errors / common
    alike = bool((apart <= noise).all())
    slopes = np.full_like(own, common) if alike else own
    shift, residual = _shifts(clock, since, counts, slopes)
    origin = base[:, 0] - np.rint(shift / slopes).astype(np.int64)
    origins, rates = np.full(len(known), -1, np.int64), np.full(len(known), common)
    origins[known], rates[known] = _above_zero(origin, slopes), own
    return TimeAxis(
        origin=origins,
        ns_per_cycle=common,
        step_ns=_step(time, counts),
        residual_ns=residual,
        rate_spread=float(apart.max()),
        rates=None if alike else rates,
        rate_noise=float(noise.max()),
    )


def _counting(before: Whole, after: Whole) -> NDArray[np.bool_]:
    """Readings that are there and took no longer than most."""
    there = after > 0
    width = np.where(there, after - before, 0)
    usual = float(np.median(width[there])) if there.any() else 0.0
    return there & (width <= _WIDEST * usual)


def _slopes(clock: Real, since: Real, counts: NDArray[np.bool_]) -> tuple[Real, Real]:
    """Each SM's own rate in ns a cycle, by least squares, and its standard error: the readings'
    distance from all SMs' lines over the root of the sum of squares of their clocks."""
    number = counts.sum(1, keepdims=True)
    x = np.where(counts, clock - np.where(counts, clock, 0.0).sum(1, keepdims=True) / number, 0.0)
    y = np.where(counts, since - np.where(counts, since, 0.0).sum(1, keepdims=True) / number, 0.0)
    wide = (x * x).sum(1)
    slopes = (x * y).sum(1) / wide
    free = counts.sum() - 2 * len(counts)
    distance = np.sqrt(((y - slopes[:, None] * x) ** 2).sum() / free)
    return slopes, distance / np.sqrt(wide)


def _shifts(
    clock: Real, since: Real, counts: NDArray[np.bool_], slopes: Real
) -> tuple[Real, float]:
    """When each SM's clock stood at its base (ns), and how far readings lie from its line."""
    apart = np.where(counts, since - slopes[:, None] * clock, 0.0)
    shift = apart.sum(1) / counts.sum(1)
    residual = np.where(counts, apart - shift[:, None], 0.0)
    return shift, float(np.sqrt((residual**2).sum() / counts.sum()))


def _step(time: Whole, counts: NDArray[np.bool_]) -> float:
    """The least distance (ns) of two times that an SM read one after the other."""
    distance = np.diff(time, axis=1)
    both = counts[:, 1:] & counts[:, :-1] & (distance > 0)
    return float(distance[both].min())


def _above_zero(origin: Whole, slopes: Real) -> Whole:
    """The same axis with its zero later, if need be, so that every origin is a clock."""
    later = max(0.0, np.ceil(-(origin * slopes).min()))
    shifted: Whole = origin + np.rint(later / slopes).astype(np.int64)
    return shifted
