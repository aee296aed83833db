"""Which records of a probe a GPU can sum up by itself, and the kernel that does it."""

from __future__ import annotations

from gpuwatch.analysis.warps import SM_FIELDS
from gpuwatch.device.base import FieldPlace, Reduction
from gpuwatch.device.cuda import reduction as device_side
from gpuwatch.instrument.layout import FIELD_BYTES, field_offsets
from gpuwatch.instrument.model import MapPlace
from gpuwatch.toolchain import Toolchain, assemble, compile_to_ptx


def reduction_of(place: MapPlace) -> Reduction:
    """The reduction of one map's records; of a `reduce` or `hist` map only empty slots count."""
    map_ = place.stored
    records = map_.type == "array"
    places = {}
    if records:
        for field, offset in zip(map_.fields, field_offsets(map_), strict=True):
            places[field.name] = FieldPlace(offset, FIELD_BYTES[field.type])
    sm = next((places[name] for name in SM_FIELDS if name in places), None)
    timed = "start" in places and "elapsed" in places
    return Reduction(
        records=place.records,
        counts=place.counts,
        offsets=place.offsets,
        slots=place.slots if map_.copies == 1 else 0,
        size=map_.size,
        capacity=map_.cap if records else 1,
        mark=place.mark,
        start=places["start"] if timed else None,
        elapsed=places["elapsed"] if timed else None,
        sm=sm if timed else None,
    )


def reduction_cubin(toolchain: Toolchain, arch: str) -> bytes:
    """The compiled reduction kernel for a GPU of `arch`; cached like every compilation."""
    text = compile_to_ptx(toolchain, device_side.SOURCE, arch)
    return assemble(toolchain, text, arch, device_side.ENTRY).cubin
