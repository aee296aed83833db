"""The columns of the warp table: where a value comes from and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.warps import WarpColumns
from gpuwatch.engine.frame import Frame
from gpuwatch.tui.glyphs import Dim3, place, whole

_WIDEST = 20


@dataclass(frozen=True, slots=True)
class Column:
    """`values` picks the array to sort by; `text` writes one of its values."""

    title: str
    values: Callable[[WarpColumns], NDArray[Any]]
    text: Callable[[Any, Dim3], str]
    width: int


def _plain(value: Any, _grid: Dim3) -> str:
    return str(int(value))


def _grouped(value: Any, _grid: Dim3) -> str:
    return whole(value)


def _average(value: Any, _grid: Dim3) -> str:
    return "-" if np.isnan(value) else f"{float(value):,.0f}"


def _sm(value: Any, _grid: Dim3) -> str:
    return "-" if value < 0 else str(int(value))


def _block(value: Any, grid: Dim3) -> str:
    return place(int(value), grid)


def _field(value: Any, _grid: Dim3) -> str:
    return f"{float(value):,.4g}" if np.asarray(value).dtype.kind == "f" else whole(int(value))


_FIXED: tuple[tuple[str, Callable[[WarpColumns], NDArray[Any]], Callable[[Any, Dim3], str]], ...]
_FIXED = (
    ("warp", lambda table: table.warp, _plain),
    ("block", lambda table: table.block, _block),
    ("SM", lambda table: table.sm, _sm),
    ("start", lambda table: table.start, _plain),
    ("elapsed", lambda table: table.elapsed, _grouped),
    ("avg", lambda table: table.average, _average),
    ("n", lambda table: table.count, _grouped),
)

DEFAULT_SORT = "elapsed"


def columns_of(frame: Frame, previous: tuple[Column, ...] = ()) -> tuple[Column, ...]:
    """The table's columns, the probe's own fields last.

    Widths hold the widest value of `frame` and never shrink below those of `previous`, so the
    columns stand still while values change.
    """
    table = frame.warps_table
    assert table is not None
    before = {column.title: column.width for column in previous}
    fields = tuple((name, _picker(name), _field) for name in table.fields)
    return tuple(
        Column(title, values, text, max(before.get(title, 0), _width(title, values, text, frame)))
        for title, values, text in _FIXED + fields
    )


def _picker(name: str) -> Callable[[WarpColumns], NDArray[Any]]:
    return lambda table: table.fields[name]


def _width(
    title: str,
    values: Callable[[WarpColumns], NDArray[Any]],
    text: Callable[[Any, Dim3], str],
    frame: Frame,
) -> int:
    table = frame.warps_table
    assert table is not None
    if text is _block:
        last = tuple(max(0, size - 1) for size in frame.grid)
        index = last[0] + frame.grid[0] * (last[1] + frame.grid[1] * last[2])
        return max(len(title) + 1, len(place(index, frame.grid)))
    array = values(table)
    ends = (array.min(), array.max()) if len(array) else ()
    return min(_WIDEST, max(len(title) + 1, *(len(text(end, frame.grid)) for end in ends), 3))
