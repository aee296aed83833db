"""Trace folders: what is in them, how they come to be, and those of Neutrino."""

from __future__ import annotations

import re
import struct
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_support import BLOCK_SCHED, kernel_facts, kernels, launched, write_trace

from gpuwatch.errors import UserError
from gpuwatch.probe import load
from gpuwatch.probe.catalogue import folder
from gpuwatch.ptx import parse
from gpuwatch.trace import Trace, records_of
from gpuwatch.trace.facts import Figures, LaunchFacts
from gpuwatch.trace.info import read_info, toml_value, write_info
from gpuwatch.trace.probe_text import probe_text
from gpuwatch.trace.prune import prune
from gpuwatch.trace.values import harmless
from gpuwatch.trace.writer import Build, TraceWriter


def some_launch(seed=1):
    return launched(kernel_facts([BLOCK_SCHED]), np.random.default_rng(seed))


def test_every_file_of_the_listing_is_there(tmp_path):
    folder = write_trace(tmp_path / "t", [some_launch(1), some_launch(2)])
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    (kernel,) = (folder / "kernel").iterdir()
    assert re.fullmatch(r"0_[0-9a-f]{40}", kernel.name)
    builds = [f"{build}.{kind}" for build in ("original", "probed", "pruned") for kind in "pb"]
    files = {f"kernel/{kernel.name}/{name}tx" for name in builds if name.endswith("p")}
    files |= {f"kernel/{kernel.name}/{name}in" for name in builds if name.endswith("b")}
    files |= {f"kernel/{kernel.name}/{name}" for name in ("kernel.info", "process.log")}
    results = [name for name in names if name.startswith("result/")]
    assert set(names) == files | {"event.log", "probe.toml", "read.py", *results}
    assert len(results) == 2 and all(re.fullmatch(r"result/\d+\.\d{6}\.bin", x) for x in results)
    log = (folder / "event.log").read_text().splitlines()
    said = ["recording", "kernel", "launch", "launch", "recording"]
    assert [line.split()[1] for line in log] == said


def test_results_come_in_the_order_of_time(tmp_path):
    folder = write_trace(tmp_path / "t", [some_launch(seed) for seed in range(12)])
    first, *_ = Trace(folder).results
    first.rename(first.with_name("10.000000.bin"))
    trace = Trace(folder)
    numbers = [trace.launch(k).result.facts.number for k in range(12)]
    assert numbers == [*range(1, 12), 0]


def test_the_folder_has_its_name_only_when_it_is_whole(tmp_path):
    launch = some_launch()
    writer = TraceWriter(tmp_path / "t")
    assert not (tmp_path / "t").exists()
    assert writer.folder.name.startswith(".t.")
    writer.launch(launch.facts, launch.layout, launch.read_map, LaunchFacts("0_x"))
    assert writer.finish() == tmp_path / "t"
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_an_abandoned_recording_keeps_its_launches_or_nothing(tmp_path):
    launch = some_launch()
    assert TraceWriter(tmp_path / "none").abandon() is None
    assert list(tmp_path.iterdir()) == []
    writer = TraceWriter(tmp_path / "some")
    path = writer.launch(launch.facts, launch.layout, launch.read_map, LaunchFacts("0_x"))
    assert writer.abandon() == tmp_path / "some"
    assert (tmp_path / "some" / "result" / path.name).is_file()


def test_a_launch_that_cannot_be_written_leaves_no_file(tmp_path):
    launch = some_launch()
    writer = TraceWriter(tmp_path / "t")

    def fails(index: int) -> np.ndarray:
        if index == 0:
            raise OSError(28, "No space left on device")
        return launch.read_map(index)

    with pytest.raises(UserError, match="No space left") as caught:
        writer.launch(launch.facts, launch.layout, fails, LaunchFacts("0_x"))
    assert caught.value.status == 1
    assert list((writer.folder / "result").iterdir()) == []


def test_an_event_that_cannot_be_written_is_told_and_ends_no_recording(tmp_path):
    launch = some_launch()
    writer = TraceWriter(tmp_path / "t")
    writer.launch(launch.facts, launch.layout, launch.read_map, LaunchFacts("0_x"))
    (writer.folder / "event.log").unlink()
    (writer.folder / "event.log").mkdir()
    with pytest.raises(UserError, match="cannot write") as caught:
        writer.event("more")
    assert caught.value.status == 1
    assert writer.abandon() == tmp_path / "t"
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_a_kernel_s_folder_that_cannot_be_made_is_told(tmp_path):
    writer = TraceWriter(tmp_path / "t")
    (writer.folder / "kernel").write_text("in the way")
    builds = dict.fromkeys(("original", "pruned", "probed"), Build("", b""))
    with pytest.raises(UserError, match="cannot write"):
        writer.kernel(0, some_launch().facts, builds)


def test_a_recording_that_cannot_begin_leaves_nothing(tmp_path, monkeypatch):
    def fails(*_arguments, **_keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", fails)
    with pytest.raises(UserError, match="No space left"):
        TraceWriter(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_left_alone(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "mine").write_text("x")
    with pytest.raises(UserError, match="exists"):
        TraceWriter(tmp_path / "t")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="exists"):
        TraceWriter(tmp_path / "file")
    with pytest.raises(UserError, match="cannot write"):
        TraceWriter(tmp_path / "file" / "below")


@given(kernels(), st.text(), st.text())
def test_facts_survive_being_written(facts, name, note):
    figures = Figures(40, 42, 0, 8, 2, 1, 8192, 1e-4, 1.5e-4, True)
    always = frozenset((facts.maps[0].name,))
    facts = replace(facts, name=name, notes=(note,), figures=figures, always=always, folder="0_x")
    read = read_info(tomllib.loads(write_info(facts)), Path("kernel/0_x/kernel.info"))
    assert read == replace(facts, name=harmless(name), notes=(harmless(note),))


@given(st.text())
def test_texts_as_toml(text):
    assert tomllib.loads(f"a = {toml_value([text])}") == {"a": [text]}


def test_probe_toml_of_a_toml_probe_is_the_file_itself():
    example = folder("probes") / "examples" / "warp_duration.toml"
    text = example.read_text()
    assert probe_text(load(str(example)), [(example.name, text)]) == text


def test_probe_toml_of_a_python_probe_has_its_maps_and_statements():
    program = load("block_sched")
    text = probe_text(program, [("block_sched.py", Path(program.source).read_text())])
    document = tomllib.loads(text)
    assert document["map"]["block_sched"]["regs"]["elapsed"] == ["u32", "None"]
    assert document["CALLBACK"] == "block_sched_callback.py"
    assert "gl.clock()" in document["probe"]["leave"]["after"]


MODULE = """\
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .u32 unused;
.global .u64 table[2] = {generic(first), generic(second)};
.global .u32 first, second = 3;
.func helper() { .reg .u64 %r; mov.u64 %r, table; ret; }
.visible .entry wanted() { call helper; ret; }
.visible .entry other() { .reg .u64 %r; mov.u64 %r, unused; ret; }
"""


def test_pruning_keeps_what_is_in_reach():
    kept = parse(prune(parse(MODULE, "x"), "wanted"), "y")
    assert [one.name for one in kept.functions] == ["helper", "wanted"]
    assert [one.name for one in kept.variables] == ["table", "first", "second"]
    other = parse(prune(parse(MODULE, "x"), "other"), "y")
    assert [one.name for one in other.functions] == ["other"]
    assert [one.name for one in other.variables] == ["unused"]
    assert (other.version, other.target) == ("8.0", "sm_80")


def test_pruning_keeps_lines_as_they_were():
    text = prune(parse(MODULE, "x"), "wanted")
    assert set(text.split("\n")) <= set(MODULE.split("\n"))
    with pytest.raises(KeyError):
        prune(parse(MODULE, "x"), "none")


# ---- traces of Neutrino

PROBE = """\
regs = 4
CALLBACK = "anything.py"
[probe.timing]
level = "warp"
pos = "kernel"
before = "mov.u64 %NR0, %clock64;"
after = "SAVE [ block_sched ] { %NR0, %NR1, %NR2 };"
[map.block_sched]
level = "warp"
type = "array"
size = "16"
cap = "1"
[map.block_sched.regs]
start = [ "u64", "None" ]
elapsed = [ "u32", "None" ]
cuid = [ "u32", "None" ]
"""


def neutrino_trace(folder: Path, rows, grid=(2, 1, 1), block=(64, 1, 1)) -> Path:
    """As Neutrino writes it: header, one section, slots; nothing in between."""
    (folder / "result").mkdir(parents=True)
    (folder / "probe.toml").write_text(PROBE)
    kernel = folder / "kernel" / "0_d02df43f"
    kernel.mkdir(parents=True)
    (kernel / "kernel.info").write_text("_Z8gemm_gpuPKfS0_Pfiii\n6\n")
    content = struct.pack("<8i", *grid, *block, 0, 1) + struct.pack("<IIQ", 16, 32, 48)
    content += b"".join(struct.pack("<QII", *row) for row in rows)
    (folder / "result" / "0.297500.bin").write_bytes(content)
    return folder


def test_a_trace_of_neutrino_opens(tmp_path):
    rows = [(100, 10, 0), (0, 0, 0), (300, 30, 2), (400, 40, 3)]
    found = records_of(Trace(neutrino_trace(tmp_path / "n", rows)).launch(0))
    records = found.maps["block_sched"]
    assert records.records.tolist() == [rows[0], rows[2], rows[3]]
    assert records.missing.tolist() == [1]
    assert found.kernel.name == "_Z8gemm_gpuPKfS0_Pfiii"
    assert found.kernel.always == {"block_sched"}


def test_a_trace_of_neutrino_that_is_cut_off_is_refused(tmp_path):
    folder = neutrino_trace(tmp_path / "n", [(100, 10, 0)])
    with pytest.raises(UserError, match="map block_sched, of 4 slots"):
        records_of(Trace(folder).launch(0))
    (folder / "probe.toml").write_text("regs = 4\n")
    with pytest.raises(UserError, match="has no maps"):
        Trace(folder)
    (folder / "probe.toml").write_text('[map.m]\nsize = 12\n[map.m.regs]\na = [ "u64" ]\nb = "u64"')
    with pytest.raises(UserError, match="its fields take 16"):
        Trace(folder)
