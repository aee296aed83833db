"""What a session records is what a replay of it shows."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpuwatch.engine.options import Options
from gpuwatch.engine.recording import default_folder, record
from gpuwatch.engine.replay import ReplaySession
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.probe.catalogue import folder
from gpuwatch.trace import Trace

EVERY_KIND = '''
"""Maps of every kind."""
from gpuwatch import Map, probe
import gpuwatch.language as gl

@Map(level="warp", type="array", cap="dynamic")
class grown:
    address: gl.u64

@Map(level="sm", type="reduce")
class extremes:
    least: gl.s32 = min
    most: gl.f32 = max
    count: gl.u64 = sum

@Map(level="site", type="reduce")
class traffic:
    bytes: gl.u64 = sum

@Map(level="kernel", type="hist")
class sizes:
    value: gl.u32

@Map(level="thread", type="array", cap=1)
class sampled:
    lane: gl.u32

@probe(pos="st.global", level="thread", before=True)
def stored():
    traffic.save(gl.bytes)
    extremes.save(gl.s32(gl.laneid()) - 7, gl.f32(gl.laneid()), 1)
    sizes.save(gl.laneid())

@probe(pos="st.global", level="warp")
def behind():
    grown.save(gl.addr)

@probe(pos="kernel", level="thread", sample=3)
def leave():
    sampled.save(gl.laneid())
'''


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    probe = tmp_path_factory.mktemp("probe") / "every_kind.py"
    probe.write_text(EVERY_KIND)
    options = Options(
        source=str(folder("kernels") / "gemm.cu"),
        device="sim:a10",
        probe=str(probe),
        arguments=("96", "96", "96"),
    )
    one = Session(options)
    one.prepare()
    yield one
    one.close()


def replayed(path: Path) -> ReplaySession:
    one = ReplaySession(path)
    one.prepare()
    return one


def test_a_replay_shows_the_frame_of_the_session(session: Session, tmp_path: Path) -> None:
    session.select(probe="block_sched")
    session.step()
    live = session.frame()
    replay = replayed(record(session, tmp_path / "t", 2))
    assert all(replay.trace.launch(number).result.facts.modelled for number in range(2))
    replay.step()
    shown = replay.frame()
    assert replay.count == 2 and shown.launches == 2
    for name in (
        "kernel", "mangled", "probe", "grid", "block", "shared_bytes", "blocks", "warps",
        "records", "missing", "dropped", "outputs_identical", "registers_plain",
        "registers_probed", "seconds_plain", "seconds_probed", "resident_blocks",
        "resident_plain", "running_cycles_mean", "idle_cycles_mean", "elapsed",
        "thread_instructions", "printed",
    ):  # fmt: skip
        assert getattr(shown, name) == getattr(live, name), name
    assert live.warps_table is not None and shown.warps_table is not None
    for name in ("warp", "block", "sm", "start", "elapsed"):
        assert np.array_equal(getattr(shown.warps_table, name), getattr(live.warps_table, name))
    assert live.sms is not None and shown.sms is not None
    assert np.array_equal(shown.sms.occupancy, live.sms.occupancy)
    assert shown.device.kind == "replay" and shown.device.modelled
    assert shown.device.sm_count == live.device.sm_count


def test_maps_of_every_kind_survive(session: Session, tmp_path: Path) -> None:
    probe = session._options.probe
    session.select(probe=probe)
    live = session.frame()
    shown = replayed(record(session, tmp_path / "t", 1)).frame()
    assert [one.name for one in live.maps] == ["grown", "extremes", "traffic", "sizes", "sampled"]
    assert live.missing == shown.missing and live.dropped == shown.dropped == 0
    for ours, theirs in zip(shown.maps, live.maps, strict=True):
        assert (ours.name, ours.level, ours.kind) == (theirs.name, theirs.level, theirs.kind)
        assert ours.fields == theirs.fields
        assert np.array_equal(ours.slot, theirs.slot)
        for name, column in theirs.columns.items():
            assert np.array_equal(ours.columns[name], column), name
        assert ours.sites == theirs.sites
        if theirs.buckets is not None:
            assert ours.buckets is not None
            assert np.array_equal(ours.buckets.counts, theirs.buckets.counts)
    assert sum(row.values["bytes"] for row in live.maps[2].sites) == 96 * 96 * 4


def test_the_builds_are_machine_code_and_their_ptx(session: Session, tmp_path: Path) -> None:
    example = folder("probes") / "examples" / "warp_duration.toml"
    session.select(probe=str(example))
    path = record(session, tmp_path / "t", 1)
    (kernel,) = (path / "kernel").iterdir()
    for build in ("original", "pruned", "probed"):
        assert (kernel / f"{build}.bin").read_bytes().startswith(b"\x7fELF")
        assert ".entry _Z8gemm_gpuPKfS0_Pfiii" in (kernel / f"{build}.ptx").read_text()
    assert "gpuwatch_maps" in (kernel / "probed.ptx").read_text()
    assert "Used" in (kernel / "process.log").read_text()
    assert (path / "probe.toml").read_text() == example.read_text()


def test_probes_together_are_written_out(session: Session, tmp_path: Path) -> None:
    session.select(probe="block_sched,warp_duration")
    path = record(session, tmp_path / "t", 1)
    document = tomllib.loads((path / "probe.toml").read_text())
    assert set(document["map"]) == {"block_sched", "warp_duration"}
    frame = replayed(path).frame()
    assert frame.records == 2 * frame.warps


@pytest.mark.parametrize("after", [1, 2])
def test_an_interrupted_recording_is_a_readable_prefix(
    session: Session, tmp_path: Path, after: int
) -> None:
    def interrupts(count: int) -> None:
        if count == after:
            raise KeyboardInterrupt

    session.select(probe="block_sched")
    with pytest.raises(KeyboardInterrupt):
        record(session, tmp_path / "t", 5, interrupts)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert replayed(tmp_path / "t").count == after


def test_a_killed_recording_leaves_a_hidden_folder_that_can_be_read(
    session: Session, tmp_path: Path
) -> None:
    """While it records, what is there is already whole."""
    seen = []

    def looks(_count: int) -> None:
        (hidden,) = tmp_path.iterdir()
        seen.append(len(Trace(hidden).results))

    session.select(probe="block_sched")
    record(session, tmp_path / "t", 3, looks)
    assert seen == [1, 2, 3]


def test_a_folder_that_exists_is_refused_before_anything_runs(
    session: Session, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UserError, match="exists"):
        record(session, tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_folders_of_one_second_have_different_names() -> None:
    names = [default_folder() for _ in range(3)]
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"trace/[A-Z][a-z]{2}\d\d_\d{6}_\d+(_\d+)?", str(one)) for one in names)
