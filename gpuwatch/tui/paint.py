"""Lines of styled text cut to a width."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from gpuwatch.tui.theme import GREY, QUIET

Span = tuple[str, Style]
_OLD = Style(color=GREY)
_PLAIN = Style.null()


def width_of(spans: Iterable[Span]) -> int:
    """Terminal cells that `spans` take."""
    return sum(cell_len(text) for text, _ in spans)


def strip_of(
    spans: Iterable[Span], width: int, base: Style = _PLAIN, *, old: bool = False
) -> Strip:
    """`spans` cropped or padded with blanks to exactly `width` cells.

    `base` is what the widget lies on; every style is laid over it. `old` takes colours away.
    Spans of one style, and blanks without a background, become one segment.
    """
    over = _over(base)
    segments: list[Segment] = []
    text, style, left = "", base, max(0, width)
    for part, wanted in spans:
        if not part or not left:
            continue
        cells = len(part) if part.isascii() else cell_len(part)
        if cells > left:
            part, cells = set_cell_size(part, left), left
        left -= cells
        wanted = _OLD if old else wanted
        if wanted is style or (part.isspace() and style.bgcolor is None is wanted.bgcolor):
            text += part
            continue
        if text:
            segments.append(Segment(text, over(style)))
        text, style = part, wanted
    if style.bgcolor is None:
        text, left = text + " " * left, 0
    if text:
        segments.append(Segment(text, over(style)))
    if left:
        segments.append(Segment(" " * left, base))
    return Strip(segments, max(0, width))


@lru_cache(maxsize=64)
def _over(base: Style) -> Callable[[Style], Style]:
    """Lays a style over `base`; the few hundred styles of a screen are kept."""
    return lru_cache(maxsize=2048)(lambda style: base + style)


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
