"""Figures with a name of their own out of the maps of the presets: traffic, conflicts, mix, waits.

A map is known by its name and fields (those of the files in `probes/`), so a copied preset that
keeps them has the same figures. Totals of a sampled map are estimates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuwatch.analysis.maps import Buckets, MapFigures, Number, SiteRow

SECTOR_BYTES = 32
WAVEFRONT_BYTES = 128
PERCENTILES = (50, 90, 99)
Metrics = dict[str, Number | dict[str, Number]]
Sums = Mapping[str, Number]
"""Totals of the fields of a map, over the launch or over a source line."""


def metrics_of(maps: Iterable[MapFigures]) -> Metrics:
    """The figures of a launch by name; only those that its maps have."""
    result: Metrics = {}
    for figures in maps:
        formula = _formula_of(figures)
        if formula is not None:
            sums = {one.name: one.total for one in figures.fields if one.total is not None}
            result |= formula.metrics(sums)
        if _is_mix(figures):
            result |= _mix(figures.sites)
        if figures.name == "load_latency" and figures.buckets is not None:
            result["load_latency"] = _bounds(figures.buckets)
    return result | _intensity(result)


def lines_of(maps: Sequence[MapFigures]) -> list[Metrics]:
    """The same per source line, in order of lines; "line" and "function" say which."""
    found: dict[tuple[int, str], Metrics] = {}
    for figures in maps:
        rows: dict[tuple[int, str], list[SiteRow]] = defaultdict(list)
        for row in figures.sites:
            for one in _by_line(row):
                rows[one.source_line, one.function].append(one)
        metrics = _line_metrics(figures)
        for place, of_line in rows.items():
            own = found.setdefault(place, {"line": place[0], "function": place[1]})  # type: ignore[dict-item]
            own |= metrics(of_line)
    return [found[place] for place in sorted(found)]


def _by_line(row: SiteRow) -> Iterator[SiteRow]:
    """A basic block as one row for each source line of its instructions."""
    if not row.lines:
        yield row
    mixes: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for line, name, number in row.lines:
        mixes[line or row.source_line].append((name, number))
    for line, mix in mixes.items():
        yield replace(row, source_line=line, mix=tuple(mix), lines=())


def _line_metrics(figures: MapFigures) -> Callable[[Sequence[SiteRow]], Metrics]:
    """What tells the figures of a line from its rows in this map."""
    if _is_mix(figures):
        return _mix
    formula = _formula_of(figures)
    return (lambda rows: formula.metrics(_sums(rows))) if formula is not None else lambda _: {}


def _sums(rows: Iterable[SiteRow]) -> Sums:
    sums: dict[str, Number] = defaultdict(int)
    for row in rows:
        for name, value in row.values.items():
            sums[name] += value
    return sums


def percentiles(buckets: Buckets) -> dict[str, tuple[Number, Number]]:
    """The bucket, from and to below, that each percentile of a histogram lies in; {} for none.
    In the last bucket it may also lie beyond."""
    total = int(buckets.counts.sum())
    if not total:
        return {}
    ends = np.cumsum(buckets.counts)
    result: dict[str, tuple[Number, Number]] = {}
    for percent in PERCENTILES:
        place = int(np.searchsorted(ends, total * percent / 100))
        result[f"p{percent}"] = float(buckets.edges[place]), float(buckets.edges[place + 1])
    return result


def _bounds(buckets: Buckets) -> dict[str, Number]:
    """`p50` is the end of the bucket that the percentile lies in, `p50_from` its beginning."""
    found = percentiles(buckets)
    return {name: below for name, (_, below) in found.items()} | {
        f"{name}_from": least for name, (least, _) in found.items()
    }


def ratio(part: Number, whole: Number) -> float:
    """`part` / `whole`; 0 of nothing."""
    return float(part / whole) if whole else 0.0


def _traffic(what: str) -> Callable[[Sums], Metrics]:
    def metrics(sums: Sums) -> Metrics:
        return {
            f"{what}_requests": sums["requests"],
            f"{what}_sectors": sums["sectors"],
            f"{what}_bytes": sums["sectors"] * SECTOR_BYTES,
            f"{what}_bytes_asked": sums["bytes"],
            f"{what}_efficiency": ratio(sums["bytes"], sums["sectors"] * SECTOR_BYTES),
        }

    return metrics


def _conflicts(what: str) -> Callable[[Sums], Metrics]:
    def metrics(sums: Sums) -> Metrics:
        least = max(sums["requests"], -(-sums["bytes"] // WAVEFRONT_BYTES))
        return {
            f"{what}_requests": sums["requests"],
            f"{what}_conflicts": sums["conflicts"],
            f"{what}_bytes_asked": sums["bytes"],
            f"{what}_conflicts_mean": ratio(sums["conflicts"], sums["requests"]),
            f"{what}_conflict_share": ratio(sums["conflicts"], least + sums["conflicts"]),
        }

    return metrics


def _branches(sums: Sums) -> Metrics:
    executed = sums["executed"]
    return {
        "branches": executed,
        "branches_split": sums["split"],
        "branch_efficiency": ratio(executed - sums["split"], executed),
        "active_lanes_mean": ratio(sums["lanes"], executed),
        "taken_share": ratio(sums["taken"], sums["lanes"]),
    }


def _barriers(sums: Sums) -> Metrics:
    return {
        "barrier_passes": sums["passes"],
        "barrier_cycles": sums["cycles"],
        "barrier_cycles_mean": ratio(sums["cycles"], sums["passes"]),
    }


def _latency(sums: Sums) -> Metrics:
    return {
        "loads_measured": sums["loads"],
        "load_cycles_mean": ratio(sums["cycles"], sums["loads"]),
    }


@dataclass(frozen=True, slots=True)
class _Formula:
    """What is known of a map that sums up these fields."""

    metrics: Callable[[Sums], Metrics]
    fields: frozenset[str]


_TRAFFIC = frozenset(("requests", "sectors", "bytes"))
_CONFLICTS = frozenset(("requests", "conflicts", "bytes"))
_FORMULAS = {
    "global_loads": _Formula(_traffic("global_load"), _TRAFFIC),
    "global_stores": _Formula(_traffic("global_store"), _TRAFFIC),
    "shared_loads": _Formula(_conflicts("shared_load"), _CONFLICTS),
    "shared_stores": _Formula(_conflicts("shared_store"), _CONFLICTS),
    "branches": _Formula(_branches, frozenset(("executed", "split", "lanes", "taken"))),
    "barrier_waits": _Formula(_barriers, frozenset(("passes", "cycles"))),
    "line_latency": _Formula(_latency, frozenset(("loads", "cycles"))),
}
_MIXED = frozenset(("warps", "threads"))


def _summed(figures: MapFigures) -> frozenset[str]:
    return frozenset(one.name for one in figures.fields if one.total is not None)


def _formula_of(figures: MapFigures) -> _Formula | None:
    """None for a map that has but the name of a preset's."""
    formula = _FORMULAS.get(figures.name)
    return formula if formula is not None and formula.fields <= _summed(figures) else None


def _is_mix(figures: MapFigures) -> bool:
    there = figures.name == "blocks_run" and _summed(figures) >= _MIXED
    return there and any(row.mix for row in figures.sites)


def _mix(rows: Iterable[SiteRow]) -> Metrics:
    """Instructions by class: how often a block ran times how many of them it has."""
    warps: dict[str, Number] = defaultdict(int)
    threads: dict[str, Number] = defaultdict(int)
    for row in rows:
        for name, number in row.mix:
            warps[name] += row.values["warps"] * number
            threads[name] += row.values["threads"] * number
    flop = threads.pop("flop", 0)
    warps.pop("flop", 0)
    return {
        "warp_instructions": sum(warps.values()),
        "thread_instructions": sum(threads.values()),
        "flop": flop,
        "warp_instructions_by_class": dict(sorted(warps.items())),
        "thread_instructions_by_class": dict(sorted(threads.items())),
    }


def _intensity(known: Mapping[str, Any]) -> Metrics:
    """Floating-point operations a byte of sectors, where a probe counts both."""
    moved = sum(known.get(f"global_{what}_bytes", 0) for what in ("load", "store"))
    return (
        {"arithmetic_intensity": ratio(known["flop"], moved)} if "flop" in known and moved else {}
    )


def by_share(counts: Mapping[str, Number]) -> Iterator[tuple[str, Number, float]]:
    """(name, count, share of all) of counts, the greatest first."""
    total = sum(counts.values())
    for name, count in sorted(counts.items(), key=lambda one: -one[1]):
        yield name, count, ratio(count, total)
