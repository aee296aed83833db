"""Numbers of a report's map tables."""

from __future__ import annotations

import io

import numpy as np
import pytest
from map_figures import hist_map, line_map
from rich.console import Console

from gpuwatch.analysis.lines import LineFigures, line_figures
from gpuwatch.analysis.maps import scaled_columns
from gpuwatch.engine import report_maps
from gpuwatch.engine.report_maps import number_text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1_200_000, "1,200,000"),
        (2**64 - 1, "18,446,744,073,709,551,615"),
        (1_200_000.0, "1,200,000"),
        (999_999.7, "1,000,000"),
        (-1_319_807.6, "-1,319,808"),
        (1296.615, "1,296.62"),
        (9.75, "9.75"),
        (2.5e20, "2.5e+20"),
    ],
)
def test_means_are_written_out_as_far_as_an_f64_is_exact(value: float, shown: str) -> None:
    assert number_text(value) == shown


def test_figures_of_a_sampled_map_are_scaled_and_marked_and_its_rows_add_up() -> None:
    figures = line_map("line_latency", {41: {"loads": 100}, 42: {"loads": 300}}, 32)
    console = Console(record=True, width=100, file=io.StringIO())
    report_maps.render(figures, console)
    rows = [line.split() for line in console.export_text().splitlines()]
    assert ["41", "~3,200", "op"] in rows and ["42", "~9,600", "op"] in rows
    assert ["loads", "~12,800", "~6,400", "~3,200", "~9,600"] in rows
    values = report_maps.as_json(figures)
    assert values["fields"]["loads"] == {"total": 12_800, "mean": 6_400, "min": 3_200, "max": 9_600}
    assert [site["loads"] for site in values["sites"]] == [3_200, 9_600]
    assert values["estimated"] == ["loads"]
    assert line_figures([figures]) == LineFigures(
        ("line_latency",), ("loads",), {41: (3_200,), 42: (9_600,)}, (12_800,), estimated=True
    )


def test_records_of_their_own_are_not_scaled() -> None:
    columns = {"own": np.array([3, 5], np.uint32), "sum": np.array([2**31, 5], np.uint32)}
    seen = scaled_columns(columns, 32, ["sum"])
    assert seen["own"].tolist() == [3, 5] and seen["sum"].tolist() == [2**36, 160]
    assert scaled_columns(columns, 2.5, ["sum"])["sum"].tolist() == [5 * 2**30, 12]


def test_buckets_of_a_sample_are_marked() -> None:
    console = Console(record=True, width=100, file=io.StringIO())
    report_maps.render(hist_map("load_latency", [0, 4], 32), console)
    assert " ~128 " in console.export_text()


def test_a_long_name_is_folded_not_cut() -> None:
    name = "kernel_of_templates_" * 12
    console = Console(record=True, width=80, file=io.StringIO())
    report_maps.render(line_map("line_latency", {41: {"loads": 1}}, opcode=name), console)
    assert name in "".join(console.export_text().split())
