"""The timeline: which blocks ran on each SM, and when."""

from __future__ import annotations

import math
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType

from gpuwatch.analysis.scale import Scale
from gpuwatch.analysis.sm_placing import Placing, placing_of
from gpuwatch.analysis.timeline import BlockSpans, block_spans
from gpuwatch.tui.chart import placed_labels
from gpuwatch.tui.gantt import (
    CLOSEST,
    LABEL,
    Gantt,
    Row,
    Window,
    first_to_show,
    label_of,
    rows_of,
)
from gpuwatch.tui.glyphs import Glyphs, place, short, whole
from gpuwatch.tui.paint import Span
from gpuwatch.tui.pane import Narrow, Pane, View, nothing_recorded
from gpuwatch.tui.theme import QUIET, RULE, STRONG, TEXT

_BELOW = 2
"""Lines under the SMs: axis and its labels."""
_ZOOM = 2.0
_PAN = 0.25


class TimelinePane(Pane):
    """One line an SM; the SM under the cursor also shows its blocks, as many lanes as run at
    once. Times are microseconds since the launch's first start where all SMs are known well enough
    on one axis, else cycles since the SM's own."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("left", "pan(-1)", show=False),
        Binding("right", "pan(1)", show=False),
        Binding("plus,equals_sign", "zoom(-1)", show=False),
        Binding("minus", "zoom(1)", show=False),
        Binding("0,home", "whole", show=False),
        Binding("e", "open_all", show=False),
        Binding("enter", "narrow", show=False),
    ]

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(glyphs, name)
        self.cursor = 0
        self.window = Window()
        self._all_open = False
        self._first = 0
        self._spans: BlockSpans | None = None
        self._placing: Placing | None = None
        self._drawn: tuple[tuple[int, int], Gantt, list[Row]] | None = None

    # ---- data

    def show(self, view: View) -> None:
        if self.view is None or view.frame is not self.view.frame:
            self._spans = None
        self._drawn = None
        super().show(view)

    def _blocks(self) -> BlockSpans | None:
        frame = self.view.frame if self.view is not None else None
        if frame is None or frame.warps_table is None or frame.sms is None:
            return None
        if self._spans is None:
            warps, axis, sms = frame.warps_table, frame.time_axis, frame.sms
            self._placing = placing_of(axis, warps, sms) if axis is not None else None
            one = self._on_one_axis
            start, elapsed = (one.begin, one.elapsed) if one else (warps.start, warps.elapsed)
            self._spans = block_spans(
                warps.sm, warps.block, start, elapsed, len(sms.sm), common=one is not None
            )
            self.cursor = min(self.cursor, max(0, self._spans.sms - 1))
        return self._spans

    @property
    def _on_one_axis(self) -> Placing | None:
        return self._placing if self._placing is not None and self._placing.holds else None

    @property
    def _unit(self) -> float:
        """What a cycle is on the axis: microseconds where there is one, else itself."""
        one = self._on_one_axis
        return 1.0 if one is None else one.axis.ns_per_cycle / 1e3

    def _unit_words(self) -> str:
        one = self._on_one_axis
        if one is None:
            return " cycles"
        return " us, modelled" if one.axis.modelled else f" us, +-{one.error_ns:,.0f} ns"

    def _drift_words(self) -> list[str]:
        """Why there is no axis of all SMs, in long and in short, where one was measured."""
        if self._placing is None or self._placing.holds:
            return []
        return ["SM clocks drift too much for one axis", "SM clocks drift", "SMs drift"]

    def _longest(self, spans: BlockSpans) -> int:
        return int(spans.end.max()) if len(spans.end) else 1

    @property
    def _lines(self) -> int:
        return max(1, self.size.height - 1 - _BELOW)

    @property
    def _cells(self) -> int:
        return max(1, self.size.width - LABEL - 1)

    def _drawing(self, spans: BlockSpans) -> tuple[Gantt, list[Row]]:
        key = (self._cells, self._lines)
        if self._drawn is None or self._drawn[0] != key:
            self._first = first_to_show(
                spans, self._first, self.cursor, self._lines, not self._all_open
            )
            opened = None if self._all_open else (self.cursor,)
            rows = rows_of(spans, self._first, self._lines, opened)
            low, high = self.window.cycles(self._longest(spans))
            assert self.view is not None and self.view.frame is not None
            grid = self.view.frame.grid
            self._drawn = (key, Gantt(spans, low, high, self._cells, self.glyphs, grid), rows)
        return self._drawn[1], self._drawn[2]

    # ---- moving

    def _changed(self) -> None:
        self._drawn = None
        self.refresh()

    def action_move(self, step: int) -> None:
        spans = self._blocks()
        if spans is not None and spans.sms:
            self.cursor = max(0, min(self.cursor + step, spans.sms - 1))
            self._changed()

    def action_page(self, step: int) -> None:
        self.action_move(step * max(1, self._lines - 1))

    def action_pan(self, step: int) -> None:
        self.window = self.window.panned(step * _PAN)
        self._changed()

    def action_zoom(self, step: int) -> None:
        spans = self._blocks()
        if spans is not None:
            least = self._cells * CLOSEST / self._longest(spans)
            self.window = self.window.zoomed(_ZOOM**step, min(1.0, least))
            self._changed()

    def action_whole(self) -> None:
        """Shows the whole span again."""
        self.window = Window()
        self._changed()

    def action_open_all(self) -> None:
        """Shows the lanes of every SM, or of the one under the cursor only."""
        self._all_open = not self._all_open
        self._changed()

    def action_narrow(self) -> None:
        """Filters the table to the warps of the SM under the cursor."""
        if self._blocks() is not None:
            self.post_message(Narrow(f"sm == {self.cursor}"))

    def on_click(self, event: events.Click) -> None:
        """A click on an SM moves the cursor there, one on a block filters the table by it."""
        spans = self._blocks()
        if spans is None or not 1 <= event.y <= self._lines:
            return
        rows = self._drawing(spans)[1]
        if event.y - 1 >= len(rows):
            return
        row = rows[event.y - 1]
        block = self._block_at(spans, row, event.x)
        if row.sm != self.cursor:
            self.cursor = row.sm
            self._changed()
        if block is not None:
            assert self.view is not None and self.view.frame is not None
            self.post_message(Narrow(f"block == {place(block, self.view.frame.grid)}"))

    def _block_at(self, spans: BlockSpans, row: Row, x: int) -> int | None:
        if row.blocks is None or x < LABEL:
            return None
        low, high = self.window.cycles(self._longest(spans))
        cycle = (high - low) / self._cells
        left = low + (x - LABEL) * cycle
        begin, end = spans.begin[row.blocks], spans.end[row.blocks]
        under = row.blocks[(begin < left + cycle) & (end > left)]
        return int(spans.block[under[-1]]) if len(under) else None

    def on_mouse_scroll_down(self) -> None:
        self.action_move(1)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-1)

    # ---- drawing

    def title_text(self) -> str:
        return "Timeline"

    def figures(self) -> list[list[list[Span]]]:
        spans = self._blocks()
        if spans is None or len(spans.block) == 0:
            return [[]]
        longest = self._longest(spans)
        low, high = self.window.cycles(longest)
        blocks: list[Span] = [("blocks ", QUIET), (whole(len(spans.block)), TEXT)]
        unit = self._unit
        cell: list[Span] = [("cell ", QUIET), (short(unit * (high - low) / self._cells), TEXT)]
        part: list[Span] = [(f"{100 * (high - low) / longest:.3g}%", STRONG)]
        part += [(" of ", QUIET), (short(unit * longest), TEXT), (self._unit_words(), QUIET)]
        keys: list[Span] = [("+/- zoom, arrows pan", QUIET)]
        why: list[list[Span]] = [[(words, TEXT)] for words in self._drift_words()]
        rest = [*([part, one] for one in why), [part]]
        return [[*rest[0], cell, blocks, keys], [*rest[0], cell, blocks], *rest]

    def body(self, row: int, width: int, height: int) -> list[Span]:
        assert width == self.size.width
        spans = self._blocks()
        if spans is None or len(spans.block) == 0:
            return nothing_recorded(self.view, "SM and no start and elapsed", row, height)
        if height <= _BELOW:
            return []
        if row >= height - _BELOW:
            low, high = self.window.cycles(self._longest(spans))
            scale = Scale(self._unit * low, self._unit * high, whole=self._on_one_axis is None)
            return self._axis(scale) if row == height - _BELOW else self._axis_labels(scale)
        gantt, rows = self._drawing(spans)
        if row >= len(rows):
            return []
        return [label_of(rows[row], self._marked()), *gantt.row(rows[row], self._chosen_block())]

    def _marked(self) -> int | None:
        return self.cursor if self.has_focus else None

    def _chosen_block(self) -> int | None:
        value = self.view.selected_value("block") if self.view is not None else None
        return None if value is None else int(value)

    def _axis(self, scale: Scale) -> list[Span]:
        cells: list[Span] = [(self.glyphs.rule, RULE)] * self._cells
        for value in self._ticks(scale):
            cells[scale.column(value, self._cells)] = (self.glyphs.tick, RULE)
        return [(" " * (LABEL - 1), QUIET), (self.glyphs.corner, RULE), *cells]

    def _axis_labels(self, scale: Scale) -> list[Span]:
        style: Style = QUIET
        ticks = self._ticks(scale)
        step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
        labels = [
            (_tick_text(value, step, scale.whole), scale.column(value, self._cells), style)
            for value in ticks
        ]
        return [(" " * LABEL, QUIET), *placed_labels(labels, self._cells)]

    def _ticks(self, scale: Scale) -> list[float]:
        return scale.ticks(max(1, self._cells // 10))


def _tick_text(value: float, step: float, whole: bool) -> str:
    """A tick's label, with the digits that tell it from the next, `step` away."""
    if whole:
        return short(value)
    return f"{value:.{max(0, 1 - math.floor(math.log10(step)))}f}"
