"""Source lines in a report: their figures, and where the machine code differs from the PTX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpuwatch.analysis.metrics import lines_of
from gpuwatch.analysis.summary import Section, place_text, sections_of
from gpuwatch.engine.frame import Frame, MarkedLine

_MOST_TEXT = 60
"""Columns of a source line's text."""
_MIX = (("by warps", "warp_instructions"), ("by threads", "thread_instructions"), ("FLOP", "flop"))


def as_json(frame: Frame) -> list[dict[str, Any]]:
    """The figures of each line, with `marked` where the machine code differs; a line that has
    accesses in the machine code alone has no figures."""
    rows: dict[tuple[int, str], dict[str, Any]] = {
        (one["line"], one["function"]): dict(one)  # type: ignore[misc]
        for one in lines_of(frame.maps)
    }
    for one in seen(frame):
        row = rows.setdefault(
            (one.line, one.function), {"line": one.line, "function": one.function}
        )
        row["marked"] = "; ".join(filter(None, (row.get("marked", ""), one.reason)))
    return [rows[place] for place in sorted(rows)]


def seen(frame: Frame) -> list[MarkedLine]:
    """The marked lines but for those whose accesses a probe would have seen, had they run."""
    ran = {
        (figures.name, row.source_line, row.function)
        for figures in frame.maps
        for row in figures.sites
    }
    return [one for one in frame.marked if one.unseen or (one.map, one.line, one.function) in ran]


def render_marked(frame: Frame, console: Console) -> None:
    """Prints the marked lines, nothing where there are none."""
    found = seen(frame)
    if not found:
        return
    console.print()
    console.print("Machine code differs from PTX, so hardware counters may differ:", style="bold")
    for one in found:
        console.print(f"  {place_text(one.line, one.function)}: {one.reason}", markup=False)


def render_lines(frame: Frame, console: Console) -> None:
    """Prints every line that has figures, with its text where the source is there."""
    texts = _texts(frame.source)
    for section in sections_of(frame.maps, most=None):
        if section.parts_are == "line":
            console.print()
            console.print(_table(section, texts))
    mixed = [line for line in lines_of(frame.maps) if "warp_instructions" in line]
    if mixed:
        console.print()
        console.print(_mix_table(mixed, texts))


def _table(section: Section, texts: Sequence[str]) -> Table:
    table = Table(title=f"{section.title} per line", title_justify="left", box=None)
    table.add_column("line")
    for column in section.columns:
        table.add_column(column.title, justify="right")
    table.add_column("source", no_wrap=True)
    for row in section.parts:
        cells = (
            column.text(value, estimated=row.estimated)
            for column, value in zip(section.columns, row.values, strict=True)
        )
        table.add_row(row.name, *cells, _text(texts, row.line, row.function))
    return table


def _mix_table(lines: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> Table:
    table = Table(title="Instructions (PTX) per line", title_justify="left", box=None)
    table.add_column("line")
    for title, _ in _MIX:
        table.add_column(title, justify="right")
    table.add_column("source", no_wrap=True)
    for one in lines:
        cells = (f"{one[key]:,.0f}" for _, key in _MIX)
        at = one["line"], one["function"]
        table.add_row(place_text(*at), *cells, _text(texts, *at))
    return table


def _text(texts: Sequence[str], line: int, function: str) -> Text:
    """What stands at a line of the kernel; a called function may be in another file."""
    known = 0 < line <= len(texts) and not function
    return Text(texts[line - 1].strip()[:_MOST_TEXT] if known else "")


def _texts(source: str) -> list[str]:
    path = Path(source)
    if path.suffix != ".cu" or not path.is_file():
        return []
    return path.read_text(errors="replace").splitlines()
