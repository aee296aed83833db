"""Two runs figure by figure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from trace_support import BLOCK_SCHED, kernel_facts, launched, write_trace

from gpuwatch.engine import compare_text
from gpuwatch.engine.compare import (
    Comparison,
    Run,
    comparison_of,
    run_of_source,
    run_of_trace,
    unit_and_wanted,
)
from gpuwatch.engine.options import Options
from gpuwatch.engine.recording import record
from gpuwatch.engine.replay import ReplaySession
from gpuwatch.engine.session import Session
from gpuwatch.probe.catalogue import folder
from gpuwatch.probe.model import Field, Map
from gpuwatch.trace.facts import Figures

TRAFFIC = Map("traffic", "kernel", "reduce", 8, 1, (Field("bytes", "u64"),))


def run(path: Path, cycles, *, grid=(3, 2, 1), traffic=100, figures=None) -> Run:
    """Recorded launches whose warps each take `cycles` of the launch."""
    facts = kernel_facts([BLOCK_SCHED, TRAFFIC], grid=grid, figures=figures or Figures())
    launches = []
    for elapsed in cycles:
        launch = launched(facts, np.random.default_rng(1), full=True)
        rows = launch.buffers[0].view("<u8,<u4,<u4")
        rows["f0"], rows["f1"], rows["f2"] = 1000, elapsed, np.arange(len(rows)) % 5
        launch.buffers[2].view("<u8")[:] = traffic
        launches.append(launch)
    session = ReplaySession(write_trace(path, launches))
    session.prepare()
    return run_of_trace(session)


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    before = run(tmp_path / "a", [200, 205, 210, 202], grid=(4, 2, 1))
    after = run(tmp_path / "b", [100, 101, 300, 102], traffic=40)
    return comparison_of(before, after)


def row(comparison: Comparison, name: str):
    return next(one for one in comparison.rows if one.name == name)


def test_figures_and_their_spread(comparison: Comparison) -> None:
    assert row(comparison, "blocks").before.median == 8
    assert row(comparison, "tasks").after.median == 12
    running = row(comparison, "running, average")
    assert (running.before.low, running.before.median, running.before.high) == (200, 203.5, 210)
    assert running.after.high == 300
    assert running.verdict == "same", "one launch of the second took longer than all of the first"
    assert row(comparison, "traffic.bytes, total").ratio == 0.4
    assert row(comparison, "traffic.bytes, total").verdict == "differs"


def test_a_clear_difference_is_better_or_worse(tmp_path: Path) -> None:
    before, after = run(tmp_path / "a", [200, 210]), run(tmp_path / "b", [100, 110])
    assert row(comparison_of(before, after), "running, p99").verdict == "better"
    assert row(comparison_of(after, before), "running, p99").verdict == "worse"


def test_one_launch_tells_nothing_of_what_varies(tmp_path: Path) -> None:
    before, after = run(tmp_path / "a", [200]), run(tmp_path / "b", [100])
    found = comparison_of(before, after)
    assert row(found, "running, average").verdict == "unclear"
    assert row(found, "blocks").verdict == "same"
    said = compare_text.conclusion(found)
    assert "not clear" in said and "record more" in said


def test_the_verdict_rests_on_plain_times_where_both_have_them(tmp_path: Path) -> None:
    before = run(tmp_path / "a", [200, 210, 190])
    after = run(tmp_path / "b", [100, 110, 90])
    assert comparison_of(before, after).speed.name == "kernel time, probed"
    assert compare_text.conclusion(comparison_of(before, after)).startswith("No difference")
    slower = replace(
        after,
        series={
            **after.series,
            "kernel time, probed": replace(
                after.series["kernel time, probed"], values=np.array([100.0, 110.0, 120.0])
            ),
        },
    )
    said = compare_text.conclusion(comparison_of(before, slower))
    assert said == (
        "5.50x slower in kernel time, probed: 20 us became 110 us, "
        "beyond the spread of the launches."
    )


def test_what_makes_runs_hard_to_compare_is_noted(tmp_path: Path) -> None:
    one = run(tmp_path / "a", [200, 210])
    other = replace(
        one,
        probe="another",
        outputs_identical=False,
        device=replace(one.device, name="B GPU", modelled=True),
    )
    notes = comparison_of(one, other).notes
    assert [note.split(":")[0] for note in notes[:3]] == [
        "on different devices",
        "times and cycles of a simulated GPU are modelled",
        "with different probes",
    ]
    assert "changed the outputs" in notes[3]


def test_times_of_another_probe_have_no_verdict(tmp_path: Path) -> None:
    one = run(tmp_path / "a", [200, 210])
    times = replace(one.series["kernel time, probed"], values=np.array([1.0, 2.0]))
    other = replace(one, probe="another", series={**one.series, "kernel time, probed": times})
    assert comparison_of(one, replace(other, probe=one.probe)).speed.verdict == "better"
    found = comparison_of(one, other)
    for name in ("kernel time, probed", "running, average"):
        assert row(found, name).verdict == "other probe"
    assert row(found, "blocks").verdict == "same"
    assert found.speed is None
    said = "Which is faster is not clear: compare runs with the same probe."
    assert compare_text.conclusion(found) == said
    markdown = compare_text.as_markdown(found)
    assert "| other probe |" in markdown and "better" not in markdown
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    compare_text.render(found, console)
    assert "other probe" in console.export_text()


def test_plain_times_are_judged_with_any_probes(tmp_path: Path) -> None:
    one = run(tmp_path / "a", [200, 210])
    slow, fast = (
        replace(one.series["kernel time, probed"], name="kernel time, plain", values=values)
        for values in (np.array([9.0, 9.5]), np.array([3.0, 3.5]))
    )
    before = replace(one, series={**one.series, slow.name: slow})
    after = replace(one, probe="another", series={**one.series, fast.name: fast})
    assert compare_text.conclusion(comparison_of(before, after)).startswith("2.85x faster")


def test_text_markdown_and_json_say_the_same(comparison: Comparison) -> None:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    compare_text.render(comparison, console)
    text = console.export_text()
    markdown = compare_text.as_markdown(comparison)
    values = json.loads(json.dumps(compare_text.as_json(comparison)))
    for figure in values["figures"]:
        assert figure["name"] in text and figure["name"] in markdown
    blocks = next(one for one in values["figures"] if one["name"] == "blocks")
    assert blocks["change"] == -2 and blocks["ratio"] == 0.75
    assert "| blocks | 8 | 6 | -2 (-25.0 %) | differs |" in markdown
    assert values["conclusion"] in text and values["conclusion"] in markdown
    assert values["before"]["values"]["running, average"] == [200.0, 205.0, 210.0, 202.0]


@pytest.fixture(scope="module")
def sessions():
    made = []
    for kernel in ("gemm", "gemm_tiled"):
        source = str(folder("kernels") / f"{kernel}.cu")
        options = Options(source=source, device="sim:a10", arguments=("128", "128", "128"))
        session = Session(options)
        session.prepare()
        made.append(session)
    yield made
    for session in made:
        session.close()


def test_two_sources_and_a_trace_of_one(sessions, tmp_path: Path) -> None:
    naive, tiled = (run_of_source(one, 2, lambda _count: None) for one in sessions)
    found = comparison_of(naive, tiled)
    assert row(found, "blocks").change == 16 - 24
    running = row(found, "running, average")
    assert running.verdict == ("better" if running.change < 0 else "worse")
    assert row(found, "shared memory of a block").after.median == 8192
    assert found.speed.name == "kernel time, plain"
    replay = ReplaySession(record(sessions[0], tmp_path / "t", 2))
    replay.prepare()
    again = comparison_of(naive, run_of_trace(replay))
    assert {one.verdict for one in again.rows if one.after is not None} == {"same"}
    alone = [one.name for one in again.rows if one.after is None]
    assert alone and all(name.startswith("global ") for name in alone)


def test_traffic_is_counted_apart_so_that_cycles_are_those_of_the_probe(sessions) -> None:
    naive, tiled = (run_of_source(one, 2, lambda _count: None) for one in sessions)
    assert sessions[0].selected[1] == "block_sched", "the session's own probe is selected again"
    cycles = sessions[0].frame().running_cycles_mean
    assert naive.series["running, average"].values.tolist() == [cycles, cycles]
    found = comparison_of(naive, tiled)
    sectors, stored = row(found, "global load sectors"), row(found, "global store bytes")
    assert (sectors.before.median, sectors.after.median) == (327680, 16384)
    assert (sectors.verdict, sectors.wanted) == ("better", "less")
    assert (stored.before.median, stored.unit, stored.verdict) == (128 * 128 * 4, "B", "same")
    assert row(found, "global load bytes asked").verdict == "differs"


def test_traffic_that_the_probe_counts_is_not_counted_again(sessions) -> None:
    session = sessions[1]
    session.select(probe="block_sched,gmem_traffic")
    try:
        run = run_of_source(session, 2, lambda _count: None)
    finally:
        session.select(probe="block_sched")
    assert run.probe == "block_sched,gmem_traffic" and not run.notes
    assert run.series["global load sectors"].values.tolist() == [16384, 16384]
    assert not any("total" in name for name in run.series), "what has a name is shown once"


def test_a_kernel_without_traffic_is_compared_all_the_same(tmp_path: Path) -> None:
    source = tmp_path / "nothing.cu"
    source.write_text("__global__ void nothing() {}\nint main() { nothing<<<2, 32>>>(); }\n")
    session = Session(Options(source=str(source), device="sim:a10"))
    try:
        session.prepare()
        run = run_of_source(session, 1, lambda _count: None)
        assert session.selected[1] == "block_sched"
    finally:
        session.close()
    (note,) = run.notes
    assert note.startswith(f"no traffic of {source}: ")
    assert note in comparison_of(run, run).notes


def test_what_is_modelled_is_told_by_one_launch(sessions) -> None:
    naive, tiled = (run_of_source(one, 1, lambda _count: None) for one in sessions)
    found = comparison_of(naive, tiled)
    assert row(found, "running, average").verdict in ("better", "worse")
    assert found.speed.verdict in ("better", "worse")


@pytest.mark.parametrize(
    ("name", "unit", "wanted"),
    [
        ("global_load_sectors", "", "less"),
        ("global_load_bytes", "B", "less"),
        ("global_load_bytes_asked", "B", ""),
        ("global_load_efficiency", "", ""),
        ("shared_store_conflicts_mean", "", "less"),
        ("branch_efficiency", "", "more"),
        ("barrier_cycles_mean", "cycles", "less"),
        ("global_load_requests", "", ""),
    ],
)
def test_what_is_better_goes_by_the_figure_s_name(name: str, unit: str, wanted: str) -> None:
    assert unit_and_wanted(name) == (unit, wanted)
