"""Made-up maps with the names and fields of the presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.access_map import COLUMNS, PAGES
from gpuwatch.analysis.maps import (
    Buckets,
    MapFigures,
    all_figures,
    hist_buckets,
    scaled_columns,
    site_rows,
)

Lines = Mapping[int, Mapping[str, int]]


def line_map(name: str, lines: Lines, sample: int = 1, opcode: str = "op") -> MapFigures:
    """A map per line, with the figures of each line."""
    fields = next(iter(lines.values()))
    counted = {key: np.array([row[key] for row in lines.values()], np.uint64) for key in fields}
    summed = frozenset(fields if sample > 1 else ())
    columns = scaled_columns(counted, sample, summed)
    labels = [(line, opcode, "") for line in lines]
    rows = site_rows(np.arange(len(lines)), columns, labels)
    return MapFigures(
        name=name, level="line", kind="reduce", slots=len(lines), records=len(lines), empty=0,
        missing=0, dropped=0, sample=sample, fields=all_figures(columns, sample, (), summed),
        slot=np.arange(len(lines)), columns=columns, sites=rows, scale=float(sample), summed=summed,
    )  # fmt: skip


def _bucket_map(name: str, buckets: Buckets, sample: int) -> MapFigures:
    return MapFigures(
        name=name, level="kernel", kind="hist", slots=1, records=1, empty=0, missing=0,
        dropped=0, sample=sample, fields=(), slot=np.arange(1), columns={}, buckets=buckets,
    )  # fmt: skip


def hist_map(name: str, counts: Sequence[int], sample: int = 1) -> MapFigures:
    """Buckets of powers of two."""
    edges = np.array([0, *(2.0**k for k in range(len(counts)))])
    return _bucket_map(name, hist_buckets(np.array([counts], np.uint64), edges, sample), sample)


def cells_map(cells: Mapping[tuple[int, int], int], sample: int = 1) -> MapFigures:
    """A map of dmat with accesses at some (page, column)."""
    counts = np.zeros((PAGES, COLUMNS), np.int64)
    for place, count in cells.items():
        counts[place] = count
    return counts_map(counts, sample)


def counts_map(counts: NDArray[np.int64], sample: int = 1) -> MapFigures:
    edges = np.arange(PAGES * COLUMNS + 1.0)
    return _bucket_map("page_by_time", Buckets(counts.reshape(-1), edges), sample)
