"""The maps of a probe that records no start and elapsed: its own view, totals, lines, buckets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpuwatch.analysis.access_map import access_map, is_access_map
from gpuwatch.analysis.maps import Buckets, MapFigures
from gpuwatch.analysis.summary import Section, sections_of
from gpuwatch.analysis.warps import is_timed
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.report_maps import row_texts, totals_texts
from gpuwatch.tui.comparison import Baseline
from gpuwatch.tui.glyphs import ASCII, Glyphs, bar, short, whole
from gpuwatch.tui.heat_map import heat_lines
from gpuwatch.tui.paint import Span
from gpuwatch.tui.pane import Drawing, View, nothing_recorded
from gpuwatch.tui.summary_lines import summary_lines
from gpuwatch.tui.theme import QUIET, STRONG, TEXT, TITLE, WRONG, ramp

Line = list[Span]


@dataclass(frozen=True, slots=True)
class Widths:
    """Cells of a name and of a figure."""

    name: int
    figure: int

    @staticmethod
    def of(columns: int) -> Widths:
        return Widths(20, 16) if columns >= _ROOMY else Widths(10, 12)

    def cells(
        self, name: str, figures: Sequence[str], of_name: Style, of_figures: Style
    ) -> list[Span]:
        """A line of a name and figures, with the styles of both."""
        line: list[Span] = [(f"   {name:<{self.name}}", of_name)]
        line += [(f" {text:>{self.figure - 1}}", of_figures) for text in figures]
        return line


_MOST_ROWS = 1000
"""Rows of one map that are listed; what is left out is counted."""
_ROOMY = 90
"""Columns from which names and figures get their full width."""


class MapsPane(Drawing, ScrollView):
    """All maps but those that the warp table shows, one below the other."""

    can_focus = True
    DEFAULT_CSS = "MapsPane { height: 1fr; width: 1fr; scrollbar-size-horizontal: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", show=False),
        Binding("down", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
    ]

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(id=name)
        self.glyphs = glyphs
        self._lines: list[Line] = []
        self._frame: Frame | None = None
        """The frame whose maps `_lines` show, with `_look`."""
        self._look: tuple[object, ...] = ()
        self._baseline: Baseline | None = None
        self._former: tuple[Section, ...] = ()
        """Of `_baseline`."""

    def show(self, view: View) -> None:
        """Takes over `view` and redraws."""
        self.view = view
        self._fill()

    def on_resize(self) -> None:
        """Also when the pane comes into view, which fills it only now."""
        self._fill()

    def _fill(self) -> None:
        if self.view is None or not self.display:
            return
        view = self.view
        look = (view.baseline, view.table is not None and view.table.map, self.size, self._colours)
        if view.frame is not self._frame or look != self._look:
            self._frame, self._look = view.frame, look
            self._lines = list(self._all_lines(view))
        self.virtual_size = Size(self.size.width, len(self._lines) + 1)
        self.refresh()

    @property
    def _colours(self) -> bool:
        """Whether cells can be told apart by colours."""
        drawn = self.glyphs is not ASCII and not self.app.no_color and not self.stale
        return drawn and self.app.console.color_system in ("256", "truecolor")

    def _all_lines(self, view: View) -> Iterable[Line]:
        """Pictures of what has its own, what the preset's figures say, then all records."""
        frame = view.frame
        if frame is None:
            return
        width, height = self.size.width - self.scrollbar_size_vertical, self.size.height
        modelled = frame.device.modelled
        others = []
        for one in shown_maps(frame):
            found = access_map(one) if is_access_map(one) else None
            if found is None:
                others.append(one)
                continue
            yield from heat_lines(
                found, self.glyphs, width, height - 1, modelled=modelled, colours=self._colours
            )
        sections, former = sections_of(frame.maps), self._sections_before(view.baseline)
        yield from summary_lines(sections, former, self.glyphs, width, modelled=modelled)
        in_table = view.table.map if view.table is not None else ""
        yield from map_lines(others, self.glyphs, Widths.of(width), in_table)

    def _sections_before(self, baseline: Baseline | None) -> tuple[Section, ...]:
        """Those of the baseline, found once."""
        if baseline is not self._baseline:
            self._baseline = baseline
            self._former = sections_of(baseline.frame.maps) if baseline is not None else ()
        return self._former

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self.draw(self, self.title_rule(self, "Maps", self._counts()))
        if not self._lines:
            return self.draw(self, nothing_recorded(self.view, "map", y - 1, self.size.height - 1))
        row = int(self.scroll_offset.y) + y - 1
        return self.draw(self, self._lines[row] if row < len(self._lines) else [])

    def _counts(self) -> list[Line]:
        frame = self.view.frame if self.view is not None else None
        return [
            [(f"{name} ", QUIET), (whole(count), WRONG if count and name != "records" else TEXT)]
            for name, count in (
                ("records", frame.records if frame else 0),
                ("missing", frame.missing if frame else 0),
                ("dropped", frame.dropped if frame else 0),
            )
        ]


def shown_maps(frame: Frame | None) -> tuple[MapFigures, ...]:
    """The maps whose records the warp table does not show."""
    maps = frame.maps if frame is not None else ()
    return tuple(one for one in maps if not is_timed(tuple(one.columns)))


def map_lines(
    maps: Iterable[MapFigures], glyphs: Glyphs, widths: Widths, in_table: str = ""
) -> Iterable[Line]:
    """Lines of all maps, a blank one between two; the rows of the map `in_table` are left out,
    because the table shows them."""
    for number, figures in enumerate(maps):
        if number:
            yield []
        yield _heading(figures)
        if figures.buckets is not None:
            yield from _bucket_lines(figures, figures.buckets, glyphs, widths)
            continue
        yield from _total_lines(figures, widths)
        if figures.sites:
            yield from _site_lines(figures, glyphs, widths)
        elif len(figures.slot) > 1 and figures.name != in_table:
            yield from _row_lines(figures, widths)


def _heading(figures: MapFigures) -> Line:
    line: Line = [
        (" " + figures.name, TITLE),
        (f"  {figures.kind} per {figures.level}", QUIET),
    ]
    if figures.kind == "array":
        line.append((f"  {whole(figures.records)}", TEXT))
        line.append((f" records in {whole(figures.slots)} slots", QUIET))
    if figures.dropped:
        line.append((f"  {whole(figures.dropped)} dropped", WRONG))
    if figures.sample > 1:
        line.append((f"  1 in {figures.sample} sampled, totals estimated", STRONG))
    return line


def _total_lines(figures: MapFigures, widths: Widths) -> Iterable[Line]:
    if not figures.fields:
        yield [("   nothing was saved", QUIET)]
        return
    yield widths.cells("field", ("total", "mean", "min", "max"), QUIET, QUIET)
    for one in figures.fields:
        yield widths.cells(one.name, totals_texts(figures, one), TEXT, STRONG)


def _row_lines(figures: MapFigures, widths: Widths) -> Iterable[Line]:
    yield widths.cells(figures.level, tuple(figures.columns), QUIET, QUIET)
    for row in range(min(len(figures.slot), _MOST_ROWS)):
        values = ((name, column[row].item()) for name, column in figures.columns.items())
        yield widths.cells(str(int(figures.slot[row])), row_texts(figures, values), QUIET, TEXT)
    if len(figures.slot) > _MOST_ROWS:
        yield [(f"   and {whole(len(figures.slot) - _MOST_ROWS)} more", QUIET)]


def _site_lines(figures: MapFigures, glyphs: Glyphs, widths: Widths) -> Iterable[Line]:
    """A bar for the first field, largest of all sites full."""
    yield widths.cells("line", tuple(figures.columns), QUIET, QUIET)
    first = next(iter(figures.columns))
    most = max((float(row.values[first]) for row in figures.sites), default=0.0)
    for row in figures.sites:
        part = float(row.values[first]) / most if most > 0 else 0.0
        where = row.opcode + (f" in {row.function}" if row.function else "")
        values = row_texts(figures, row.values.items())
        line = widths.cells(str(row.source_line or "-"), values, QUIET, TEXT)
        yield [
            *line,
            ("  ", TEXT),
            (bar(part, 10, glyphs.across), ramp(part)),
            (" " + where, QUIET),
        ]


def _bucket_lines(
    figures: MapFigures, buckets: Buckets, glyphs: Glyphs, widths: Widths
) -> Iterable[Line]:
    used = [place for place, count in enumerate(buckets.counts.tolist()) if count]
    if not used:
        yield [("   nothing was saved", QUIET)]
        return
    most = int(buckets.counts.max())
    for place in range(used[0], used[-1] + 1):
        count = int(buckets.counts[place])
        shown = ("~" if figures.sample > 1 else "") + whole(count)
        low, high = buckets.edges[place], buckets.edges[place + 1]
        yield [
            (f"   {short(float(low)):>8} .. {short(float(high)):<8}", QUIET),
            (f"{shown:>{widths.figure}}  ", TEXT),
            (bar(count / most, 30, glyphs.across), ramp(count / most)),
        ]
