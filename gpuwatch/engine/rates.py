"""How fast launches come, and what a probed one costs against a plain one."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable

_WINDOW = 64
_REMEMBERED = 101
"""Launches whose kernel times the medians are taken over."""


class LaunchRate:
    """Launches a second over the last steps."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int, float]] = deque(maxlen=_WINDOW)

    def add(self, ended: float, launches: int, wall: float) -> None:
        """A step that ended at `ended` (monotonic seconds) and took `wall` for `launches`."""
        if launches:
            self._marks.append((ended, launches, wall))

    @property
    def per_second(self) -> float:
        """Raises IndexError before the first launch."""
        first, last = self._marks[0], self._marks[-1]
        if len(self._marks) < 2:
            return last[1] / last[2]
        return sum(launches for _, launches, _ in list(self._marks)[1:]) / (last[0] - first[0])

    @property
    def wall_seconds(self) -> float:
        """Mean seconds that a launch took the session, reading included."""
        launches = sum(mark[1] for mark in self._marks)
        return sum(mark[2] for mark in self._marks) / launches


class Times:
    """Kernel times in seconds of one build, and their median."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=_REMEMBERED)

    def add(self, seconds: Iterable[float]) -> None:
        self._times.extend(seconds)

    def clear(self) -> None:
        self._times.clear()

    @property
    def values(self) -> tuple[float, ...]:
        """Those remembered, oldest first."""
        return tuple(self._times)

    @property
    def median(self) -> float:
        return statistics.median(self._times)

    def ratio_spread(self, plain: Times) -> float | None:
        """Half the distance between the quartiles of the ratios of launches made in turn; None
        where there are fewer than four pairs."""
        pairs = list(zip(reversed(self._times), reversed(plain._times), strict=False))
        if len(pairs) < 4:
            return None
        low, _, high = statistics.quantiles([mine / other for mine, other in pairs], n=4)
        return (high - low) / 2
