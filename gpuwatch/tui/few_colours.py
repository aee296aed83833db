"""The screen on a terminal of sixteen colours.

A colour is told by its hue there. By distance, as terminals choose, orange would become the red
that stands for what is wrong.
"""

from __future__ import annotations

from colorsys import rgb_to_hsv
from functools import lru_cache

import textual.color
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.filter import LineFilter

_HUES = (
    (20, "red"),
    (75, "yellow"),
    (160, "green"),
    (195, "cyan"),
    (265, "blue"),
    (330, "magenta"),
    (360, "red"),
)
_GREYS = ((0.25, "black"), (0.5, "bright_black"), (0.85, "white"), (1.0, "bright_white"))
_COLOURLESS = 0.2
"""Largest difference between the parts of what is grey."""
_BRIGHT = 0.71


@lru_cache(maxsize=1024)
def of_sixteen(color: Color) -> Color:
    """The one of a terminal's sixteen colours that stands for `color`."""
    if color.triplet is None:
        return color
    parts = color.triplet.normalized
    hue, _, value = rgb_to_hsv(*parts)
    if value - min(parts) < _COLOURLESS:
        return Color.parse(next(name for most, name in _GREYS if value <= most))
    name = next(name for most, name in _HUES if hue * 360 <= most)
    return Color.parse(f"bright_{name}" if value > _BRIGHT else name)


@lru_cache(maxsize=2048)
def _style(style: Style) -> Style:
    color = None if style.color is None else of_sixteen(style.color)
    background = None if style.bgcolor is None else of_sixteen(style.bgcolor)
    return style + Style.from_color(color, background)


class SixteenColours(LineFilter):
    """Gives text and backgrounds their colours."""

    def apply(
        self,
        segments: list[Segment],
        background: textual.color.Color,  # noqa: ARG002
    ) -> list[Segment]:
        return [
            Segment(text, None if style is None else _style(style), control)
            for text, style, control in segments
        ]
