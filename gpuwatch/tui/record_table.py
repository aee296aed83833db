"""The table of a frame: its warps, or else the records of a map without times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.maps import MapFigures
from gpuwatch.analysis.warps import SM_FIELDS, WarpColumns
from gpuwatch.engine.frame import Dim3, Frame

Array = NDArray[Any]

DELTA = "delta"
"""Title of the column that says how far a row is from the baseline, in per cent."""

_LEVELS = ("warp", "thread", "block")
_RECORD_BITS = 24
"""Of an identity: which record of its slot a row is."""
_NAMES = ("warp", "thread", "block", "SM", "record")
"""Columns that say which row it is, and not what was measured."""


@dataclass(slots=True)
class RecordTable:
    """Rows of one launch. `columns` are equally long arrays by title, the probe's own fields
    last. `ids` ascend and stand for the same warp, thread or block at every launch. `expected`
    is how many rows there are when nothing is missing."""

    unit: str
    """One of warp, thread and block."""
    columns: dict[str, Array]
    ids: NDArray[np.int64]
    expected: int
    grid: Dim3
    map: str = ""
    """The map that it is the records of, "" for warps with times."""
    block: Dim3 = (1, 1, 1)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def shape(self) -> tuple[Dim3, Dim3, str]:
        """Tables of one shape have the same rows: grid, block, map."""
        return self.grid, self.block, self.map

    @property
    def measured(self) -> tuple[str, ...]:
        """Columns whose values a histogram can show, the most telling first."""
        others = tuple(
            name for name in self.columns if name not in (*_NAMES, "start", "n", "avg", DELTA)
        )
        return (*others, *(("avg",) if "avg" in self.columns else ()))

    def by_lower_name(self) -> dict[str, Array]:
        """The columns as a filter names them."""
        return {title.lower(): values for title, values in self.columns.items()}

    def row_of(self, identity: int | None) -> int | None:
        """The row of an identity, None if it left no record."""
        if identity is None or len(self.ids) == 0:
            return None
        row = int(np.searchsorted(self.ids, identity))
        return row if row < len(self.ids) and self.ids[row] == identity else None


def table_of(frame: Frame | None) -> RecordTable | None:
    """The table of `frame`, None when its probe records nothing of warps, threads or blocks."""
    if frame is None:
        return None
    if frame.warps_table is not None:
        return _of_warps(frame, frame.warps_table)
    for figures in frame.maps:
        if figures.level in _LEVELS and figures.kind != "hist" and figures.columns:
            return _of_map(frame, figures)
    return None


def _of_warps(frame: Frame, warps: WarpColumns) -> RecordTable:
    columns: dict[str, Array] = {
        "warp": warps.warp,
        "block": warps.block,
        "SM": warps.sm,
        "start": warps.start,
        "elapsed": warps.elapsed,
        "avg": warps.average,
        "n": warps.count,
    }
    _add_fields(columns, warps.fields.items())
    return RecordTable("warp", columns, warps.warp, frame.warps, frame.grid, "", frame.block)


def _of_map(frame: Frame, figures: MapFigures) -> RecordTable:
    slot = figures.slot
    columns: dict[str, Array] = {figures.level: slot}
    threads = frame.block[0] * frame.block[1] * frame.block[2]
    if figures.level == "thread":
        columns["block"] = slot // threads
    elif figures.level == "warp":
        columns["block"] = slot // -(-threads // 32)
    fields = dict(figures.columns)
    sm = next((name for name in SM_FIELDS if name in fields), None)
    if sm is not None:
        columns["SM"] = fields.pop(sm)
    ids = slot
    nth = _nth_of_slot(slot)
    if len(nth) and nth.max() > 0:
        columns["record"] = nth
        ids = (slot << _RECORD_BITS) + nth
    _add_fields(columns, fields.items())
    expected = max(figures.slots, len(slot))
    return RecordTable(figures.level, columns, ids, expected, frame.grid, figures.name, frame.block)


def _nth_of_slot(slot: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which record of its slot, from 0, each row is; `slot` ascends."""
    place = np.arange(len(slot))
    first = np.ones(len(slot), bool)
    first[1:] = slot[1:] != slot[:-1]
    nth: NDArray[np.int64] = place - np.maximum.accumulate(np.where(first, place, 0))
    return nth


def _add_fields(columns: dict[str, Array], fields: Iterable[tuple[str, Array]]) -> None:
    """Fields under their own names; one that is taken, but for its case, ends in "_"."""
    taken = {title.lower() for title in columns}
    for name, values in fields:
        title = name
        while title.lower() in taken:
            title += "_"
        taken.add(title.lower())
        columns[title] = values
