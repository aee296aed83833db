"""Figures of source lines, summed over the probed instructions that come from each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.analysis.maps import MapFigures, Number


@dataclass(frozen=True, slots=True)
class LineFigures:
    """`values[line][k]` is field k's sum at that line over `maps`; `totals[k]` that over all
    lines."""

    maps: tuple[str, ...]
    fields: tuple[str, ...]
    values: dict[int, tuple[Number, ...]]
    totals: tuple[Number, ...]
    estimated: bool = False
    """Whether the maps are sampled, so that these are sums for all."""

    def share(self, line: int) -> float:
        """The line's part of the first field, 0..1."""
        total = self.totals[0] if self.totals else 0
        return float(self.values[line][0] / total) if total and line in self.values else 0.0


def line_figures(maps: Sequence[MapFigures]) -> LineFigures | None:
    """Of the first map with sites and all that have the same fields, as loads and stores do; None
    where there is none, as with probes of whole kernels."""
    sited = [figures for figures in maps if figures.sites]
    if not sited:
        return None
    fields = tuple(sited[0].sites[0].values)
    alike = [figures for figures in sited if tuple(figures.sites[0].values) == fields]
    values: dict[int, tuple[Number, ...]] = {}
    for row in (row for figures in alike for row in figures.sites):
        mine = tuple(row.values[field] for field in fields)
        before = values.get(row.source_line, (0,) * len(fields))
        values[row.source_line] = tuple(a + b for a, b in zip(before, mine, strict=True))
    totals = tuple(sum(column) for column in zip(*values.values(), strict=True))
    estimated = any(figures.summed for figures in alike)
    names = tuple(figures.name for figures in alike)
    return LineFigures(names, fields, values, totals, estimated)
