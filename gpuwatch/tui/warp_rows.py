"""Lines of the warp table: titles, rows, and when each warp ran within its SM's busy span."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.style import Style

from gpuwatch.analysis.timeline import SmSpans
from gpuwatch.tui.glyphs import Glyphs
from gpuwatch.tui.paint import Span
from gpuwatch.tui.record_table import Array, RecordTable
from gpuwatch.tui.theme import CURSOR, FOCUS, QUIET, RULE, STRONG, TEXT, TITLE, ramp
from gpuwatch.tui.warp_columns import Column

Line = list[Span]

GAP = 2
_TIMELINE_MIN = 12
_TIMELINE_MAX = 100
_TIMELINE_TITLES = ("within its SM's busy span", "in its SM's span", "in its span")


def table_width(columns: Sequence[Column]) -> int:
    """Cells of the cursor and all columns."""
    return 2 + sum(column.width + GAP for column in columns)


def timeline_width(table: RecordTable, columns: Sequence[Column], width: int) -> int:
    """Cells that are left for the timelines, 0 where there are too few or no times."""
    if not {"SM", "start", "elapsed"} <= table.columns.keys():
        return 0
    left = min(width - table_width(columns) - 1, _TIMELINE_MAX)
    return left if left >= _TIMELINE_MIN else 0


def title_line(columns: Sequence[Column], sort: str, direction: str, timelines: int) -> Line:
    """The titles, the one that is sorted by marked with `direction`; `timelines` are the cells
    of the timelines."""
    spans: Line = [("  ", QUIET)]
    for column in columns:
        chosen = column.title == sort
        title = column.title + (direction if chosen else "")
        spans.append((title.rjust(column.width), FOCUS + STRONG if chosen else QUIET))
        spans.append((" " * GAP, QUIET))
    if timelines:
        title = next((text for text in _TIMELINE_TITLES if len(text) <= timelines), "")
        spans.append((title, QUIET))
    return spans


def row_lines(
    table: RecordTable,
    window: Array,
    columns: Sequence[Column],
    sort: str,
    chosen: int | None,
    glyphs: Glyphs,
    spans: SmSpans | None,
    width: int,
) -> list[Line]:
    """The rows of `window`, the row `chosen` marked; timelines of `width` cells where `spans`
    are given."""
    colours = _colours(table, window)
    rows = window.tolist()
    lines: list[Line] = [[((glyphs.cursor if row == chosen else " ") + " ", TITLE)] for row in rows]
    coloured = table.measured[0] if table.measured else ""
    for column in columns:
        style = _style(column.title, sort)
        values = table.columns[column.title][window].tolist()
        for line, value, colour in zip(lines, values, colours, strict=True):
            text = column.text(value, table.grid).rjust(column.width)
            line.append((text, colour if column.title == coloured else style))
            line.append((" " * GAP, TEXT))
    if spans is not None and width:
        drawn = _timelines(table, window, spans, width, colours, glyphs)
        for line, timeline in zip(lines, drawn, strict=True):
            line += timeline
    return [
        [(text, CURSOR) for text, _ in line] if row == chosen else line
        for line, row in zip(lines, rows, strict=True)
    ]


def shifted(spans: Line, columns: int) -> Line:
    """`spans` without their first `columns` cells."""
    kept: Line = []
    for text, style in spans:
        if columns < len(text):
            kept.append((text[columns:], style))
        columns = max(0, columns - len(text))
    return kept


def _colours(table: RecordTable, window: Array) -> list[Style]:
    """From the least (blue) to the greatest (orange) of what was measured."""
    if not table.measured or len(table) == 0:
        return [TEXT] * len(window)
    values = table.columns[table.measured[0]]
    low, high = float(values.min()), float(values.max())
    parts = (values[window].astype(float) - low) / (high - low) if high > low else [0.5]
    shades = np.broadcast_to(np.nan_to_num(parts, nan=0.5), len(window))
    return [ramp(shade) for shade in shades.tolist()]


def _style(title: str, sort: str) -> Style:
    if title == sort:
        return STRONG
    return QUIET if title in ("start", "n") else TEXT


def _timelines(
    table: RecordTable,
    window: Array,
    spans: SmSpans,
    width: int,
    colours: list[Style],
    glyphs: Glyphs,
) -> list[Line]:
    sm, start, elapsed = (table.columns[name][window] for name in ("SM", "start", "elapsed"))
    parts = spans.parts(sm, start, elapsed)
    lines: list[Line] = []
    for begin, end, colour in zip(*(part.tolist() for part in parts), colours, strict=True):
        left = min(width - 1, int(begin * width))
        right = max(left + 1, min(width, round(end * width)))
        bar = glyphs.thread * (right - left)
        lines.append(
            [(glyphs.dot * left, RULE), (bar, colour), (glyphs.dot * (width - right), RULE)]
        )
    return lines
