"""How the columns of the warp table are written, and how wide they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpuwatch.engine.frame import Dim3
from gpuwatch.tui.glyphs import place, whole
from gpuwatch.tui.record_table import DELTA, Array, RecordTable

_WIDEST = 20
_LEAST = 3

Value = int | float
Writer = Callable[[Value, Dim3], str]


@dataclass(frozen=True, slots=True)
class Column:
    """`text` writes one value of the table's column `title`."""

    title: str
    text: Writer
    width: int


def _plain(value: Value, _grid: Dim3) -> str:
    return str(int(value))


def _figure(value: Value, _grid: Dim3) -> str:
    return whole(value) if isinstance(value, int) else f"{value:,.4g}"


def _average(value: Value, _grid: Dim3) -> str:
    return f"{value:,.0f}"


def _sm(value: Value, _grid: Dim3) -> str:
    return "-" if value < 0 else str(int(value))


def _per_cent(value: Value, _grid: Dim3) -> str:
    return "-" if value != value else f"{value:+.1f}%"


def _block(value: Value, grid: Dim3) -> str:
    return place(int(value), grid)


_WRITERS: dict[str, Writer] = {
    "warp": _plain,
    "thread": _plain,
    "block": _block,
    "SM": _sm,
    "start": _plain,
    "avg": _average,
    DELTA: _per_cent,
}


def columns_of(table: RecordTable, previous: tuple[Column, ...] = ()) -> tuple[Column, ...]:
    """How to show each column of `table`.

    Widths hold the widest value and never shrink below those of `previous`, so the columns
    stand still while values change.
    """
    before = {column.title: column.width for column in previous}
    columns = []
    for title, values in table.columns.items():
        text = _WRITERS.get(title, _figure)
        width = max(before.get(title, 0), _width(title, values, text, table.grid))
        columns.append(Column(title, text, width))
    return tuple(columns)


def _width(title: str, values: Array, text: Writer, grid: Dim3) -> int:
    if text is _block:
        texts = [place(grid[0] * grid[1] * grid[2] - 1, grid)]
    elif len(values) == 0:
        texts = []
    elif text is _per_cent:
        texts = ["+1000.0%"]
    elif values.dtype.kind == "f" and text is _figure:
        texts = ["-1.234e+05"]
    else:
        texts = [text(end.item(), grid) for end in (values.min(), values.max())]
    return min(_WIDEST, max(len(title) + 1, _LEAST, *map(len, texts)))


def default_sort(table: RecordTable) -> str:
    """The column that a table is sorted by at first: what was measured, if anything was."""
    return next(iter(table.measured), next(iter(table.columns)))


def starts_descending(title: str) -> bool:
    """Largest first for figures, smallest first for names."""
    return title not in ("warp", "thread", "block", "SM", "start", "record")
