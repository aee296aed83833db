"""Characters that the screen is drawn with, and numbers as text."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpuwatch.engine.frame import Dim3


@dataclass(frozen=True, slots=True)
class Glyphs:
    """`across` and `upward` are fill levels of one cell, from empty to full."""

    across: str
    upward: str
    rule: str
    axis: str
    tick: str
    corner: str
    mark: str
    ascending: str
    descending: str
    cursor: str
    ellipsis: str
    times: str
    arrow: str
    dot: str
    micro: str
    thread: str
    block: str
    spinner: str
    cross: str = "✗"
    differs: str = "≠"
    shades: str = " ░▒▓█"
    """A cell from nothing to the most."""


UNICODE = Glyphs(
    across=" ▏▎▍▌▋▊▉█",
    upward=" ▁▂▃▄▅▆▇█",
    rule="─",
    axis="│",
    tick="┬",
    corner="└",
    mark="▲",
    ascending="▲",
    descending="▼",
    cursor="▶",
    ellipsis="…",
    times="\u00d7",
    arrow="→",
    dot="·",
    micro="µ",
    thread="━",
    block="■",
    spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
)

ASCII = Glyphs(
    across=" -=#",
    upward=" .:#",
    rule="-",
    axis="|",
    tick="+",
    corner="+",
    mark="^",
    ascending="^",
    descending="v",
    cursor=">",
    ellipsis="~",
    times="x",
    arrow="->",
    dot="-",
    micro="u",
    thread="=",
    block="#",
    spinner="|/-\\",
    cross="x",
    differs="!",
    shades=" .:-=+*#%@",
)


def bar(fraction: float, width: int, levels: str) -> str:
    """`fraction` (0..1) of `width` cells filled, to the part of a cell."""
    parts = len(levels) - 1
    filled = round(min(1.0, max(0.0, fraction)) * width * parts)
    whole, rest = divmod(filled, parts)
    text = levels[-1] * whole + (levels[rest] if rest else "")
    return text.ljust(width)


def column(fraction: float, height: int, levels: str) -> str:
    """As `bar`, from the bottom cell upwards; anything above zero shows."""
    parts = len(levels) - 1
    filled = math.floor(min(1.0, max(0.0, fraction)) * height * parts + 0.5)
    if fraction > 0:
        filled = max(1, filled)
    whole, rest = divmod(filled, parts)
    text = levels[-1] * whole + (levels[rest] if rest else "")
    return text.ljust(height)


def whole(number: float) -> str:
    """33,024"""
    return f"{number:,.0f}"


def short(number: float) -> str:
    """950, 1.5k, 190k, 1.21M: at most three digits and no trailing zeros."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= limit:
            scaled = (
                f"{number / limit:.4g}" if abs(number) < 10 * limit else f"{number / limit:.5g}"
            )
            return scaled + unit
    return f"{number:.4g}"


def brief(number: float) -> str:
    """188k, 1.21M: three digits, for where `short` does not fit."""
    for limit, unit in ((999.5e6, "G"), (999.5e3, "M"), (999.5, "k")):
        if abs(number) >= limit:
            scaled = number / {"G": 1e9, "M": 1e6, "k": 1e3}[unit]
            return (
                f"{scaled:.{2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0}f}{unit}"
            )
    return f"{number:.0f}"


def seconds(value: float, glyphs: Glyphs) -> str:
    """375 µs, 1.20 ms, 2.50 s"""
    for limit, scale, unit in ((1e-3, 1e6, glyphs.micro + "s"), (1.0, 1e3, "ms")):
        if value < limit:
            digits = 0 if value * scale >= 100 else 2
            return f"{value * scale:.{digits}f} {unit}"
    return f"{value:.2f} s"


def shape(dims: Dim3) -> str:
    """32x43, without trailing ones."""
    sizes = list(dims)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return "x".join(str(size) for size in sizes)


def place(index: int, grid: Dim3) -> str:
    """The linear block `index` as (x,y,z) of `grid`, with as many parts as the grid has."""
    x, y, _ = grid
    parts = (index % x, index // x % y, index // (x * y))
    used = len(shape(grid).split("x"))
    return "(" + ",".join(str(part) for part in parts[:used]) + ")" if used > 1 else str(parts[0])
