"""What the maps of a launch say: records counted, intervals accumulated, figures for a frame."""

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
from gpuwatch.trace import Decoded, decode


@dataclass(frozen=True, slots=True)
class Figures:
    """The newest launch in figures; None where the probe records too little for them."""

    records: int
    missing: int
    dropped: int
    elapsed: Spread | None = None
    warps_table: WarpColumns | None = None
    sms: SmColumns | None = None
    running_cycles_mean: float | None = None
    idle_cycles_mean: float | None = None


class Observer:
    """Reads the maps of one loaded kernel after its launches."""

    def __init__(self, loaded: LoadedKernel, layout: MapLayout, threads_per_block: int) -> None:
        self._loaded = loaded
        self._layout = layout
        self._timed = next((place for place in layout.places if _times_warps(place)), None)
        self._shape = Shape(
            threads_per_block, layout.warps_per_block, self._timed.divisor if self._timed else 32
        )
        self._accumulated = Accumulated(layout.warps)

    def observe(self) -> None:
        """Adds the launch that just ran to the accumulated averages."""
        if self._timed is not None:
            decoded = self._read(self._timed)
            self._accumulated.observe(self._intervals(decoded))

    def figures(self, device: DeviceInfo) -> Figures:
        """Everything about the launch that ran last; must be called before the next."""
        read = {place.records: self._read(place) for place in self._layout.places}
        every = read.values()
        records = sum(len(one) for one in every)
        missing = sum(len(one.missing) for one in every)
        dropped = sum(one.dropped for one in every)
        if self._timed is None:
            return Figures(records, missing, dropped)
        decoded = read[self._timed.records]
        seen = self._intervals(decoded)
        table = warp_columns(seen, decoded.records, self._shape, self._accumulated)
        sms = self._per_sm(seen, device)
        count = len(seen)
        return Figures(
            records,
            missing,
            dropped,
            spread(seen.elapsed),
            table,
            sms,
            float(seen.elapsed.mean()) if count else None,
            float(sms.idle_cycles.sum()) / count if sms is not None and count else None,
        )

    def reset(self) -> None:
        self._accumulated.reset()

    def _per_sm(self, seen: Intervals, device: DeviceInfo) -> SmColumns | None:
        if seen.sm is None:
            return None
        return sm_columns(
            seen.sm,
            seen.warp // self._layout.warps_per_block,
            seen.start,
            seen.elapsed,
            sm_count=device.sm_count,
            warps_per_sm=device.warps_per_sm,
        )

    def _intervals(self, decoded: Decoded) -> Intervals:
        seen = intervals(decoded.records, decoded.slots, self._shape)
        assert seen is not None  # the map was chosen for its timed fields
        return seen

    def _read(self, place: MapPlace) -> Decoded:
        return decode(
            place.map,
            place.slots,
            self._loaded.read_map(place.records),
            self._loaded.read_map(place.counts).view(np.uint32),
        )


def _times_warps(place: MapPlace) -> bool:
    names = tuple(field.name for field in place.map.fields)
    timed = place.map.type == "array" and place.map.level in ("warp", "thread")
    return timed and is_timed(names)
