"""The warp table: virtual rows over numpy columns, sorted by any column, selection by warp."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpuwatch.analysis.filtering import Filter
from gpuwatch.analysis.timeline import SmSpans
from gpuwatch.tui.arrangement import Arrangement
from gpuwatch.tui.glyphs import Glyphs, whole
from gpuwatch.tui.pane import CURSOR_KEYS, Drawing, View, nothing_recorded
from gpuwatch.tui.record_table import RecordTable
from gpuwatch.tui.theme import QUIET, STRONG, TAG, TEXT, WRONG
from gpuwatch.tui.warp_columns import Column, columns_of, starts_descending
from gpuwatch.tui.warp_rows import (
    GAP,
    Line,
    row_lines,
    shifted,
    table_width,
    timeline_width,
    title_line,
)

_HEAD = 2
"""Title rule and column titles."""


class WarpPane(Drawing, ScrollView):
    """The cursor is the identity of a row (a warp ID), None for none."""

    can_focus = True
    DEFAULT_CSS = "WarpPane { height: 1fr; width: 1fr; scrollbar-size-horizontal: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = CURSOR_KEYS

    class Chosen(Message):
        """Another row, or none, is selected."""

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(id=name)
        self.glyphs = glyphs
        self.warp: int | None = None
        self.rows = Arrangement()
        self._columns: tuple[Column, ...] = ()
        self._spans: SmSpans | None = None
        self._drawn: tuple[tuple[int, int, int], list[Line]] | None = None
        """Lines in sight, with first row, page and width that they were made for."""

    # ---- data

    @property
    def table(self) -> RecordTable | None:
        return self.rows.table

    @property
    def sort(self) -> str:
        return self.rows.sort

    @property
    def descending(self) -> bool:
        return self.rows.descending

    @property
    def filter_text(self) -> str:
        """The filter as it was written, "" for none."""
        return "" if self.rows.filter is None else self.rows.filter.text

    @property
    def count_text(self) -> str:
        """How many rows are shown: "1,204 of 33,024"."""
        table, order = self.table, self.rows.order
        if table is None or order is None:
            return ""
        shown = len(table) if self.rows.filter is None else len(order)
        return f"{whole(shown)} of {whole(table.expected)}"

    @property
    def selected_row(self) -> int | None:
        """Row of the selected warp in the current data, None if it is not there."""
        return None if self.table is None else self.table.row_of(self.warp)

    def show(self, view: View) -> None:
        """Takes over `view`; a selected warp that was in sight stays on its screen line."""
        old = self.view
        fresh = old is None or view.frame is not old.frame or view.table is not old.table
        line = self._line_of_selection() if fresh else None
        self.view = view
        if fresh:
            self._spans = None
            self.rows.take(view.table)
            self._fit()
            self._keep_on_line(line)
        self._redraw()

    def _fit(self) -> None:
        """Columns and scrollable size for the rows there are."""
        table, order = self.table, self.rows.order
        if table is None or order is None:
            self._columns = ()
            self.virtual_size = Size(self.size.width, 0)
            return
        self._columns = columns_of(table, self._columns)
        self.virtual_size = Size(table_width(self._columns), len(order) + _HEAD)

    def _redraw(self) -> None:
        self._drawn = None
        self.refresh()

    # ---- selection and scrolling

    @property
    def _page(self) -> int:
        return max(1, self.size.height - _HEAD)

    @property
    def _top(self) -> int:
        return int(self.scroll_offset.y)

    def _line_of_selection(self) -> int | None:
        rank = self._rank()
        return rank - self._top if rank is not None and 0 <= rank - self._top < self._page else None

    def _keep_on_line(self, line: int | None) -> None:
        rank = self._rank()
        if line is not None and rank is not None:
            self._scroll_rows(rank - line)

    def _scroll_rows(self, top: int) -> None:
        self.scroll_to(y=max(0, top), animate=False, immediate=True)

    def _select_rank(self, rank: int) -> None:
        table, order = self.table, self.rows.order
        if table is None or order is None or len(order) == 0:
            return
        rank = max(0, min(rank, len(order) - 1))
        self.warp = int(table.ids[order.rows(rank, 1)[0]])
        if rank < self._top:
            self._scroll_rows(rank)
        elif rank >= self._top + self._page:
            self._scroll_rows(rank - self._page + 1)
        self.post_message(self.Chosen())
        self._redraw()

    def _rank(self) -> int | None:
        row, order = self.selected_row, self.rows.order
        return None if row is None or order is None else order.rank(row)

    def action_move(self, step: int) -> None:
        """Selects the neighbour; the first key press selects the first row in sight."""
        rank = self._rank()
        self._select_rank(self._top if rank is None else rank + step)

    def action_page(self, step: int) -> None:
        rank = self._rank()
        self._select_rank((self._top if rank is None else rank) + step * self._page)

    def action_edge(self, end: int) -> None:
        self._select_rank(len(self.rows.order) - 1 if end and self.rows.order is not None else 0)

    def unselect(self) -> bool:
        """Drops the selection; says whether there was one."""
        had = self.warp is not None
        self.warp = None
        if had:
            self._scroll_rows(0)
            self.post_message(self.Chosen())
            self._redraw()
        return had

    # ---- rows and order

    def _rearranged(self, line: int | None) -> None:
        self._fit()
        if line is None:
            self._scroll_rows(0)
        self._keep_on_line(line)
        self._redraw()

    def sort_by(self, title: str, descending: bool) -> None:
        line = self._line_of_selection()
        self.rows.sort_by(title, descending)
        self._rearranged(line)

    def sort_next(self) -> None:
        """The next column, largest first for figures and smallest first for names."""
        titles = [column.title for column in self._columns]
        if titles:
            title = titles[(titles.index(self.sort) + 1) % len(titles)]
            self.sort_by(title, starts_descending(title))

    def sort_reverse(self) -> None:
        if self._columns:
            self.sort_by(self.sort, not self.descending)

    def filter_by(self, wanted: Filter | None) -> None:
        """Shows only the rows for which `wanted` holds, all for None."""
        line = self._line_of_selection()
        self.rows.set_filter(wanted)
        self._rearranged(line)

    def toggle_frozen(self) -> None:
        line = self._line_of_selection()
        self.rows.freeze(not self.rows.frozen)
        self._rearranged(line)

    def on_click(self, event: events.Click) -> None:
        if event.y == _HEAD - 1:
            title = self._title_at(event.x + int(self.scroll_offset.x))
            if title == self.sort:
                self.sort_reverse()
            elif title is not None:
                self.sort_by(title, starts_descending(title))
        elif event.y >= _HEAD and self.rows.order is not None:
            rank = self._top + event.y - _HEAD
            if rank < len(self.rows.order):
                self._select_rank(rank)

    def _title_at(self, x: int) -> str | None:
        edge = 2
        for column in self._columns:
            edge += column.width + GAP
            if x < edge:
                return column.title
        return None

    # ---- drawing

    def render_line(self, y: int) -> Strip:
        if y == 0:
            title = f"{self.table.unit.capitalize()}s" if self.table is not None else "Warps"
            return self.draw(self, self.title_rule(self, title, *self._figures()))
        if self.table is None or self.rows.order is None:
            lines = nothing_recorded(self.view, "start and elapsed", y - 1, self.size.height - 1)
            return self.draw(self, lines)
        if y == 1:
            spans = self._titles()
        elif y - _HEAD < len(self._lines()):
            spans = self._lines()[y - _HEAD]
        else:
            spans = self._no_row(y - _HEAD)
        return self.draw(self, shifted(spans, int(self.scroll_offset.x)))

    def _no_row(self, line: int) -> Line:
        if line == 1 and self.rows.filter is not None and not self._lines():
            return [(f"  no {self._unit()} with {self.rows.filter.text}", QUIET)]
        return []

    def _unit(self) -> str:
        return self.table.unit if self.table is not None else "warp"

    def _figures(self) -> list[list[Line]]:
        """What is sorted, shown and lost. Losses and the count stay in the narrowest title."""
        frame = self.view.frame if self.view is not None else None
        table, order = self.table, self.rows.order
        if frame is None or table is None or order is None:
            return [[]]
        direction = self.glyphs.descending if self.descending else self.glyphs.ascending
        bad: list[Line] = [
            [(f"{name} ", QUIET), (whole(count), WRONG if count else TEXT)]
            for name, count in (("missing", frame.missing), ("dropped", frame.dropped))
        ]
        lost = [group for group in bad if group[1][1] is WRONG]
        held: list[Line] = [[(" FROZEN ", TAG)]] if self.rows.frozen else []
        sort: Line = [("sort ", QUIET), (f"{self.sort} {direction}", STRONG)]
        seen: Line = [(self.count_text, TEXT)]
        filtered = self._filter_figure()
        return [
            [*held, sort, *filtered, seen, *self._selected_figure(), *bad],
            [*held, sort, *filtered, seen, *self._selected_figure(), *lost],
            [*held, *filtered, seen, *lost, sort],
            [seen, *lost, *held, sort, *filtered],
        ]

    def _filter_figure(self) -> list[Line]:
        if self.rows.filter is None:
            return []
        if self.rows.misfit is not None:
            return [[("filter ", QUIET), (self.rows.misfit.message, WRONG)]]
        return [[("filter ", QUIET), (self.rows.filter.text, STRONG)]]

    def _selected_figure(self) -> list[Line]:
        if self.warp is None:
            return []
        if self.selected_row is None:
            return [[("selected ", QUIET), (str(self.warp), WRONG)]]
        hidden: Line = [] if self._rank() is not None else [(" not shown", QUIET)]
        return [[("selected ", QUIET), (str(self.warp), TEXT), *hidden]]

    def _titles(self) -> Line:
        direction = self.glyphs.descending if self.descending else self.glyphs.ascending
        return title_line(self._columns, self.sort, direction, self._timeline_width())

    def _timeline_width(self) -> int:
        if self.table is None:
            return 0
        return timeline_width(self.table, self._columns, self.size.width)

    def _lines(self) -> list[Line]:
        """The rows in sight, made once for each redraw."""
        key = (self._top, self._page, self.size.width)
        if self._drawn is None or self._drawn[0] != key:
            self._drawn = (key, self._rows_in_sight())
        return self._drawn[1]

    def _rows_in_sight(self) -> list[Line]:
        table, order = self.table, self.rows.order
        assert table is not None and order is not None
        width = self._timeline_width()
        if width and self._spans is None:
            self._spans = SmSpans.of(*(table.columns[name] for name in ("SM", "start", "elapsed")))
        return row_lines(
            table,
            order.rows(self._top, self._page),
            self._columns,
            self.sort,
            self.selected_row,
            self.glyphs,
            self._spans,
            width,
        )
