"""What the records of one launch say, and their sums over launches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
from gpuwatch.device.base import DeviceInfo, LoadedKernel
from gpuwatch.instrument.model import MapLayout, MapPlace
from gpuwatch.launch import Launch
from gpuwatch.trace.decode import Decoded, decode


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


class MapReader:
    """Reads the maps of a probed kernel after each launch.

    The figures come from the first map whose records have a start and an elapsed time, or from
    the first map where none has.
    """

    def __init__(self, layout: MapLayout, launch: Launch, info: DeviceInfo) -> None:
        self._info = info
        self._place = _main_place(layout)
        self._shape = Shape(
            launch.threads_per_block, launch.warps_per_block, max(self._place.divisor, 1)
        )
        self._accumulated = Accumulated(launch.warps)
        self._decoded: Decoded | None = None
        self._intervals: Intervals | None = None

    def observe(self, loaded: LoadedKernel) -> None:
        """Decodes the launch that just ran and adds it to the sums."""
        place = self._place
        counts = loaded.read_map(place.counts).view(np.uint32)
        self._decoded = decode(place.map, place.slots, loaded.read_map(place.records), counts)
        self._intervals = None
        if place.map.level in ("warp", "thread"):
            self._intervals = intervals(self._decoded.records, self._decoded.slots, self._shape)
        if self._intervals is not None:
            self._accumulated.observe(self._intervals)

    def reset(self) -> None:
        self._accumulated.reset()

    def reading(self) -> Reading:
        """The figures of the launch last observed. Raises RuntimeError before the first."""
        if self._decoded is None:
            raise RuntimeError("no launch was observed yet")
        decoded = self._decoded
        result = Reading(
            len(decoded), len(decoded.missing), decoded.dropped, None, None, None, None, None
        )
        if self._intervals is not None:
            self._fill(result, decoded, self._intervals)
        return result

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


def _main_place(layout: MapLayout) -> MapPlace:
    for place in layout.places:
        if is_timed(tuple(field.name for field in place.map.fields)):
            return place
    return layout.places[0]
