"""What the presets' figures say, from maps with the names and fields of the presets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from map_figures import hist_map, line_map

from gpuwatch.analysis.maps import MapFigures, Number
from gpuwatch.analysis.metrics import lines_of, metrics_of
from gpuwatch.analysis.summary import Section, sections_of, share_text

TRAFFIC = {
    7: {"requests": 10, "bytes": 1_280, "sectors": 320},
    9: {"requests": 30, "bytes": 3_840, "sectors": 120},
}
STORES = {11: {"requests": 4, "bytes": 512, "sectors": 16}}


def values_of(section: Section, *titles: str) -> list[list[Number | None]]:
    places = [[column.title for column in section.columns].index(title) for title in titles]
    return [[row.values[place] for place in places] for row in (*section.totals, *section.parts)]


def test_traffic_has_totals_and_the_line_that_wastes_most_first() -> None:
    maps = [line_map("global_loads", TRAFFIC), line_map("global_stores", STORES)]
    (section,) = sections_of(maps)
    names = [row.name for row in (*section.totals, *section.parts)]
    assert names == ["loads", "stores", "line 7 loads", "line 9 loads", "line 11 stores"]
    assert values_of(section, "requests", "bytes moved", "coalescing")[:3] == [
        [40, 440 * 32, 5_120 / (440 * 32)],
        [4, 512, 1.0],
        [10, 320 * 32, 0.125],
    ]
    assert next(section.sentences()) == (
        "Global memory loads: 40 requests, 5,120 bytes asked, 440 sectors, 14,080 bytes moved, "
        "coalescing efficiency 36.4%"
    )


def test_lines_of_called_functions_name_them() -> None:
    figures = line_map("global_loads", {7: TRAFFIC[7], 0: TRAFFIC[9]})
    sites = tuple(replace(one, function="helper") for one in figures.sites)
    (section,) = sections_of([replace(figures, sites=sites)])
    assert [row.name for row in section.parts] == [
        "line 7 in helper loads",
        "no line in helper loads",
    ]


def test_an_efficiency_above_all_is_explained() -> None:
    lines = {7: {"requests": 10, "bytes": 2_048, "sectors": 40}}
    (section,) = sections_of([line_map("global_loads", lines)])
    words = "over 100 %: lanes share words"
    assert next(section.sentences()).endswith(f"coalescing efficiency 160.0% ({words})")
    assert section.remark == words
    (section,) = sections_of([line_map("global_loads", TRAFFIC)])
    assert section.remark == "" and words not in next(section.sentences())


def test_only_the_worst_lines_are_told_and_the_rest_counted() -> None:
    lines = {line: {"passes": 1, "cycles": line} for line in range(1, 9)}
    (section,) = sections_of([line_map("barrier_waits", lines)])
    assert [row.name for row in section.parts] == [f"line {line}" for line in (8, 7, 6, 5, 4)]
    assert section.left_out == 3
    assert section.totals[0].values == (8, 36, 4.5, None)
    assert section.parts[0].values == (1, 8, 8.0, 8 / 36)
    assert section.timed


@pytest.mark.parametrize(
    ("requests", "bytes_", "share"), [(4, 512, 0.75), (4, 64, 0.75), (1, 512, 0.75)]
)
def test_the_share_of_extra_wavefronts(requests: int, bytes_: int, share: float) -> None:
    """Of 16: a request takes one, and 128 bytes take one."""
    lines = {3: {"requests": requests, "bytes": bytes_, "conflicts": 12}}
    (section,) = sections_of([line_map("shared_loads", lines)])
    assert section.totals[0].values == (requests, 12, 12 / requests, share)


def test_branches_that_split_come_first() -> None:
    lines = {
        5: {"executed": 100, "lanes": 3_200, "taken": 0, "split": 0},
        6: {"executed": 10, "lanes": 160, "taken": 80, "split": 5},
    }
    (section,) = sections_of([line_map("branches", lines)])
    assert values_of(section, "split", "lanes", "efficiency") == [
        [5, 3_360 / 110, 105 / 110], [5, 16.0, 0.5], [0, 32.0, 1.0],
    ]  # fmt: skip


def mix_map() -> MapFigures:
    figures = line_map("blocks_run", {4: {"warps": 10, "threads": 320}})
    mix = (("fp32", 3), ("load", 1), ("flop", 6))
    return replace(figures, sites=(replace(figures.sites[0], mix=mix),))


def test_the_mix_is_ordered_by_share() -> None:
    (section,) = sections_of([mix_map()])
    assert section.parts_are == "class"
    assert section.totals[0].values == (40, 1_280, 1_920, None)
    assert [(row.name, *row.values) for row in section.parts] == [
        ("fp32", 30, 960, None, 0.75), ("load", 10, 320, None, 0.25),
    ]  # fmt: skip


def test_a_block_s_instructions_count_for_their_own_lines() -> None:
    figures = mix_map()
    by_line = ((4, "load", 1), (5, "fp32", 3), (5, "flop", 6), (0, "int", 2))
    figures = replace(figures, sites=(replace(figures.sites[0], lines=by_line),))
    first, second = lines_of([figures])
    assert (first["line"], first["warp_instructions"], first["flop"]) == (4, 30, 0)
    assert first["warp_instructions_by_class"] == {"int": 20, "load": 10}
    assert (second["line"], second["warp_instructions"], second["flop"]) == (5, 30, 1_920)


def test_arithmetic_intensity_where_traffic_is_counted_too() -> None:
    maps = [mix_map(), line_map("global_loads", TRAFFIC), line_map("global_stores", STORES)]
    assert metrics_of(maps)["arithmetic_intensity"] == 1_920 / (456 * 32)
    mix = sections_of(maps)[-1]
    assert mix.totals[0].values[3] == 1_920 / (456 * 32)
    assert "arithmetic_intensity" not in metrics_of(maps[:1])


def test_latency_of_a_sample_is_estimated_and_has_its_percentiles_at_their_buckets() -> None:
    maps = [
        hist_map("load_latency", [0, 0, 90, 0, 8, 2, 0], sample=32),
        line_map("line_latency", {8: {"loads": 60, "cycles": 180}}, sample=32),
    ]
    total, histogram, lines = sections_of(maps)
    assert [column.title for column in total.columns] == [
        "loads", "mean", "p50 below", "p90 below", "p99 below",
    ]  # fmt: skip
    assert total.totals[0].values[:2] == (3_200, 3.0)
    assert next(total.sentences()).startswith("Latency of a load on its own: ~3,200 loads, 3.00")
    assert [(row.name, row.values[0], row.note) for row in histogram.parts] == [
        ("2 to 3", 2_880, "p50 p90"), ("4 to 7", 0, ""), ("8 to 15", 256, ""),
        ("16 to 31", 64, "p99"),
    ]  # fmt: skip
    assert lines.parts[0].values == (1_920, 3.0, 1.0)
    assert not lines.totals
    assert all(section.sample == 32 and section.timed for section in (total, histogram, lines))


def test_percentiles_of_a_histogram_are_known_to_the_bucket() -> None:
    maps = [
        hist_map("load_latency", [*[0] * 7, 64, 0]),
        line_map("line_latency", {8: {"loads": 64, "cycles": 64 * 115}}),
    ]
    assert metrics_of(maps)["load_latency"] == {
        "p50": 128, "p90": 128, "p99": 128, "p50_from": 64, "p90_from": 64, "p99_from": 64,
    }  # fmt: skip
    assert next(sections_of(maps)[0].sentences()) == (
        "Latency of a load on its own: 64 loads, 115.00 cycles on average, "
        "p50 below 128 cycles, p90 below 128 cycles, p99 below 128 cycles"
    )


def test_the_last_bucket_of_latencies_has_no_end() -> None:
    """It also counts all that is longer."""
    total, histogram = sections_of([hist_map("load_latency", [0, 0, 98, 2])])
    assert next(total.sentences()) == (
        "Latency of a load on its own: 100 loads, "
        "p50 below 4 cycles, p90 below 4 cycles, p99 from 4 cycles"
    )
    assert [row.name for row in histogram.parts] == ["2 to 3", "from 4"]


def test_only_rows_of_a_sampled_map_are_estimates() -> None:
    maps = [line_map("global_loads", TRAFFIC, sample=32), line_map("global_stores", STORES)]
    (section,) = sections_of(maps)
    assert section.estimated
    loads, stores = section.sentences()
    assert "loads: ~1,280 requests" in loads
    assert "stores: 4 requests" in stores and "~" not in stores
    assert [row.estimated for row in section.parts] == [True, True, False]
    assert not sections_of(maps[1:])[0].estimated


@pytest.mark.parametrize(
    "name", ["branches", "global_loads", "shared_stores", "barrier_waits", "line_latency"]
)
def test_a_map_that_has_only_the_name_of_a_presets_says_nothing(name: str) -> None:
    own = line_map(name, {7: {"hits": 3}})
    assert sections_of([own]) == () and lines_of([own]) == [{"line": 7, "function": ""}]


def test_blocks_of_other_fields_are_no_mix() -> None:
    own = line_map("blocks_run", {4: {"hits": 10}})
    own = replace(own, sites=(replace(own.sites[0], mix=(("fp32", 3),)),))
    assert metrics_of([own]) == {} and sections_of([own]) == ()


def test_nothing_loaded_is_no_histogram() -> None:
    total, histogram = sections_of([hist_map("load_latency", [0, 0, 0])])
    assert total.totals[0].values == (0,)
    assert histogram.parts == ()


def test_maps_of_other_names_say_nothing() -> None:
    assert sections_of([line_map("mine", TRAFFIC)]) == ()


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100.0%"), (0.99999, ">99.9%"), (0.0, "0.0%"), (0.0001, "<0.1%"), (0.5, "50.0%")],
)
def test_nearly_all_is_not_all(share: float, text: str) -> None:
    assert share_text(share) == text
