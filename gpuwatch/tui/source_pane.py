"""The source with figures at its lines, beside the PTX that it became and what was woven in."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpuwatch.analysis.lines import LineFigures, line_figures
from gpuwatch.engine.frame import Listing
from gpuwatch.tui.glyphs import Glyphs, bar, brief
from gpuwatch.tui.paint import Span, strip_of
from gpuwatch.tui.pane import Drawing, View
from gpuwatch.tui.theme import CURSOR, FOCUS, KEY, QUIET, RULE, STRONG, TEXT, WOVEN, ramp

_BESIDE = 100
"""Columns from which the PTX is shown beside the source."""
_SOURCE_PART = 5, 8
"""Of the width, where the PTX takes the rest."""
_LEAST_TEXT = 36
"""Columns of source text for which figures are left out; half of the source's part at least."""
_MARKS = 8
"""Columns of cursor, number and mark."""
_FIGURE = 8
_FIGURES = ((3, 8), (2, 8), (1, 8), (1, 4), (1, 0))
"""How many fields and columns of a bar are shown, the most that leaves room for the text."""

Line = list[Span]


class SourcePane(Drawing, ScrollView):
    """The cursor is a source line, from 1. The PTX scrolls to what that line became."""

    can_focus = True
    DEFAULT_CSS = "SourcePane { height: 1fr; width: 1fr; scrollbar-size-horizontal: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "go(1)", show=False),
        Binding("end", "go(1000000000)", show=False),
        Binding("n", "next_site(1)", show=False),
        Binding("N", "next_site(-1)", show=False),
    ]

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(id=name)
        self.glyphs = glyphs
        self.listing: Listing | None = None
        self.line = 1
        self._source: list[str] = []
        self._ptx: list[str] = []
        self._inserted: frozenset[int] = frozenset()
        self._sites: dict[int, int] = {}
        self._marked: dict[int, str] = {}
        self._figures: LineFigures | None = None
        self._fields, self._bar = _FIGURES[-1]
        self._ptx_top = 0

    # ---- data

    def show(self, view: View) -> None:
        """Takes over figures, and the texts when they are of another selection."""
        fresh = self.view is None or view.frame is not self.view.frame
        self.view = view
        if view.listing is not self.listing:
            self._read(view.listing)
        if fresh:
            self._figures = line_figures(view.frame.maps) if view.frame is not None else None
        self._divide()
        self.refresh()

    def _read(self, listing: Listing | None) -> None:
        first = self.listing is None
        self.listing = listing
        if listing is None:
            self._source, self._ptx, self._sites, self._marked = [], [], {}, {}
            return
        self._source = listing.source.split("\n")
        self._ptx = listing.ptx.split("\n")
        self._inserted = frozenset(listing.inserted)
        self._sites = {}
        for line, _opcode in listing.sites:
            self._sites[line] = self._sites.get(line, 0) + 1
        self._marked = {}
        for one in listing.marked:
            said = self._marked.get(one.line)
            self._marked[one.line] = f"{said}; {one.reason}" if said else one.reason
        self.virtual_size = Size(self.size.width, len(self._rows) + 1 + self._has_remark)
        kernel = min((line for line in listing.lines if line), default=1)
        self._go(kernel if first else min(self.line, len(self._rows)))

    @property
    def _rows(self) -> list[str]:
        """What scrolls: the source, or the PTX where that is all there is."""
        return self._source if self.listing is not None and self.listing.source else self._ptx

    @property
    def _beside(self) -> bool:
        """Whether source and PTX are side by side."""
        both = bool(self._source) and self._rows is self._source
        return both and self.size.width >= _BESIDE

    @property
    def _left(self) -> int:
        """Columns of the source, or of all there is."""
        part, of = _SOURCE_PART
        return self.size.width * part // of if self._beside else self.size.width

    def _divide(self) -> None:
        """Leaves out figures until enough of the source's text is seen."""
        known = len(self._figures.fields) if self._figures is not None else 0
        room = self._left - _MARKS - max(_LEAST_TEXT, self._left // 2)
        fitting = (shown for shown in _FIGURES if shown[0] <= known and _cells(*shown) <= room)
        self._fields, self._bar = next(fitting, _FIGURES[-1])

    # ---- cursor

    @property
    def _page(self) -> int:
        return max(1, self.size.height - 1 - self._has_remark)

    @property
    def _has_remark(self) -> bool:
        return bool(self._marked) or (self.listing is not None and bool(self.listing.unmarked))

    @property
    def _top(self) -> int:
        return int(self.scroll_offset.y)

    def _go(self, line: int) -> None:
        self.line = max(1, min(line, len(self._rows)))
        index = self.line - 1
        if not self._top <= index < self._top + self._page:
            self.scroll_to(y=max(0, index - self._page // 3), animate=False, immediate=True)
        self._follow()
        self.refresh()

    def _follow(self) -> None:
        """Scrolls the PTX to the first instruction that comes from the line."""
        lines = self.listing.lines if self.listing is not None else ()
        if self.line in lines:
            self._ptx_top = max(0, lines.index(self.line) - self._page // 4)

    def on_resize(self) -> None:
        self._divide()
        self._go(self.line)

    def action_move(self, step: int) -> None:
        self._go(self.line + step)

    def action_page(self, step: int) -> None:
        self._go(self.line + step * self._page)

    def action_go(self, line: int) -> None:
        self._go(line)

    def action_next_site(self, step: int) -> None:
        """The next line that a probe runs at."""
        lines = sorted({line for line in self._sites if line})
        if lines:
            ahead = [line for line in lines if (line - self.line) * step > 0]
            self._go((ahead or lines)[0 if step > 0 else -1])

    def on_click(self, event: events.Click) -> None:
        if 0 < event.y <= self._page:
            self._go(self._top + event.y)

    # ---- drawing

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self.draw(self, self.title_rule(self, "Source", *self._title()))
        if self.listing is None or not self._rows:
            return self.draw(self, [("  not known yet", QUIET)] if y == 2 else [])
        if y > self._page:
            return self.draw(self, self._remark())
        index = self._top + y - 1
        left = self._numbered(index) if self._rows is self._source else self._ptx_line(index)
        if not self._beside:
            return self.draw(self, left)
        strip = strip_of(left, self._left - 1)
        spans = [(part.text, part.style or TEXT) for part in strip]
        right = self._ptx_line(self._ptx_top + y - 1)
        return self.draw(self, [*spans, (self.glyphs.axis, RULE), *right])

    def _title(self) -> list[list[Line]]:
        if self.listing is None:
            return [[]]
        woven: Line = [("woven ", QUIET), (f"{len(self._inserted)} lines", TEXT)]
        sites: Line = [("places ", QUIET), (str(len(self.listing.sites)), TEXT)]
        line: Line = [("line ", QUIET), (str(self.line), STRONG)]
        fields: list[Line] = []
        of: list[Line] = []
        if self._figures is not None:
            fields = [[(" ".join(self._figures.fields[: self._fields]), KEY)]]
            of = [[("of ", QUIET), (" + ".join(self._figures.maps), TEXT)]]
        return [
            [*fields, *of, line, sites, woven],
            [*fields, line, sites, woven],
            [*fields, line],
            [line],
        ]

    def _numbered(self, index: int) -> Line:
        """A source line with its number, its mark and its figures."""
        if index >= len(self._source):
            return []
        number = index + 1
        chosen = number == self.line
        mark = self.glyphs.block if self._sites.get(number) else " "
        differs = self.glyphs.differs if number in self._marked else " "
        spans: Line = [
            ((self.glyphs.cursor if chosen else " "), FOCUS),
            (f"{number:>4} ", STRONG if chosen else QUIET),
            (mark, WOVEN),
            (differs, STRONG),
            *self._line_figures(number),
        ]
        text = self._source[index].expandtabs(4)
        return [*spans, (text, CURSOR if chosen else TEXT)]

    def _remark(self) -> Line:
        """The last row: how machine code differs at the cursor's line, else where it does."""
        differs = f" {self.glyphs.differs} "
        if self.line in self._marked:
            return [(differs, STRONG), (self._marked[self.line], TEXT)]
        if self._marked:
            lines = ", ".join(str(line) if line else "none" for line in sorted(self._marked))
            said = f"machine code differs from PTX at line{'s' * (len(self._marked) > 1)} {lines}"
            return [(differs, STRONG), (said, QUIET)]
        if self.listing is not None and self.listing.unmarked:
            return [("   " + self.listing.unmarked, QUIET)]
        return []

    def _line_figures(self, number: int) -> Line:
        figures = self._figures
        if figures is None:
            return []
        values = figures.values.get(number)
        if values is None:
            return [(" " * _cells(self._fields, self._bar), TEXT)]
        share = figures.share(number)
        unsure = "~" if figures.estimated else ""
        spans: Line = [
            ((unsure + brief(one)).rjust(_FIGURE - 1) + " ", TEXT) for one in values[: self._fields]
        ]
        if self._bar:
            spans.append((bar(share, self._bar, self.glyphs.across) + " ", ramp(share)))
        return spans

    def _ptx_line(self, index: int) -> Line:
        """A line of the probed module; woven ones are marked."""
        if self.listing is None or not 0 <= index < len(self._ptx):
            return []
        text = self._ptx[index].expandtabs(4)
        if index + 1 in self._inserted:
            return [("+ ", WOVEN), (text, WOVEN)]
        ours = self._rows is self._source and self.listing.lines[index] == self.line
        style = _ptx_style(text.strip(), ours)
        return [(self.glyphs.axis + " " if ours else "  ", FOCUS), (text, style)]


def _cells(fields: int, bar_columns: int) -> int:
    """Columns of so many figures and a bar."""
    return fields * _FIGURE + (bar_columns + 1 if bar_columns else 0)


@lru_cache(maxsize=4096)
def _ptx_style(text: str, ours: bool) -> Style:
    if text.startswith((".loc", "//", ".file")):
        return QUIET
    return STRONG if ours else TEXT
