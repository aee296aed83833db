"""What any map says after a launch: figures of each field, its rows, its buckets."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Number = int | float


@dataclass(frozen=True, slots=True)
class FieldFigures:
    """Of one field over the records of a launch. `total` of whole numbers is exact; where a map is
    sampled it is an estimate, the records' sum times what a record stands for. It is None where
    records hold greatest or least values, which do not add up."""

    name: str
    total: Number | None
    least: Number
    greatest: Number
    mean: float


@dataclass(frozen=True, slots=True)
class Buckets:
    """Bucket k counts the values from `edges[k]` up to `edges[k + 1]`; (n,) and (n + 1,)."""

    counts: NDArray[np.int64]
    edges: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SiteRow:
    """One probed instruction and what was saved there, by field."""

    source_line: int
    opcode: str
    function: str
    values: dict[str, Number]
    mix: tuple[tuple[str, int], ...] = ()
    """Of a basic block: how many instructions of each class it has, and "flop"."""
    lines: tuple[tuple[int, str, int], ...] = ()
    """The same by source line: (line, class, number)."""


@dataclass(slots=True)
class MapFigures:
    """`records` were saved in `slots` slots, of which `empty` saved nothing: so many are
    `missing` where every slot must save. `sample` is 1, or one in so many warps, blocks or
    threads saves; a record then stands for `scale` of them. What the sampled ones add up together
    is scaled everywhere: totals, buckets, and the fields `summed` of every row."""

    name: str
    level: str
    kind: str
    slots: int
    records: int
    empty: int
    missing: int
    dropped: int
    sample: int
    fields: tuple[FieldFigures, ...]
    slot: NDArray[np.int64]
    """Slot of each row of `columns`."""
    columns: dict[str, NDArray[np.generic]]
    buckets: Buckets | None = None
    sites: tuple[SiteRow, ...] = ()
    scale: float = 1.0
    summed: frozenset[str] = frozenset()


def field_figures(
    name: str, values: NDArray[np.generic], scale: float = 1, *, adds_up: bool = True
) -> FieldFigures | None:
    """None for no values."""
    if len(values) == 0:
        return None
    whole = values.dtype.kind in "iu"
    total: Number = int(values.sum()) if whole else float(np.sum(values, dtype=np.float64))
    if whole and values.dtype.itemsize == 8:
        total = _exact_sum(values)
    low, high = values.min(), values.max()
    return FieldFigures(
        name,
        scaled(total, scale) if adds_up else None,
        int(low) if whole else float(low),
        int(high) if whole else float(high),
        float(total / len(values)),
    )


def _exact_sum(values: NDArray[np.generic]) -> int:
    """Sum of 64-bit integers beyond 64 bits: of their upper and lower halves apart."""
    unsigned = values.view(np.uint64)
    low = int((unsigned & np.uint64(0xFFFFFFFF)).sum())
    high = int((unsigned >> np.uint64(32)).sum())
    total = (high << 32) + low
    negative = int((values.view(np.int64) < 0).sum()) if values.dtype.kind == "i" else 0
    return total - (negative << 64)


def columns_of(records: NDArray[np.void]) -> dict[str, NDArray[np.generic]]:
    """Each field of structured records as an array of its own."""
    return {name: np.ascontiguousarray(records[name]) for name in records.dtype.names or ()}


def scaled(total: Number, scale: float) -> Number:
    """What a sum of records that stand for `scale` each is an estimate of."""
    if scale == 1:
        return total
    return round(total * scale) if isinstance(total, int) else total * scale


def scaled_columns(
    columns: Mapping[str, NDArray[np.generic]], scale: float, summed: Container[str]
) -> dict[str, NDArray[np.generic]]:
    """The columns, those of the fields `summed` as estimates for all that was not sampled."""
    if scale == 1:
        return dict(columns)
    return {
        name: _scaled_column(values, scale) if name in summed else values
        for name, values in columns.items()
    }


def _scaled_column(values: NDArray[np.generic], scale: float) -> NDArray[np.generic]:
    if values.dtype.kind not in "iu":
        return values.astype(np.float64) * scale
    wide = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64)
    if scale == int(scale):
        return wide * wide.dtype.type(scale)
    rounded: NDArray[np.generic] = np.rint(wide * scale).astype(wide.dtype)
    return rounded


def all_figures(
    columns: Mapping[str, NDArray[np.generic]],
    scale: float = 1,
    extremes: Container[str] = (),
    summed: Container[str] = (),
) -> tuple[FieldFigures, ...]:
    """The figures of every field that has values; those of `extremes` do not add up, and those
    of `summed` are scaled already."""
    found = (
        field_figures(name, values, 1 if name in summed else scale, adds_up=name not in extremes)
        for name, values in columns.items()
    )
    return tuple(figures for figures in found if figures is not None)


def hist_buckets(
    counts: NDArray[np.uint64], edges: NDArray[np.float64], scale: float = 1
) -> Buckets:
    """Buckets of a histogram map from the counts of all its slots, (slots, buckets), and the
    buckets + 1 edges between them; the first and last bucket also count what lies beyond."""
    total = counts.reshape(-1, counts.shape[-1]).sum(axis=0).astype(np.int64)
    if scale != 1:
        total = np.rint(total * scale).astype(np.int64)
    return Buckets(total, edges)


def site_rows(
    slots: NDArray[np.int64],
    columns: Mapping[str, NDArray[np.generic]],
    labels: Sequence[tuple[int, str, str]],
    mixes: Sequence[tuple[tuple[tuple[str, int], ...], tuple[tuple[int, str, int], ...]]] = (),
) -> tuple[SiteRow, ...]:
    """One row per record; `labels` are (source line, opcode, function) of each site, `mixes` what
    the basic blocks there are made of, in all and by source line."""
    rows = []
    for place, slot in enumerate(slots.tolist()):
        values = {name: column[place].item() for name, column in columns.items()}
        line, opcode, function = labels[slot]
        mix, lines = mixes[slot] if mixes else ((), ())
        rows.append(SiteRow(line, opcode, function, values, mix, lines))
    return tuple(sorted(rows, key=lambda row: row.source_line))
