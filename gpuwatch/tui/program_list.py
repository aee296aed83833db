"""The list of a program's kernels: those in sight are drawn, the cursor follows its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpuwatch.engine.program_kernels import ProgramKernel
from gpuwatch.tui.glyphs import Glyphs, whole
from gpuwatch.tui.pane import CURSOR_KEYS, Drawing
from gpuwatch.tui.program_columns import COLUMNS, SHARE, Layout
from gpuwatch.tui.program_rows import KernelRows, Line, row_line, title_line
from gpuwatch.tui.theme import QUIET, STRONG, TEXT

_HEAD = 2
"""Title rule and column titles."""


class ProgramList(Drawing, ScrollView):
    """The cursor is on the first kernel that a probe can attach to until it is moved; then it
    follows its kernel, by the key."""

    can_focus = True
    DEFAULT_CSS = "ProgramList { height: 1fr; width: 1fr; scrollbar-size-horizontal: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = CURSOR_KEYS

    class Moved(Message):
        """Another kernel is under the cursor."""

    class Chosen(Message):
        """The kernel under the cursor was clicked twice."""

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(id=name)
        self.glyphs = glyphs
        self.rows = KernelRows()
        self.empty = ""
        """Said while there is no kernel."""
        self._key: str | None = None
        self._watched: str | None = None
        self._layout = Layout()

    # ---- data

    @property
    def kernel(self) -> ProgramKernel | None:
        """The one under the cursor, None where none is listed."""
        shown = self.rows.shown
        return shown[self._rank()] if shown else None

    @property
    def count_text(self) -> str:
        """How many are shown: "12 of 340"."""
        count = whole(len(self.rows.kernels))
        return f"{whole(len(self.rows.shown))} of {count}" if self.rows.filter else count

    def show(self, kernels: Sequence[ProgramKernel], watched: str | None, empty: str) -> None:
        """Takes over the newest figures; a cursor that was in sight stays so."""
        if (tuple(kernels), watched, empty) == (self.rows.kernels, self._watched, self.empty):
            return
        in_sight = self._in_sight()
        self._watched, self.empty = watched, empty
        self.rows.take(kernels)
        self._rearranged(follow=in_sight)

    def _rearranged(self, *, follow: bool) -> None:
        self._layout = Layout.of(self.rows.kernels, self.size.width, self.glyphs, self._layout)
        self.virtual_size = Size(self.size.width, len(self.rows.shown) + _HEAD)
        if follow:
            self._scroll_to_cursor()
        self.refresh()

    def on_resize(self) -> None:
        self._rearranged(follow=True)

    # ---- cursor and scrolling

    @property
    def _page(self) -> int:
        return max(1, self.size.height - _HEAD)

    @property
    def _top(self) -> int:
        return int(self.scroll_offset.y)

    def _rank(self) -> int:
        """Of the kernel under the cursor."""
        rank = self.rows.rank(self._key)
        return self.rows.first if rank is None else rank

    def _in_sight(self) -> bool:
        return 0 <= self._rank() - self._top < self._page

    def _scroll_to_cursor(self) -> None:
        rank = self._rank()
        if rank < self._top:
            self.scroll_to(y=rank, animate=False, immediate=True)
        elif rank >= self._top + self._page:
            self.scroll_to(y=rank - self._page + 1, animate=False, immediate=True)

    def _select_rank(self, rank: int) -> None:
        shown = self.rows.shown
        if shown:
            self._key = shown[max(0, min(rank, len(shown) - 1))].key
            self._scroll_to_cursor()
            self.post_message(self.Moved())
            self.refresh()

    def select(self, key: str) -> None:
        """Puts the cursor on a kernel, if it is listed."""
        rank = self.rows.rank(key)
        if rank is not None:
            self._select_rank(rank)

    def action_move(self, step: int) -> None:
        self._select_rank(self._rank() + step)

    def action_page(self, step: int) -> None:
        self._select_rank(self._rank() + step * self._page)

    def action_edge(self, end: int) -> None:
        self._select_rank(len(self.rows.shown) - 1 if end else 0)

    def unselect(self) -> bool:
        """Lets the cursor go back to where it was at first; says whether it followed a kernel."""
        had = self.rows.rank(self._key) is not None
        self._key = None
        self.scroll_to(y=0, animate=False, immediate=True)
        self.post_message(self.Moved())
        self.refresh()
        return had

    def on_click(self, event: events.Click) -> None:
        rank = self._top + event.y - _HEAD
        if event.y == _HEAD - 1:
            self._sort_at(event.x)
        elif event.y >= _HEAD and rank < len(self.rows.shown):
            twice = event.chain == 2 and self.rows.shown[rank].key == self._key
            self._select_rank(rank)
            if twice:
                self.post_message(self.Chosen())

    # ---- order and filter

    def sort_next(self) -> None:
        """The next column in sight, largest first for figures and by the alphabet for names."""
        titles = [one.title for one in self._layout.columns if one.title != SHARE]
        at = titles.index(self.rows.sort) if self.rows.sort in titles else -1
        self._sort_by(titles[(at + 1) % len(titles)])

    def sort_reverse(self) -> None:
        self.rows.sort_by(self.rows.sort, not self.rows.descending)
        self._rearranged(follow=True)

    def _sort_by(self, title: str) -> None:
        column = next(one for one in COLUMNS if one.title == title)
        self.rows.sort_by(title, column.descending)
        self._rearranged(follow=True)

    def _sort_at(self, x: int) -> None:
        title = self._layout.title_at(x)
        if title == self.rows.sort:
            self.sort_reverse()
        elif title is not None:
            self._sort_by(title)

    def filter_by(self, text: str) -> None:
        """Shows only kernels with all words of `text` in their names."""
        self.rows.filter_by(text)
        self._rearranged(follow=True)
        self.post_message(self.Moved())

    # ---- drawing

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self.draw(self, self.title_rule(self, "Kernels", *self._figures()))
        if not self.rows.kernels:
            return self.draw(self, [("  " + self.empty, TEXT)] if y == 2 else [])
        if y == 1:
            direction = self.glyphs.descending if self.rows.descending else self.glyphs.ascending
            return self.draw(self, title_line(self._layout, self.rows.sort, direction))
        return self.draw(self, self._row(y - _HEAD))

    def _row(self, line: int) -> Line:
        rank = self._top + line
        if rank < len(self.rows.shown):
            kernel = self.rows.shown[rank]
            return row_line(
                kernel,
                self._layout,
                self.rows,
                self.glyphs,
                under_cursor=rank == self._rank(),
                watched=kernel.key == self._watched,
            )
        if line == 0:
            return [(f"  no kernel's name has {self.rows.filter}", QUIET)]
        return []

    def _figures(self) -> list[list[Line]]:
        direction = self.glyphs.descending if self.rows.descending else self.glyphs.ascending
        sort: Line = [("sort ", QUIET), (f"{self.rows.sort} {direction}", STRONG)]
        chosen = self.rows.filter
        filtered: list[Line] = [[("filter ", QUIET), (chosen, STRONG)]] if chosen else []
        seen: Line = [(self.count_text, TEXT)]
        count = self.rows.unprobeable
        words = f"{self.glyphs.cross} {whole(count)} cannot be probed"
        without: list[Line] = [[(words, QUIET)]] if count else []
        return [[sort, *filtered, *without, seen], [sort, *filtered, seen], [seen, *filtered, sort]]
