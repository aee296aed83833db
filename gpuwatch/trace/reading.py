"""One result file as records, for analysis that starts from a path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwatch.instrument.layout import index_of
from gpuwatch.instrument.model import MapLayout
from gpuwatch.trace.buffers import ResultBuffers, layout_of_result
from gpuwatch.trace.decode import Decoded, read_place
from gpuwatch.trace.facts import KernelFacts, LaunchFacts
from gpuwatch.trace.folder import Trace, TraceLaunch


@dataclass(frozen=True, slots=True, eq=False)
class LaunchRecords:
    """The records of one launch, by map; `index` is what each one's slot stands for."""

    path: Path
    kernel: KernelFacts
    launch: LaunchFacts
    layout: MapLayout
    maps: Mapping[str, Decoded]
    index: Mapping[str, NDArray[np.int64]]


def read_result(path: Path | str) -> LaunchRecords:
    """Reads `DIR/result/<seconds>.bin` of a trace. Raises UserError for a file that is not as it
    should be."""
    return records_of(Trace(Path(path)).launch(0))


def records_of(launch: TraceLaunch) -> LaunchRecords:
    """Reads an opened launch."""
    layout = layout_of_result(launch.kernel, launch.result)
    buffers = ResultBuffers(launch.result, layout)
    maps, index = {}, {}
    for place in layout.places:
        decoded = read_place(layout, place, buffers.read_map)
        maps[place.map.name] = decoded
        index[place.map.name] = index_of(layout, place, decoded.slots)
    result = launch.result
    return LaunchRecords(result.path, launch.kernel, result.facts, layout, maps, index)
