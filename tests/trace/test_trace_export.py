"""Exports, read back by the tools that they are for."""

from __future__ import annotations

import csv
import json
import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as PerfettoTrace
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from trace_support import BLOCK_SCHED, WARP_DURATION, kernel_facts, kernels, launched, write_trace

from gpuwatch.errors import UserError
from gpuwatch.trace import Trace, records_of
from gpuwatch.trace.export import FORMATS, export
from gpuwatch.trace.export.rows import columns_of_map, row_pieces


def timed_trace(folder: Path, launches: int = 2, grid=(6, 1, 1)) -> Trace:
    """Blocks of two warps on three SMs, each block when the one before it on its SM has ended."""
    facts = kernel_facts([BLOCK_SCHED], grid=grid)
    made = []
    for number in range(launches):
        launch = launched(facts, np.random.default_rng(number), full=True)
        rows = launch.buffers[0].view("<u8,<u4,<u4")
        warp = np.arange(len(rows))
        block = warp // 2
        rows["f2"] = block % 3
        rows["f0"] = 1000 * (block % 3 + 1) + block // 3 * 170
        rows["f1"] = 85 + 17 * (warp % 2)
        made.append(launch)
    return Trace(write_trace(folder / "t", made))


def all_of(trace: Trace) -> range:
    return range(len(trace.results))


@settings(max_examples=30, deadline=None)
@given(kernels(), st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_rows_are_the_records_whatever_the_piece(tmp_path_factory, facts, seed, chunk):
    launch = launched(facts, np.random.default_rng(seed))
    folder = write_trace(tmp_path_factory.mktemp("trace") / "one", [launch])
    found = records_of(Trace(folder).launch(0))
    for map_ in facts.maps:
        names = [column.name for column in columns_of_map(map_, facts)]
        assert len(set(names)) == len(names)
        pieces = list(row_pieces(found, map_.name, chunk))
        assert all(list(piece) == names for piece in pieces)
        decoded = found.maps[map_.name]
        joined = {name: [v for piece in pieces for v in piece[name].tolist()] for name in names}
        assert joined[map_.level] == found.index[map_.name].tolist()
        last = names[-1]
        wanted = decoded.column(decoded.records.dtype.names[-1])
        got = np.array(joined[last], wanted.dtype)
        assert got.tobytes() == wanted.tobytes()
        if map_.type != "hist":
            counts = Counter(decoded.slots.tolist())
            numbers = [k for slot in sorted(counts) for k in range(counts[slot])]
            assert joined["record"] == numbers


def test_csv(tmp_path):
    trace = timed_trace(tmp_path)
    (done,) = export(trace, all_of(trace), "csv", tmp_path / "out")
    assert done.path == tmp_path / "out.csv"
    with done.path.open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["launch", "warp", "block", "record", "start", "elapsed", "cuid"]
    assert len(rows) == done.count == 24
    assert rows[13] == ["1", "1", "0", "0", "1000", "102", "0"]


def test_json(tmp_path):
    trace = timed_trace(tmp_path)
    (done,) = export(trace, all_of(trace), "json", tmp_path / "out.json")
    values = json.loads(done.path.read_text())
    names = [column["name"] for column in values["maps"]["block_sched"]]
    assert values["maps"]["block_sched"][names.index("elapsed")]["unit"] == "cycles"
    assert [launch["number"] for launch in values["launches"]] == [0, 1]
    assert values["launches"][1]["missing"] == {"block_sched": 0}
    row = dict(zip(names, values["launches"][1]["rows"]["block_sched"][1], strict=True))
    assert (row["warp"], row["elapsed"]) == (1, 102)


def test_npz(tmp_path):
    trace = timed_trace(tmp_path)
    (done,) = export(trace, all_of(trace), "npz", tmp_path / "out")
    with np.load(done.path) as arrays:
        assert arrays["block_sched/1/elapsed"].tolist() == [85, 102] * 6
        assert arrays["block_sched/0/cuid"].dtype == np.uint32


def test_parquet_has_units_and_a_file_for_each_map(tmp_path):
    facts = kernel_facts([BLOCK_SCHED, replace(WARP_DURATION, name="a/b")])
    launch = launched(facts, np.random.default_rng(1), full=True)
    trace = Trace(write_trace(tmp_path / "t", [launch]))
    done = export(trace, [0], "parquet", tmp_path / "out")
    assert [one.path.name for one in done] == ["out.block_sched.parquet", "out.a_b.parquet"]
    table = parquet.read_table(done[0].path)
    assert table.num_rows == 12
    assert table.schema.field("elapsed").metadata == {b"unit": b"cycles"}
    assert table.schema.metadata[b"device"] == b"A GPU"
    words = launch.read_map(0).view("<u8,<u4,<u4")
    assert table.column("start").to_pylist() == words["f0"].tolist()


def test_chrome(tmp_path):
    trace = timed_trace(tmp_path, launches=1)
    (done,) = export(trace, [0], "chrome", tmp_path / "out")
    events = json.loads(done.path.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == done.count == 12 + 6
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {1: "SM 0", 2: "SM 1", 3: "SM 2"}
    (fourth,) = (event for event in spans if event["name"] == "block 3")
    assert fourth["pid"] == 1
    assert fourth["ts"] == pytest.approx(170 / 1.7e9 * 1e6, abs=0.001)
    assert fourth["dur"] == pytest.approx(102 / 1.7e9 * 1e6, abs=0.002)
    assert_apart([((e["pid"], e["tid"]), e["ts"], e["ts"] + e["dur"]) for e in spans])


def assert_apart(spans):
    """No two spans of a track overlap."""
    spans.sort()
    for (track, _, end), (other, begin, _) in pairwise(spans):
        assert track != other or end <= begin + 1e-9


def test_perfetto_has_a_track_for_each_slot_and_a_slice_for_each_warp_and_block(tmp_path):
    trace = timed_trace(tmp_path)
    (done,) = export(trace, all_of(trace), "perfetto", tmp_path / "out")
    packets = PerfettoTrace.FromString(done.path.read_bytes()).packet
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in packets if
              p.HasField("track_descriptor")}  # fmt: skip
    names = Counter(track.name for track in tracks.values())
    assert {name for name in names if name.startswith("SM ")} == {"SM 0", "SM 1", "SM 2"}
    assert names["warp slot 0"] == names["warp slot 1"] == names["block slot 0"] == 3
    assert "block slot 1" not in names
    slices = read_slices(packets)
    assert len(slices) == done.count == 2 * (12 + 6)
    for track, name, _, _, notes in slices:
        slot = tracks[track]
        assert tracks[slot.parent_uuid].name == f"SM {int(name.split()[1]) // per(name) % 3}"
        assert slot.name.startswith(name.split()[0])
        assert notes["cycles"] in (85, 102)
    assert_apart([(track, begin, end) for track, _, begin, end, _ in slices])


def per(name: str) -> int:
    return 2 if name.startswith("warp") else 1


def read_slices(packets):
    """(track, name, begin, end, annotations) of every slice."""
    opened, slices = {}, []
    for packet in packets:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in opened
            notes = {note.name: note.int_value for note in event.debug_annotations}
            opened[event.track_uuid] = (event.name, packet.timestamp, notes)
        else:
            name, begin, notes = opened.pop(event.track_uuid)
            slices.append((event.track_uuid, name, begin, packet.timestamp, notes))
    assert not opened
    return slices


def test_launches_follow_one_another(tmp_path):
    trace = timed_trace(tmp_path, launches=3)
    (done,) = export(trace, all_of(trace), "chrome", tmp_path / "out")
    spans = [e for e in json.loads(done.path.read_text())["traceEvents"] if e["ph"] == "X"]
    ends = [max(e["ts"] + e["dur"] for e in spans if e["args"]["launch"] == k) for k in range(3)]
    begins = [min(e["ts"] for e in spans if e["args"]["launch"] == k) for k in range(3)]
    assert begins[0] == 0 and ends[0] < begins[1] and ends[1] < begins[2]


def test_a_probe_without_times_has_no_timeline(tmp_path):
    untimed = replace(BLOCK_SCHED, fields=BLOCK_SCHED.fields[:1])
    launch = launched(kernel_facts([untimed]), np.random.default_rng(1))
    trace = Trace(write_trace(tmp_path / "t", [launch]))
    for form in ("perfetto", "chrome"):
        with pytest.raises(UserError, match="records no start and elapsed"):
            export(trace, [0], form, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_records_without_an_sm_share_one_track_group(tmp_path):
    launch = launched(kernel_facts([WARP_DURATION]), np.random.default_rng(1), full=True)
    launch.buffers[0].view("<u8")[:] = np.arange(12 * 4) % 100
    trace = Trace(write_trace(tmp_path / "t", [launch]))
    (done,) = export(trace, [0], "chrome", tmp_path / "out")
    events = json.loads(done.path.read_text())["traceEvents"]
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {"SM unknown"}


def test_without_a_target_the_folder_s_whole_name_is_kept(tmp_path, monkeypatch):
    trace = timed_trace(tmp_path)
    trace.path.rename(tmp_path / "gemm.v2")
    trace = Trace(tmp_path / "gemm.v2")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for form, name in (("csv", "gemm.v2.csv"), ("chrome", "gemm.v2.trace.json")):
        (done,) = export(trace, all_of(trace), form)
        assert done.path == Path(name)
        assert done.path.is_file()


def test_a_file_that_exists_is_left_alone(tmp_path):
    trace = timed_trace(tmp_path)
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(UserError, match=r"out\.csv exists"):
        export(trace, [0], "csv", tmp_path / "out")
    assert (tmp_path / "out.csv").read_text() == "mine"
    with pytest.raises(UserError, match="cannot write"):
        export(trace, [0], "csv", tmp_path / "none" / "out")


def test_a_damaged_launch_leaves_no_file(tmp_path):
    trace = timed_trace(tmp_path)
    last = trace.results[1]
    last.write_bytes(last.read_bytes()[:-1])
    with pytest.raises(UserError, match="would end at byte"):
        export(trace, [0, 1], "csv", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize("form", FORMATS)
def test_memory_does_not_grow_with_the_launches(tmp_path, form):
    peaks = []
    for launches in (1, 2, 12):
        (tmp_path / str(launches)).mkdir()
        trace = timed_trace(tmp_path / str(launches), launches, grid=(3000, 1, 1))
        tracemalloc.start()
        try:
            export(trace, all_of(trace), form, tmp_path / f"out-{launches}")
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[2] < 1.3 * peaks[1], peaks
