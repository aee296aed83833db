"""What the records of one launch say, and their sums over launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.maps import (
    MapFigures,
    all_figures,
    columns_of,
    hist_buckets,
    scaled_columns,
    site_rows,
)
from gpuwatch.analysis.occupancy import SmColumns, sm_columns
from gpuwatch.analysis.spread import Spread, spread
from gpuwatch.analysis.warps import (
    Accumulated,
    Intervals,
    Shape,
    WarpColumns,
    intervals,
    is_timed,
    warp_columns,
)
from gpuwatch.device.base import DeviceInfo
from gpuwatch.instrument.layout import index_of
from gpuwatch.instrument.model import MapLayout, MapPlace, Site
from gpuwatch.launch import Launch
from gpuwatch.probe.model import Program, Save
from gpuwatch.trace.decode import Decoded, bucket_edges, read_place


@dataclass(slots=True)
class Reading:
    """Figures of the newest launch; None where the probe records too little for one."""

    records: int
    missing: int
    dropped: int
    elapsed: Spread | None
    warps: WarpColumns | None
    sms: SmColumns | None
    running_mean: float | None
    idle_mean: float | None
    maps: tuple[MapFigures, ...] = ()


class MapSource(Protocol):
    """Whatever gives the bytes of map buffers after a launch."""

    def read_map(self, index: int) -> NDArray[np.uint8]: ...


class MapReader:
    """Reads the maps of a probed kernel after each launch.

    Cycles come from the first map whose records have a start and an elapsed time; only it is
    read at every launch, the others when a reading is asked for.
    """

    def __init__(
        self, program: Program, layout: MapLayout, sites: Sequence[Site], launch: Launch,
        info: DeviceInfo,
    ) -> None:  # fmt: skip
        self._info = info
        self._always = always_saved(program)
        self._layout = layout
        self._labels = [(site.source_line, site.opcode, site.function) for site in sites]
        self._mixes = [(site.mix, site.lines) for site in sites]
        self._main = main_place(layout)
        self._shape = Shape(
            launch.threads_per_block, launch.warps_per_block, max(self._main.divisor, 1)
        )
        self._accumulated = Accumulated(launch.warps)
        self._loaded: MapSource | None = None
        self._decoded: Decoded | None = None
        self._intervals: Intervals | None = None

    def observe(self, loaded: MapSource) -> None:
        """Decodes the launch that just ran and adds it to the sums."""
        self._loaded = loaded
        self._decoded = read_place(self._layout, self._main, loaded.read_map)
        self._intervals = None
        if self._main.map.level in ("warp", "thread"):
            slots = index_of(self._layout, self._main, self._decoded.slots)
            self._intervals = intervals(self._decoded.records, slots, self._shape)
        if self._intervals is not None:
            self._accumulated.observe(self._intervals)

    def reset(self) -> None:
        self._accumulated.reset()

    def reading(self) -> Reading:
        """The figures of the launch last observed. Raises RuntimeError before the first."""
        if self._decoded is None or self._loaded is None:
            raise RuntimeError("no launch was observed yet")
        read = self._loaded.read_map
        seen = [
            (place, self._decoded if place is self._main else read_place(self._layout, place, read))
            for place in self._layout.places
        ]
        maps = tuple(self._figures(place, decoded) for place, decoded in seen)
        result = Reading(
            sum(len(decoded) for _, decoded in seen),
            sum(figures.missing for figures in maps),
            sum(figures.dropped for figures in maps),
            None, None, None, None, None, maps,
        )  # fmt: skip
        if self._intervals is not None:
            self._fill(result, self._decoded, self._intervals)
        return result

    def _figures(self, place: MapPlace, decoded: Decoded) -> MapFigures:
        map_ = place.map
        scale, summed = self._stands_for(place), _summed(place)
        columns = scaled_columns(columns_of(decoded.records), scale, summed)
        figures = MapFigures(
            name=map_.name,
            level=map_.level,
            kind=map_.type,
            slots=place.slots,
            records=len(decoded),
            empty=len(decoded.missing),
            missing=len(decoded.missing) if map_.name in self._always else 0,
            dropped=decoded.dropped,
            sample=place.sample,
            fields=(),
            slot=index_of(self._layout, place, decoded.slots),
            columns=columns,
            scale=scale,
            summed=summed,
        )
        if map_.type == "hist":
            (counts,) = columns.values()
            table = counts.astype(np.uint64).reshape(-1, map_.cap)
            figures.buckets = hist_buckets(table, bucket_edges(map_), scale)
            return figures
        extremes = {field.name for field in map_.fields if field.reduction != "sum"}
        figures.fields = all_figures(columns, scale, extremes, summed)
        if map_.level in ("site", "line"):
            figures.sites = site_rows(decoded.slots, columns, self._labels, self._mixes)
        return figures

    def _stands_for(self, place: MapPlace) -> float:
        """How many of the launch's warps or blocks a sampled one stands for."""
        by_block = place.map.sample_unit == "block"
        units = self._layout.blocks if by_block else self._layout.warps
        return units / -(-units // place.sample) if units else 1.0

    def _fill(self, result: Reading, decoded: Decoded, seen: Intervals) -> None:
        table = warp_columns(seen, decoded.records, self._shape, self._accumulated)
        result.warps = table
        result.elapsed = spread(table.elapsed)
        if len(table):
            result.running_mean = float(table.elapsed.mean())
        if seen.sm is not None and len(table):
            result.sms = sm_columns(
                table.sm,
                table.block,
                table.start,
                table.elapsed,
                sm_count=self._info.sm_count,
                warps_per_sm=self._info.warps_per_sm,
            )
            result.idle_mean = float(result.sms.idle_cycles.sum()) / len(table)


def always_saved(program: Program) -> frozenset[str]:
    """Maps in which every slot gets a record of a thread or warp that ends: those saved to at a
    kernel's begin or end, under no condition."""
    return frozenset(
        action.map
        for probe in program.probes
        if probe.position == "kernel"
        for action in probe.body
        if isinstance(action, Save)
    )


def _summed(place: MapPlace) -> frozenset[str]:
    """Fields to whose rows all sampled warps add, wherever they ran."""
    map_ = place.map
    if place.sample == 1 or map_.type != "reduce" or map_.level in ("block", "warp", "thread"):
        return frozenset()
    return frozenset(field.name for field in map_.fields if field.reduction == "sum")


def main_place(layout: MapLayout) -> MapPlace:
    """The map that a reader takes cycles from. A program has at least one map."""
    for place in layout.places:
        timed = is_timed(tuple(field.name for field in place.map.fields))
        if timed and place.map.type == "array":
            return place
    return layout.places[0]
