"""The traces that ship with the project: the naive and the tiled GEMM on an H200.

Recorded with `gpuwatch record` (gpuwatch/trace/README.md). What they must show was measured on
another H200 by other tools.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from command_line import run
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as PerfettoTrace

from gpuwatch.engine.compare import comparison_of, run_of_trace
from gpuwatch.engine.compare_text import conclusion
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.replay import ReplaySession
from gpuwatch.engine.replay_watch import ReplayWatch
from gpuwatch.probe.catalogue import folder
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.bars import Header
from gpuwatch.tui.replay_screen import ReplayScreen

TRACES = folder("kernels") / "h200"
NAMES = ("gemm", "gemm_tiled", "gemm_traffic", "gemm_tiled_traffic")
MOST_BYTES = 4 << 20
CYCLES = {"gemm": 161_216, "gemm_tiled": 110_572}
"""Mean elapsed cycles of a warp."""
MICROSECONDS = {"gemm": 365, "gemm_tiled": 252}
OCCUPANCY = {"gemm": 0.936, "gemm_tiled": 0.939}
"""sm__warps_active of Nsight Compute."""
TRAFFIC = {
    "global load sectors": (167_772_160, 8_388_608),
    "global load bytes": (5_368_709_120, 268_435_456),
    "global load requests": (67_108_864, 2_097_152),
    "global store sectors": (131_072, 131_072),
    "global store bytes": (4_194_304, 4_194_304),
}


def frames(name: str) -> list[Frame]:
    session = ReplaySession(TRACES / name)
    session.prepare()
    found = []
    for number in range(session.count):
        session.seek(number)
        found.append(session.frame())
    return found


def test_they_are_small_and_name_no_one_s_machine() -> None:
    files = [path for path in TRACES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    assert sorted(path.name for path in TRACES.iterdir()) == sorted(NAMES)
    for path in files:
        content = path.read_bytes()
        assert not re.search(rb"/\w+/kernels", content), path


@pytest.mark.parametrize("name", ["gemm", "gemm_tiled"])
def test_every_warp_of_every_launch_is_there(name: str) -> None:
    found = frames(name)
    assert len(found) == 3
    for frame in found:
        assert (frame.grid, frame.block) == ((32, 32, 1), (32, 32, 1))
        assert (frame.records, frame.missing, frame.dropped) == (32768, 0, 0)
        assert frame.outputs_identical is True
        assert frame.sms is not None and frame.sms.sm.tolist() == list(range(132))
        assert set(frame.sms.blocks.tolist()) <= {7, 8}
    columns = [frame.warps_table for frame in found]
    assert all(table is not None for table in columns)
    assert len({int(table.start.sum()) for table in columns if table is not None}) == 3


@pytest.mark.parametrize("name", ["gemm", "gemm_tiled"])
def test_they_show_what_was_measured(name: str) -> None:
    frame = frames(name)[-1]
    assert "H200" in frame.device.name and not frame.device.modelled
    assert frame.running_cycles_mean == pytest.approx(CYCLES[name], rel=0.15)
    assert frame.seconds_plain * 1e6 == pytest.approx(MICROSECONDS[name], rel=0.15)
    assert frame.sms is not None
    assert frame.sms.mean_occupancy == pytest.approx(OCCUPANCY[name], abs=0.05)


def compared(*names: str):
    runs = []
    for name in names:
        session = ReplaySession(TRACES / name)
        session.prepare()
        runs.append(run_of_trace(session))
    return comparison_of(*runs)


def test_tiling_is_faster_beyond_the_spread_of_the_launches() -> None:
    found = compared("gemm", "gemm_tiled")
    rows = {row.name: row for row in found.rows}
    assert rows["running, average"].verdict == "better"
    assert rows["tasks"].verdict == "same"
    assert "faster in kernel time" in conclusion(found)


def test_traffic_is_that_of_the_hardware_s_own_counters() -> None:
    rows = {row.name: row for row in compared("gemm_traffic", "gemm_tiled_traffic").rows}
    for name, (naive, tiled) in TRAFFIC.items():
        assert (rows[name].before.median, rows[name].after.median) == (naive, tiled)


@pytest.mark.parametrize("name", NAMES)
def test_their_own_reader_reads_them(name: str) -> None:
    script, *_ = (TRACES / name).glob("read.py")
    results = sorted((TRACES / name / "result").iterdir())
    command = [sys.executable, "-I", str(script), *map(str, results)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.count(" empty, 0 dropped") >= len(results)


def test_they_are_found_by_name_from_any_folder(tmp_path: Path) -> None:
    done = run("replay", "h200/gemm", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Total Blocks: 1024, Total Tasks: 32768") == 2
    done = run("compare", "kernels/h200/gemm", "h200/gemm_tiled", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "faster" in json.loads(done.stdout)["conclusion"]
    done = run("export", "h200/gemm", "--to", "perfetto", "--launch", "0", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    read = PerfettoTrace.FromString((tmp_path / "gemm.pftrace").read_bytes())
    tracks = [
        packet.track_descriptor.name for packet in read.packet if packet.track_descriptor.name
    ]
    kinds = Counter(name.rpartition(" ")[0] for name in tracks)
    assert kinds["SM"] == 132
    begun = [packet for packet in read.packet if packet.track_event.type == 1]
    assert len(begun) == 32768 + 1024


async def test_they_play_on_the_live_screen() -> None:
    watch = ReplayWatch(TRACES / "gemm", callback=None)
    app = GpuwatchApp(watch, picker=False, screen=ReplayScreen)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("greater_than_sign")
        await pilot.pause(0.5)
        assert watch.status().aside == "stopped at launch 3 of 3"
        assert "launch 3 of 3" in app.screen.query_one(Header).render_line(0).text
        assert "modelled" not in app.export_screenshot()
    watch.close()
