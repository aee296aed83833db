"""Which panes are on the live screen."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwatch.tui.remembered import Remembered

UPPER = ("occupancy", "timeline", "histogram")
BELOW = ("source", "log")
"""Panes that take the place of all lower ones when they are asked for."""
LOWER = ("warps", "maps", *BELOW)
PANES = UPPER + LOWER

LOW = 30
"""Lines below which the warps get about as much room as the panes above them."""
NARROW = 110
"""Columns below which maps beside the warps would be cut off."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for. `timeline` swaps it in for the occupancy, `below` is one of
    `BELOW` or "" for the usual panes."""

    maximised: str | None = None
    hidden: frozenset[str] = frozenset()
    timeline: bool = False
    below: str = ""


def wish_of(state: Remembered) -> Wish:
    """What was remembered, as far as there still are such panes."""
    hidden = frozenset(state.hidden) & frozenset(PANES)
    return Wish(None, hidden, state.timeline, state.below if state.below in BELOW else "")


def remembered(wish: Wish, sort: str, descending: bool) -> Remembered:
    return Remembered(sort, descending, wish.timeline, wish.below, tuple(sorted(wish.hidden)))


@dataclass(frozen=True, slots=True)
class Content:
    """What there is to show: warps with times, a table of records, maps that it does not show."""

    timed: bool = True
    table: bool = True
    maps: bool = False


def available(content: Content, wish: Wish) -> frozenset[str]:
    """The panes that have something to show, hidden or not."""
    found = {"timeline" if wish.timeline else "occupancy"} if content.timed else set()
    if content.table:
        found |= {"histogram", "warps"}
    if content.maps:
        found.add("maps")
    if wish.below:
        found = found - {"warps", "maps"} | {wish.below}
    return frozenset(found)


def shown(content: Content, wish: Wish, width: int, height: int) -> frozenset[str]:
    """The panes on a screen of `width` columns and `height` lines; never none."""
    panes = available(content, wish)
    if wish.maximised in panes:
        return frozenset((wish.maximised,))
    fitting = set(panes)
    if width < NARROW and content.maps:
        if content.timed:
            fitting.discard("maps")
        elif height < LOW:
            fitting.discard("histogram")
    return frozenset(fitting - wish.hidden) or frozenset(fitting) or panes
