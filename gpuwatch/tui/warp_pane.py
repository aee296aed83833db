"""The warp table: virtual rows over numpy columns, sorted by any column, selection by warp."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpuwatch.analysis.ordering import Ordering
from gpuwatch.analysis.timeline import relative_spans
from gpuwatch.analysis.warps import WarpColumns
from gpuwatch.engine.frame import Frame
from gpuwatch.tui.glyphs import Glyphs, whole
from gpuwatch.tui.paint import Span
from gpuwatch.tui.pane import Drawing, View, nothing_recorded
from gpuwatch.tui.theme import CURSOR, FOCUS, QUIET, RULE, STRONG, TEXT, TITLE, WRONG, ramp
from gpuwatch.tui.warp_columns import DEFAULT_SORT, Column, columns_of

_HEAD = 2
"""Title rule and column titles."""
_GAP = 2
_TIMELINE_MIN = 12


class WarpPane(Drawing, ScrollView):
    """Sorting: `sort` is a column's title. The cursor is a warp ID, None for none."""

    can_focus = True
    DEFAULT_CSS = "WarpPane { height: 1fr; width: 1fr; scrollbar-size-horizontal: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "edge(0)", show=False),
        Binding("end", "edge(1)", show=False),
    ]

    class Chosen(Message):
        """Another warp, or none, is selected."""

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(id=name)
        self.glyphs = glyphs
        self.sort = DEFAULT_SORT
        self.descending = True
        self.warp: int | None = None
        self._columns: tuple[Column, ...] = ()
        self._ordering: Ordering | None = None
        self._spans: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    # ---- data

    @property
    def table(self) -> WarpColumns | None:
        return self.view.frame.warps_table if self.view is not None and self.view.frame else None

    @property
    def selected_row(self) -> int | None:
        """Row of the selected warp in the current data, None if it is not there."""
        table = self.table
        if self.warp is None or table is None:
            return None
        rows = np.flatnonzero(table.warp == self.warp)
        return int(rows[0]) if len(rows) else None

    def selected_figure(self, name: Literal["sm", "elapsed"], frame: Frame | None) -> int | None:
        """The selected warp's SM or elapsed cycles in `frame`."""
        if self.warp is None or frame is None or frame.warps_table is None:
            return None
        rows = np.flatnonzero(frame.warps_table.warp == self.warp)
        return int(getattr(frame.warps_table, name)[rows[0]]) if len(rows) else None

    def show(self, view: View) -> None:
        """Takes over `view`; a selected warp that was in sight stays on its screen line."""
        fresh = self.view is None or view.frame is not self.view.frame
        line = self._line_of_selection() if fresh else None
        self.view = view
        if fresh:
            self._spans = None
            self._arrange()
            self._keep_on_line(line)
        self.refresh()

    def _arrange(self) -> None:
        table = self.table
        if table is None or self.view is None or self.view.frame is None:
            self._columns, self._ordering = (), None
            self.virtual_size = Size(self.size.width, 0)
            return
        self._columns = columns_of(self.view.frame, self._columns)
        if self.sort not in {column.title for column in self._columns}:
            self.sort, self.descending = DEFAULT_SORT, True
        values = self._column(self.sort).values(table)
        self._ordering = Ordering(values, descending=self.descending)
        self.virtual_size = Size(self._fixed_width(), len(table) + _HEAD)

    def _column(self, title: str) -> Column:
        return next(column for column in self._columns if column.title == title)

    def _fixed_width(self) -> int:
        return 2 + sum(column.width + _GAP for column in self._columns)

    # ---- selection and scrolling

    @property
    def _page(self) -> int:
        return max(1, self.size.height - _HEAD)

    @property
    def _top(self) -> int:
        return int(self.scroll_offset.y)

    def _line_of_selection(self) -> int | None:
        row = self.selected_row
        if row is None or self._ordering is None:
            return None
        line = self._ordering.rank(row) - self._top
        return line if 0 <= line < self._page else None

    def _keep_on_line(self, line: int | None) -> None:
        row = self.selected_row
        if line is not None and row is not None and self._ordering is not None:
            self._scroll_rows(self._ordering.rank(row) - line)

    def _scroll_rows(self, top: int) -> None:
        self.scroll_to(y=max(0, top), animate=False, immediate=True)

    def _select_rank(self, rank: int) -> None:
        table, ordering = self.table, self._ordering
        if table is None or ordering is None or len(ordering) == 0:
            return
        rank = max(0, min(rank, len(ordering) - 1))
        self.warp = int(table.warp[ordering.rows(rank, 1)[0]])
        if rank < self._top:
            self._scroll_rows(rank)
        elif rank >= self._top + self._page:
            self._scroll_rows(rank - self._page + 1)
        self.post_message(self.Chosen())
        self.refresh()

    def _rank(self) -> int | None:
        row = self.selected_row
        return None if row is None or self._ordering is None else self._ordering.rank(row)

    def action_move(self, step: int) -> None:
        """Selects the neighbour; the first key press selects the first row in sight."""
        rank = self._rank()
        self._select_rank(self._top if rank is None else rank + step)

    def action_page(self, step: int) -> None:
        rank = self._rank()
        self._select_rank((self._top if rank is None else rank) + step * self._page)

    def action_edge(self, end: int) -> None:
        self._select_rank(len(self._ordering) - 1 if end and self._ordering is not None else 0)

    def unselect(self) -> bool:
        """Drops the selection; says whether there was one."""
        had = self.warp is not None
        self.warp = None
        self._scroll_rows(0)
        self.post_message(self.Chosen())
        self.refresh()
        return had

    # ---- sorting

    def sort_by(self, title: str, descending: bool) -> None:
        line = self._line_of_selection()
        self.sort, self.descending = title, descending
        self._arrange()
        if line is None:
            self._scroll_rows(0)
        self._keep_on_line(line)
        self.refresh()

    def sort_next(self) -> None:
        """The next column, largest first for figures and smallest first for names."""
        titles = [column.title for column in self._columns]
        if titles:
            title = titles[(titles.index(self.sort) + 1) % len(titles)]
            self.sort_by(title, _starts_descending(title))

    def sort_reverse(self) -> None:
        if self._columns:
            self.sort_by(self.sort, not self.descending)

    def on_click(self, event: events.Click) -> None:
        if event.y == _HEAD - 1:
            title = self._title_at(event.x + int(self.scroll_offset.x))
            if title == self.sort:
                self.sort_reverse()
            elif title is not None:
                self.sort_by(title, _starts_descending(title))
        elif event.y >= _HEAD and self._ordering is not None:
            rank = self._top + event.y - _HEAD
            if rank < len(self._ordering):
                self._select_rank(rank)

    def _title_at(self, x: int) -> str | None:
        edge = 2
        for column in self._columns:
            edge += column.width + _GAP
            if x < edge:
                return column.title
        return None

    # ---- drawing

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self.draw(self, self.title_rule(self, "Warps", self._figures()))
        if self.table is None or self.view is None or self.view.frame is None:
            lines = nothing_recorded(self.view, "start and elapsed", y - 1, self.size.height - 1)
            return self.draw(self, lines)
        spans = self._titles() if y == 1 else self._row(y - _HEAD)
        return self.draw(self, _shift(spans, int(self.scroll_offset.x)))

    def _figures(self) -> list[list[Span]]:
        frame = self.view.frame if self.view is not None else None
        if frame is None or frame.warps_table is None:
            return []
        direction = self.glyphs.descending if self.descending else self.glyphs.ascending
        bad = [
            [(f"{name} ", QUIET), (whole(count), WRONG if count else TEXT)]
            for name, count in (("missing", frame.missing), ("dropped", frame.dropped))
        ]
        seen = f"{whole(len(frame.warps_table))} of {whole(frame.warps)}"
        chosen: list[list[Span]] = []
        if self.warp is not None:
            style = TEXT if self.selected_row is not None else WRONG
            chosen = [[("selected ", QUIET), (str(self.warp), style)]]
        return [
            [("sort ", QUIET), (f"{self.sort} {direction}", STRONG)],
            [(seen, TEXT)],
            *chosen,
            *bad,
        ]

    def _titles(self) -> list[Span]:
        direction = self.glyphs.descending if self.descending else self.glyphs.ascending
        spans: list[Span] = [("  ", QUIET)]
        for column in self._columns:
            chosen = column.title == self.sort
            title = column.title + (direction if chosen else "")
            style = FOCUS + STRONG if chosen else QUIET
            spans.append((title.rjust(column.width), style))
            spans.append((" " * _GAP, QUIET))
        if self._timeline_width() >= _TIMELINE_MIN:
            spans.append(("within its SM's busy span", QUIET))
        return spans

    def _row(self, line: int) -> list[Span]:
        table, ordering = self.table, self._ordering
        assert table is not None and ordering is not None
        assert self.view is not None and self.view.frame is not None
        window = ordering.rows(self._top, self._page)
        if line >= len(window):
            return []
        row = int(window[line])
        chosen = self.warp is not None and int(table.warp[row]) == self.warp
        heat = ramp(self._slowness(int(table.elapsed[row])))
        spans: list[Span] = [((self.glyphs.cursor if chosen else " ") + " ", TITLE)]
        for column in self._columns:
            text = column.text(column.values(table)[row], self.view.frame.grid)
            style = heat if column.title == "elapsed" else _style(column.title, self.sort)
            spans.append((text.rjust(column.width), style))
            spans.append((" " * _GAP, TEXT))
        spans += self._timeline(row, heat)
        return [(text, CURSOR) for text, _ in spans] if chosen else spans

    def _slowness(self, elapsed: int) -> float:
        table = self.table
        frame = self.view.frame if self.view is not None else None
        if frame is not None and frame.elapsed is not None:
            low, high = frame.elapsed.min, frame.elapsed.max
        else:
            assert table is not None
            low, high = int(table.elapsed.min()), int(table.elapsed.max())
        return (elapsed - low) / (high - low) if high > low else 0.5

    def _timeline_width(self) -> int:
        return self.size.width - self._fixed_width() - 1

    def _timeline(self, row: int, style: Style) -> list[Span]:
        width = min(self._timeline_width(), 100)
        table = self.table
        if width < _TIMELINE_MIN or table is None:
            return []
        if self._spans is None:
            self._spans = relative_spans(table.sm, table.start, table.elapsed)
        begin = min(width - 1, int(self._spans[0][row] * width))
        end = max(begin + 1, min(width, round(float(self._spans[1][row]) * width)))
        dots = self.glyphs.dot
        return [
            (dots * begin, RULE),
            (self.glyphs.thread * (end - begin), style),
            (dots * (width - end), RULE),
        ]


def _starts_descending(title: str) -> bool:
    return title not in ("warp", "block", "SM", "start")


def _style(title: str, sort: str) -> Style:
    if title == sort:
        return STRONG
    return QUIET if title in ("start", "n") else TEXT


def _shift(spans: list[Span], columns: int) -> list[Span]:
    """`spans` without their first `columns` cells."""
    kept: list[Span] = []
    for text, style in spans:
        if columns < len(text):
            kept.append((text[columns:], style))
        columns = max(0, columns - len(text))
    return kept
