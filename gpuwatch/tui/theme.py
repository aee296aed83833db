"""Colours: blue for idle to orange for full, red only for what is wrong, grey for what is old.

Blue and orange stay apart for every common kind of colour blindness, and the ramp is never the
only carrier of a value: the number stands beside it.
"""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color
from rich.style import Style
from textual.theme import Theme

from gpuwatch.analysis.colours import GLOW, blend

BACKGROUND = "#10151c"
PANEL = "#1a222d"
FOREGROUND = "#d5dce5"
GREY = "#76828f"
LINE = "#3a4756"
BLUE = "#5aa0e6"
ORANGE = "#ff9f32"
RED = "#ff5a52"

THEME = Theme(
    name="gpuwatch",
    primary=BLUE,
    secondary=BLUE,
    accent=ORANGE,
    warning=ORANGE,
    error=RED,
    success=BLUE,
    foreground=FOREGROUND,
    background=BACKGROUND,
    surface=BACKGROUND,
    panel=PANEL,
    dark=True,
)

TEXT = Style(color=FOREGROUND)
STRONG = Style(color="#ffffff", bold=True)
QUIET = Style(color=GREY)
RULE = Style(color=LINE)
FOCUS = Style(color=BLUE)
KEY = Style(color=BLUE, bold=True)
TITLE = Style(color="#eef3f8", bold=True)
WRONG = Style(color=RED, bold=True)
CURSOR = Style(color="#ffffff", bgcolor="#2b4a70", bold=True)
CHOSEN = Style(color=BACKGROUND, bgcolor=BLUE, bold=True)
TAG = Style(color=BACKGROUND, bgcolor="#b9c4d0", bold=True)
ALARM = Style(color="#ffffff", bgcolor="#b3261e", bold=True)
WOVEN = Style(color=ORANGE)
CAPTION = Style(color="#ffffff", bgcolor=PANEL, bold=True)
CAPTION_QUIET = Style(color=ORANGE, bgcolor=PANEL)
FOUND = Style(color=ORANGE, underline=True)
FASTER = CHOSEN
SLOWER = Style(color=BACKGROUND, bgcolor=ORANGE, bold=True)
FORMER = Style(color="#5b6979")
"""What the baseline measured, behind or beside the present."""
MARK = Style(color="#ffffff", bold=True)

_STOPS = ((47, 111, 184), (96, 150, 196), (170, 160, 150), (232, 150, 70), (255, 159, 50))
_SHADES = 32

_RAMP = tuple(
    Style(color=Color.from_rgb(*blend(shade / (_SHADES - 1), _STOPS))) for shade in range(_SHADES)
)
_HEAT = tuple(
    Style(color=BACKGROUND, bgcolor=Color.from_rgb(*blend(shade / (_SHADES - 1), _STOPS)))
    for shade in range(_SHADES)
)


def _shade(fraction: float) -> int:
    return min(_SHADES - 1, max(0, round(fraction * (_SHADES - 1))))


def ramp(fraction: float) -> Style:
    """Foreground for a value of 0..1."""
    return _RAMP[_shade(fraction)]


def heat(fraction: float) -> Style:
    """Background for a value of 0..1, with dark text on it."""
    return _HEAT[_shade(fraction)]


@lru_cache(maxsize=2048)
def glow(fraction: float, below: float | None = None) -> Style:
    """A cell of a heat map, of 0..1; `below` is the value of its lower half."""
    lower = None if below is None else Color.from_rgb(*blend(below, GLOW))
    return Style.from_color(Color.from_rgb(*blend(fraction, GLOW)), lower)
