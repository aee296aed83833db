"""Lines of styled text cut to a width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from gpuwatch.tui.theme import GREY, QUIET

Span = tuple[str, Style]
_OLD = Style(color=GREY)


def width_of(spans: Iterable[Span]) -> int:
    """Terminal cells that `spans` take."""
    return sum(cell_len(text) for text, _ in spans)


def strip_of(spans: Iterable[Span], width: int) -> Strip:
    """`spans` cropped or padded with blanks to exactly `width` cells."""
    strip = Strip([Segment(text, style) for text, style in spans])
    return strip.crop(0, max(0, width)).extend_cell_length(max(0, width))


def greyed(strip: Strip) -> Strip:
    """The same text without colours: it is old."""
    return Strip([Segment(part.text, _OLD) for part in strip], strip.cell_length)


def join(groups: Sequence[Sequence[Span]], gap: Span) -> list[Span]:
    """All spans of `groups`, with `gap` between two of them."""
    joined: list[Span] = []
    for group in groups:
        if joined and group:
            joined.append(gap)
        joined.extend(group)
    return joined


def as_many(groups: Sequence[Sequence[Span]], width: int, gap: Span) -> list[Span]:
    """The first of `groups` that fit into `width`, in order; one that does not fit is skipped."""
    kept: list[Sequence[Span]] = []
    left = width
    for group in groups:
        need = width_of(group) + (cell_len(gap[0]) if kept else 0)
        if need <= left:
            kept.append(group)
            left -= need
    return join(kept, gap)


def roomiest(versions: Sequence[Sequence[Sequence[Span]]], width: int) -> list[Span]:
    """The first of `versions` (groups of spans) that fits into `width` whole, under the widest
    gap of three to one cells; as many groups of the last version as fit where none does."""
    for groups in versions:
        for cells in (3, 2, 1):
            line = join(groups, (" " * cells, QUIET))
            if width_of(line) <= width:
                return line
    return as_many(versions[-1], width, ("  ", QUIET))


def spread_out(left: Sequence[Span], right: Sequence[Span], width: int, filler: Span) -> list[Span]:
    """`left` and `right` at the two ends of `width`, `filler` (one cell) between.

    `right` is left out where both do not fit.
    """
    room = width - width_of(left) - width_of(right)
    if room < 1:
        return [*left, (filler[0] * max(0, width - width_of(left)), filler[1])]
    return [*left, (filler[0] * room, filler[1]), *right]
