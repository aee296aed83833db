"""Colours of values, for the screen and for pictures."""

from __future__ import annotations

Rgb = tuple[int, int, int]

GLOW: tuple[Rgb, ...] = (
    (31, 58, 95), (47, 111, 184), (120, 150, 175), (255, 159, 50), (255, 233, 190),
)  # fmt: skip
"""Ever brighter on a dark ground, so that it tells more from less without hues too."""


def blend(position: float, stops: tuple[Rgb, ...]) -> Rgb:
    """The colour at 0..1 between evenly spaced stops."""
    scaled = min(1.0, max(0.0, position)) * (len(stops) - 1)
    lower = min(int(scaled), len(stops) - 2)
    part = scaled - lower
    red, green, blue = (
        round(a + (b - a) * part) for a, b in zip(stops[lower], stops[lower + 1], strict=True)
    )
    return red, green, blue
