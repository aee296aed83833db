"""Figures of source lines, summed over the probed instructions that come from each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.analysis.maps import MapFigures, Number


@dataclass(frozen=True, slots=True)
class LineFigures:
    """`values[line][k]` is field k's sum at that line; `totals[k]` that over all lines."""

    fields: tuple[str, ...]
    values: dict[int, tuple[Number, ...]]
    totals: tuple[Number, ...]

    def share(self, line: int) -> float:
        """The line's part of the first field, 0..1."""
        total = self.totals[0] if self.totals else 0
        return float(self.values[line][0] / total) if total and line in self.values else 0.0


def line_figures(maps: Sequence[MapFigures]) -> LineFigures | None:
    """Of the first map with sites; None where there is none, as with probes of whole kernels."""
    sited = next((figures for figures in maps if figures.sites), None)
    if sited is None:
        return None
    fields = tuple(sited.sites[0].values)
    values: dict[int, tuple[Number, ...]] = {}
    for row in sited.sites:
        mine = tuple(row.values[field] for field in fields)
        before = values.get(row.source_line, (0,) * len(fields))
        values[row.source_line] = tuple(a + b for a, b in zip(before, mine, strict=True))
    totals = tuple(sum(column) for column in zip(*values.values(), strict=True))
    return LineFigures(fields, values, totals)
