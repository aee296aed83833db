"""What the presets' figures say in the report."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from map_figures import cells_map, hist_map, line_map
from rich.console import Console

from gpuwatch.analysis.maps import MapFigures
from gpuwatch.engine.summaries import render


def _rendered(*maps: MapFigures) -> str:
    out = io.StringIO()
    render(maps, Console(file=out, width=100), modelled=False)
    return out.getvalue()


@pytest.mark.parametrize("sample", [1, 32])
def test_classes_of_a_sample_are_estimates(sample: int) -> None:
    figures = line_map("blocks_run", {4: {"warps": 10, "threads": 320}}, sample)
    figures = replace(figures, sites=(replace(figures.sites[0], mix=(("fp32", 3),)),))
    row = _rendered(figures).splitlines()[-1].split()
    estimated = [f"{30 * sample:,}", f"{960 * sample:,}"]
    assert row[:3] == ["fp32", *(f"{'~' if sample > 1 else ''}{text}" for text in estimated)]


@pytest.mark.parametrize("columns", [1, 2, 5, 40])
def test_the_ends_of_the_time_axis_do_not_touch(columns: int) -> None:
    axis = _rendered(cells_map({(18, 0): 1, (18, columns - 1): 1})).splitlines()[-1]
    assert axis.split() == ["0", f"{columns * 4.096:,.0f}", "us"]


def test_a_histogram_that_has_the_name_of_the_timeline_is_not_called_empty() -> None:
    assert _rendered(hist_map("page_by_time", [1] * 100)) == ""
