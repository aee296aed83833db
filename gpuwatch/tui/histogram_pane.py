"""Histogram of elapsed cycles, or of another field, with axis, counts and percentile marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType

from gpuwatch.analysis.filtering import bucket_condition
from gpuwatch.analysis.histogram import Distribution, Sample, Tally, bar_column, reduced_edges
from gpuwatch.analysis.scale import Range, Scale, octave_range, steady_range
from gpuwatch.engine.frame import Frame, Reduced
from gpuwatch.tui.chart import GUTTER, Bars, placed_labels
from gpuwatch.tui.glyphs import Glyphs, brief, short, whole
from gpuwatch.tui.paint import Span, roomiest
from gpuwatch.tui.pane import Narrow, Pane, View, nothing_recorded
from gpuwatch.tui.record_table import RecordTable
from gpuwatch.tui.theme import CURSOR, MARK, QUIET, RULE, STRONG, TEXT

_BELOW = 3
"""Lines under the bars: axis, tick labels, percentile labels."""
_SCALES = ("linear", "log values", "log counts")


@dataclass(frozen=True, slots=True)
class _Shown:
    """What one redraw shows: the values, those of the baseline, the axis of both."""

    now: Distribution
    before: Distribution | None
    scale: Scale
    whole: bool
    quantiles: tuple[float, float, float]
    """Of the present values."""

    def column(self, value: float, columns: int) -> int:
        """The column above `value`, one of its bar's."""
        return bar_column(self.now.bars(self.scale, columns), self.scale, value)

    def ends(self, column: int, columns: int) -> tuple[float | None, float | None]:
        """The ends of the bar in `column`, whole for whole numbers; None where it takes all that
        lies beyond, which is but one end of a lone bar."""
        low, high = self.now.bars(self.scale, columns)
        first, last = low[column] == low[0], high[column] == high[-1]
        ends = np.ceil((low[column], high[column])) if self.whole else (low[column], high[column])
        return (
            None if first else float(ends[0]),
            None if last and not first else float(ends[1]),
        )


class HistogramPane(Pane):
    """Bars are counts of rows; colour goes from the least (blue) to the greatest (orange).

    `field` is the column that is shown while the table has it, else the first that was
    measured. `cursor` is a bar.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", show=False),
        Binding("right", "move(1)", show=False),
        Binding("home", "edge(0)", show=False),
        Binding("end", "edge(1)", show=False),
        Binding("enter", "narrow", show=False),
    ]

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(glyphs, name)
        self.field = ""
        self.scale_name = _SCALES[0]
        self.accumulated = False
        self.cursor: int | None = None
        self._tallies: dict[str, Tally] = {}
        """By field."""
        self._tallied: tuple[object, ...] = ()
        self._snapshot: dict[str, Tally] = {}
        """The tallies when the view was taken, which pausing keeps."""
        self._axis: Range | None = None
        self._axis_of: tuple[object, ...] = ()
        self._data: _Shown | None = None
        self._bars: tuple[tuple[int, int], Bars] | None = None

    # ---- data

    @property
    def table(self) -> RecordTable | None:
        return self.view.table if self.view is not None else None

    def observe(self, frame: Frame, table: RecordTable | None) -> None:
        """Adds a launch to what is accumulated here; called once for each, also while paused."""
        kind = (frame.mangled, frame.probe, frame.build, frame.grid)
        if kind != self._tallied:
            self._tallies, self._tallied = {}, kind
        for field in table.measured if table is not None else ():
            if table is not None and _reduced(frame, field) is None:
                self._tallies.setdefault(field, Tally.empty()).observe(table.columns[field])

    def forget(self) -> None:
        """Begins to accumulate anew."""
        self._tallies, self._tallied, self._snapshot = {}, (), {}
        self._renew()

    def show(self, view: View) -> None:
        former = self.view
        super().show(view)
        fresh = former is None or view.frame is not former.frame
        if fresh:
            self._snapshot = {field: tally.copy() for field, tally in self._tallies.items()}
        if fresh or view.baseline is not (former and former.baseline):
            self._data = None
        self._bars = None

    def _field_of(self, table: RecordTable | None) -> str:
        if table is None or not table.measured:
            return ""
        return self.field if self.field in table.measured else table.measured[0]

    def _shown(self) -> _Shown | None:
        """None where there are no values."""
        if self._data is None:
            self._data = self._gather()
        return self._data

    def _gather(self) -> _Shown | None:
        table, field = self.table, self._field_of(self.table)
        if table is None or not field or len(table) == 0:
            return None
        now = self._accumulation(field) if self.accumulated else Sample(table.columns[field])
        if now is None or now.total == 0:
            return None
        before = self._of_baseline(field)
        is_whole = table.columns[field].dtype.kind in "iu"
        scale = self._scale(now, before, is_whole=is_whole)
        return _Shown(now, before, scale, is_whole, now.quantiles)

    def _accumulation(self, field: str) -> Distribution | None:
        """What the device summed up over every launch, else what was seen here."""
        reduced = _reduced(self.view.frame if self.view is not None else None, field)
        if reduced is None:
            return self._snapshot.get(field)
        counts = reduced.histogram
        return Tally(counts, reduced_edges(len(counts)), reduced.launches)

    def _of_baseline(self, field: str) -> Distribution | None:
        baseline = self.view.baseline if self.view is not None else None
        table = baseline.table if baseline is not None else None
        if table is None or self.accumulated or field not in table.columns or len(table) == 0:
            return None
        sample = Sample(table.columns[field])
        return sample if sample.total else None

    def _scale(self, now: Distribution, before: Distribution | None, *, is_whole: bool) -> Scale:
        both = (now,) if before is None else (now, before)
        low, high = min(one.low for one in both), max(one.high for one in both)
        if self.scale_name == "log values" and any(one.positive for one in both):
            least = min(one.positive for one in both if one.positive)
            return Scale(*octave_range(least, high), True, is_whole)
        assert self.view is not None and self.view.frame is not None
        frame = self.view.frame
        kind = (frame.mangled, frame.probe, self._field_of(self.table), self.accumulated)
        if kind != self._axis_of:
            self._axis, self._axis_of = None, kind
        self._axis = steady_range(self._axis, low, high, least=1.0 if is_whole else 0.0)
        return Scale(*self._axis, False, is_whole)

    # ---- choices

    def _renew(self) -> None:
        self._data, self._bars = None, None
        self.refresh()

    def next_scale(self) -> None:
        """Linear, logarithmic values, logarithmic counts."""
        self.scale_name = _SCALES[(_SCALES.index(self.scale_name) + 1) % len(_SCALES)]
        self._renew()

    def next_field(self) -> None:
        """The next column that was measured."""
        fields = self.table.measured if self.table is not None else ()
        if fields:
            at = fields.index(self._field_of(self.table))
            self.field = fields[(at + 1) % len(fields)]
            self.cursor = None
            self._renew()

    def toggle_accumulated(self) -> None:
        """One launch, or all seen since the last reset."""
        self.accumulated = not self.accumulated
        self._renew()

    # ---- cursor

    @property
    def _columns(self) -> int:
        return max(1, self.size.width - GUTTER - 2)

    def _point_at(self, column: int) -> None:
        if self._shown() is not None:
            self.cursor = max(0, min(column, self._columns - 1))
            self._bars = None
            self.refresh()

    def action_move(self, step: int) -> None:
        """Moves the cursor to the next bar; the first key press puts it on the median."""
        shown = self._shown()
        if shown is None:
            return
        if self.cursor is None:
            self._point_at(shown.column(shown.quantiles[0], self._columns))
            return
        lows = shown.now.bars(shown.scale, self._columns)[0]
        at = min(self.cursor, self._columns - 1)
        others = np.flatnonzero(lows > lows[at] if step > 0 else lows < lows[at])
        if len(others):
            self._point_at(int(others[0 if step > 0 else -1]))

    def action_edge(self, end: int) -> None:
        self._point_at(self._columns - 1 if end else 0)

    def action_narrow(self) -> None:
        """Filters the table to the rows counted under the cursor."""
        shown = self._shown()
        if shown is None or self.cursor is None:
            return
        ends = shown.ends(min(self.cursor, self._columns - 1), self._columns)
        self.post_message(Narrow(bucket_condition(self._field_of(self.table).lower(), *ends)))

    def on_click(self, event: events.Click) -> None:
        if event.y >= 1 and event.x > GUTTER:
            again = self.cursor == event.x - GUTTER - 1
            self._point_at(event.x - GUTTER - 1)
            if again:
                self.action_narrow()

    def on_blur(self) -> None:
        self._bars = None
        self.refresh()

    on_focus = on_blur

    def on_resize(self) -> None:
        self._bars = None

    # ---- drawing

    def title_text(self) -> str:
        field = self._field_of(self.table)
        return "Elapsed cycles" if field in ("", "elapsed") else field

    def figures(self) -> list[list[list[Span]]]:
        shown = self._shown()
        if shown is None:
            return [[]]
        modes: list[list[Span]] = []
        if self.accumulated:
            modes.append(self._seen(shown.now.launches))
        if self.scale_name != _SCALES[0]:
            modes.append([(self.scale_name, STRONG)])
        if shown.before is not None:
            then: list[Span] = [(self.glyphs.rule, STRONG), (" before", QUIET)]
            modes.append([*then, (f" p50 {brief(shown.before.quantiles[0])}", TEXT)])
        marks = tuple(zip(("p50", "p90", "p99"), shown.quantiles, strict=True))
        versions = [
            [
                [(name + " ", QUIET), (text(value), STRONG if name == "p50" else TEXT)]
                for name, value in marks
            ]
            for text in (short_cycles, brief)
        ]
        return [[*modes, *versions[0]], [*modes, *versions[1]], [*modes, versions[1][0]]]

    def _seen(self, launches: int) -> list[Span]:
        """How many launches are summed up, and out of how many where some were not seen."""
        frame = self.view.frame if self.view is not None else None
        there_are = max(launches, frame.launches if frame is not None else 0)
        out_of = f"/{whole(there_are)}" if there_are > launches else ""
        noun = " launch" if there_are == 1 else " launches"
        return [(whole(launches), STRONG), (out_of, TEXT), (noun, QUIET)]

    def body(self, row: int, width: int, height: int) -> list[Span]:
        shown = self._shown()
        if shown is None:
            return nothing_recorded(self.view, "start and elapsed", row, height)
        columns, bars = self._columns, height - _BELOW
        if bars < 1:
            median = f"{short_cycles(shown.quantiles[0])} {self._unit()}"
            return [(median, TEXT)] if row == 0 else []
        if row < bars:
            return self._drawing(shown, columns, bars).row(row)
        if row == height - 1 and self._cursor_column(columns) is not None:
            return self._reading(shown, columns, width)
        return (self._axis_line, self._tick_line, self._mark_line)[row - bars](shown, columns)

    def _unit(self) -> str:
        return "cycles" if self._field_of(self.table) == "elapsed" else self.title_text()

    def _cursor_column(self, columns: int) -> int | None:
        if self.cursor is None or not self.has_focus:
            return None
        return min(self.cursor, columns - 1)

    def _drawing(self, shown: _Shown, columns: int, bars: int) -> Bars:
        if self._bars is None or self._bars[0] != (columns, bars):
            line = None if shown.before is None else shown.before.counts(shown.scale, columns)
            drawn = Bars(
                shown.now.counts(shown.scale, columns),
                bars,
                self.glyphs,
                log=self.scale_name == "log counts",
                line=line,
                cursor=self._cursor_column(columns),
            )
            self._bars = ((columns, bars), drawn)
        return self._bars[1]

    def _axis_line(self, shown: _Shown, columns: int) -> list[Span]:
        cells: list[Span] = [(self.glyphs.rule, RULE)] * columns
        for value in self._ticks(shown, columns):
            cells[shown.scale.column(value, columns)] = (self.glyphs.tick, RULE)
        for _, position, style in self._marks(shown, columns):
            cells[position] = (self.glyphs.mark, style)
        return [("0".rjust(GUTTER), QUIET), (self.glyphs.corner, RULE), *cells]

    def _tick_line(self, shown: _Shown, columns: int) -> list[Span]:
        labels = [
            (short(value), shown.scale.column(value, columns), QUIET)
            for value in self._ticks(shown, columns)
        ]
        return [(" " * (GUTTER + 1), QUIET), *placed_labels(labels, columns)]

    def _mark_line(self, shown: _Shown, columns: int) -> list[Span]:
        marks = self._marks(shown, columns)
        return [(" " * (GUTTER + 1), QUIET), *placed_labels(marks, columns)]

    def _reading(self, shown: _Shown, columns: int, width: int) -> list[Span]:
        """What the bar under the cursor holds."""
        column = self._cursor_column(columns)
        assert column is not None
        low, high = shown.ends(column, columns)
        count = float(shown.now.counts(shown.scale, columns)[column])
        part: Span = (f" ({100 * count / shown.now.total:.1f}%)", TEXT)
        read: list[Span] = [(whole(count), STRONG), part]
        ends, short_ends = (
            f"below {text(high or 0.0)}" if low is None
            else f"from {text(low)}" if high is None
            else f"{text(low)}{to}{text(high)}"
            for text, to in ((_label, " to "), (brief, "-"))
        )  # fmt: skip
        versions: list[list[list[Span]]] = [
            [[(f" {ends} ", CURSOR)], read, [("enter filters", QUIET)]],
            [[(f" {ends} ", CURSOR)], read],
            [[(f" {short_ends} ", CURSOR)], read],
            [[(f" {short_ends} ", CURSOR)], read[:1]],
        ]
        return [(" ", TEXT), *roomiest(versions, width - 1)]

    def _ticks(self, shown: _Shown, columns: int) -> list[float]:
        return shown.scale.ticks(max(1, columns // 9))

    def _marks(self, shown: _Shown, columns: int) -> list[tuple[str, int, Style]]:
        marks = [
            (name, shown.column(value, columns), MARK)
            for name, value in zip(("p50", "p90", "p99"), shown.quantiles, strict=True)
        ]
        chosen = self.view.selected_value(self._field_of(self.table)) if self.view else None
        if chosen is not None and np.isfinite(chosen):
            marks.append(("this", shown.scale.column(chosen, columns), CURSOR))
        return sorted(marks, key=lambda mark: mark[1])


def _reduced(frame: Frame | None, field: str) -> Reduced | None:
    """The device's sums over every launch, where it counts this field."""
    return frame.reduced if frame is not None and field == "elapsed" else None


def short_cycles(value: float) -> str:
    """Whole numbers below ten million, shortened above; small ones to four digits."""
    if abs(value) >= 1e7 or (abs(value) < 100 and not float(value).is_integer()):
        return short(value)
    return whole(value)


def _label(value: float) -> str:
    return whole(value) if float(value).is_integer() and abs(value) < 1e9 else f"{value:.5g}"
