"""Made-up maps of the presets, for their views on the screen and their pictures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from fake_watch import make_frame
from map_figures import counts_map, hist_map, line_map
from numpy.typing import NDArray

from gpuwatch.analysis.access_map import COLUMNS, PAGES
from gpuwatch.analysis.maps import MapFigures
from gpuwatch.engine.frame import Frame


def traffic(share: int = 1) -> tuple[MapFigures, ...]:
    loads = {
        41: {"requests": 1_048_576, "bytes": 134_217_728, "sectors": 4_194_304 * share},
        42: {"requests": 1_048_576, "bytes": 134_217_728, "sectors": 4_194_304},
    }
    stores = {50: {"requests": 32_768, "bytes": 4_194_304, "sectors": 131_072}}
    return line_map("global_loads", loads, opcode="ld.global.f32"), line_map(
        "global_stores", stores
    )


def conflicts() -> tuple[MapFigures, ...]:
    loads = {45: {"requests": 67_108_864, "bytes": 8_589_934_592, "conflicts": 0}}
    stores = {41: {"requests": 2_097_152, "bytes": 268_435_456, "conflicts": 65_011_712}}
    return line_map("shared_loads", loads), line_map("shared_stores", stores)


def mix() -> tuple[MapFigures, ...]:
    figures = line_map("blocks_run", {41: {"warps": 1_048_576, "threads": 33_554_432}})
    classes = (("fp32", 32), ("load", 66), ("int", 14), ("barrier", 2), ("flop", 64))
    return (replace(figures, sites=(replace(figures.sites[0], mix=classes),)),)


def barriers() -> tuple[MapFigures, ...]:
    lines = {43: {"passes": 1_048_576, "cycles": 62_914_560}, 47: {"passes": 9, "cycles": 54}}
    return (line_map("barrier_waits", lines, opcode="bar.sync"),)


def branches() -> tuple[MapFigures, ...]:
    lines = {
        39: {"executed": 1_081_344, "lanes": 34_603_008, "taken": 32_505_856, "split": 0},
        41: {"executed": 1_048_576, "lanes": 16_777_216, "taken": 0, "split": 524_288},
    }
    return (line_map("branches", lines, opcode="bra"),)


def latency() -> tuple[MapFigures, ...]:
    lines = {41: {"loads": 2_624, "cycles": 498_560}}
    return (
        hist_map("load_latency", [*[0] * 7, 20_480, 61_440, 2_048, 0], 32),
        line_map("line_latency", lines, 32, "ld.global.f32"),
    )


def access_counts() -> NDArray[np.int64]:
    """Forty pages from page 3 on: a diagonal and a page that is used throughout."""
    cells = np.zeros((PAGES, COLUMNS), np.int64)
    for step in range(40):
        cells[3 + step, step : step + 3] = 64 + 8 * step
    cells[20, :42] = 1_000
    return cells


def accesses() -> tuple[MapFigures, ...]:
    return (counts_map(access_counts()),)


PRESETS = {
    "gmem_traffic": traffic(),
    "smem_conflicts": conflicts(),
    "instr_mix": mix(),
    "barrier_wait": barriers(),
    "divergence": branches(),
    "mem_latency": latency(),
    "dmat": accesses(),
}


def frame_of(probe: str, maps: tuple[MapFigures, ...] | None = None) -> Frame:
    """A frame of a probe without times."""
    return replace(
        make_frame(), probe=probe, warps_table=None, sms=None, elapsed=None, notes=(),
        maps=PRESETS[probe] if maps is None else maps,
    )  # fmt: skip
