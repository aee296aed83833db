"""Traces looked at launch by launch, and played on the live screen."""

from __future__ import annotations

import contextlib
import io
import struct
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from trace_support import BLOCK_SCHED, kernel_facts, kernels, launched, write_trace
from worker_support import until

from gpuwatch.engine import report
from gpuwatch.engine.replay import NO_OCCUPANCY, ReplaySession
from gpuwatch.engine.replay_texts import inserted_lines
from gpuwatch.engine.replay_watch import ReplayWatch
from gpuwatch.errors import UserError
from gpuwatch.trace.facts import LaunchFacts
from gpuwatch.trace.writer import Build, TraceWriter
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.bars import Header
from gpuwatch.tui.replay_screen import ReplayScreen

FACTS = kernel_facts([BLOCK_SCHED], always=frozenset(("block_sched",)))


def timed(number: int):
    """A launch whose warps all take 100 cycles more than those of the launch before."""
    launch = launched(FACTS, np.random.default_rng(1), full=True)
    rows = launch.buffers[0].view("<u8,<u4,<u4")
    rows["f0"], rows["f1"], rows["f2"] = 1000, 100 * (number + 1), np.arange(12) % 5
    return launch


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "t", [timed(number) for number in range(4)])


def prepared(path: Path, kernel: str = "") -> ReplaySession:
    session = ReplaySession(path, kernel)
    session.prepare()
    return session


def test_launch_by_launch(trace: Path) -> None:
    session = prepared(trace)
    assert (session.count, session.position, session.launches) == (4, 0, 1)
    session.step()
    frame = session.frame()
    assert (frame.launches, frame.running_cycles_mean) == (2, 200.0)
    assert frame.warps_table is not None
    assert set(frame.warps_table.average) == {150.0}
    assert frame.seconds_probed == pytest.approx(1.5e-5)
    assert frame.notes[-1].startswith("recorded launch 2 of 4, ")
    assert (frame.recorded, frame.launch) == ((2, 4), 2)
    assert frame.device.kind == "replay"
    assert frame.printed == "hello\n"


def test_behind_the_last_launch_comes_the_first(trace: Path) -> None:
    session = prepared(trace)
    for _ in range(4):
        session.step()
    assert (session.position, session.launches) == (0, 1)


@pytest.mark.parametrize(("wanted", "found"), [(2, 2), (-7, 0), (99, 3)])
def test_seeking(trace: Path, wanted: int, found: int) -> None:
    session = prepared(trace)
    session.seek(wanted)
    frame = session.frame()
    assert session.position == found
    assert (frame.launches, frame.running_cycles_mean) == (1, 100.0 * (found + 1))


def test_reset_forgets_the_launches_before(trace: Path) -> None:
    session = prepared(trace)
    session.step()
    session.step()
    session.reset()
    assert (session.position, session.launches) == (2, 1)


def test_one_result_file_alone(trace: Path) -> None:
    third = sorted((trace / "result").iterdir())[2]
    session = prepared(third)
    assert session.count == 1
    assert session.frame().running_cycles_mean == 300.0


def test_every_launch_can_be_picked(trace: Path) -> None:
    (choice,) = prepared(trace).kernels()
    assert choice.demangled == "copy(int *)"
    assert choice.launches == 4
    assert [shape.index for shape in choice.shapes] == [0, 1, 2, 3]
    with pytest.raises(UserError, match="matches no kernel") as caught:
        prepared(trace, "nothing")
    assert "copy(int *)" in caught.value.detail
    assert prepared(trace, "copy").count == 4


def test_a_whole_name_wins_over_parts(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.text("probe.toml", "# a probe\n")
    build = Build(".version 8.0\n", b"\x7fELF", "ptxas info\n")
    builds = dict.fromkeys(("original", "pruned", "probed"), build)
    for number, name in enumerate(("k_two(int *)", "k(int *)")):
        launch = timed(number)
        facts = replace(FACTS, name=name, mangled=f"_Z{number}")
        folder = writer.kernel(number, facts, builds)
        writer.launch(facts, launch.layout, launch.read_map, LaunchFacts(folder, number, 1e-5))
    folder = writer.finish()
    assert prepared(folder, "k").facts.name == "k(int *)"
    with pytest.raises(UserError, match="matches several kernels") as caught:
        prepared(folder, "int")
    assert "k_two(int *)" in caught.value.detail


def test_missing_records_are_missing(tmp_path: Path) -> None:
    launch = timed(0)
    launch.buffers[1].view(np.uint32)[[3, 7]] = 0
    frame = prepared(write_trace(tmp_path / "t", [launch])).frame()
    assert (frame.records, frame.missing, frame.dropped) == (10, 2, 0)


def test_a_trace_of_neutrino_has_no_occupancy(tmp_path: Path) -> None:
    folder = tmp_path / "n"
    (folder / "result").mkdir(parents=True)
    (folder / "probe.toml").write_text(
        '[map.m]\nlevel = "warp"\ntype = "array"\nsize = 16\ncap = 1\n'
        '[map.m.regs]\nstart = ["u64"]\nelapsed = ["u32"]\ncuid = ["u32"]\n'
    )
    content = struct.pack("<8i", 2, 1, 1, 32, 1, 1, 0, 1) + struct.pack("<IIQ", 16, 32, 48)
    content += struct.pack("<QII", 100, 10, 0) + struct.pack("<QII", 130, 20, 0)
    (folder / "result" / "0.297500.bin").write_bytes(content)
    frame = prepared(folder).frame()
    assert frame.sms is None and NO_OCCUPANCY in frame.notes
    assert (frame.running_cycles_mean, frame.idle_cycles_mean) == (15.0, 10.0)
    assert frame.outputs_identical is None and frame.seconds_plain == 0
    console = Console(width=120, record=True, file=io.StringIO())
    report.render(frame, console)
    said = console.export_text()
    assert NO_OCCUPANCY in said and "records no SM" not in said, "it does; the GPU is not known"


def test_launches_of_other_maps_are_refused(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t", [timed(0), timed(1)])
    second = sorted((folder / "result").iterdir())[1]
    content = bytearray(second.read_bytes())
    content[12:16] = struct.pack("<i", 96)
    second.write_bytes(bytes(content))
    session = prepared(folder)
    with pytest.raises(UserError, match="the kernel's is"):
        session.step()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(facts=kernels(), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_any_altered_records_make_a_frame_or_are_refused(tmp_path_factory, facts, seed, data):
    """Whatever the records say: SMs that no GPU has, spans that wrap around."""
    random = np.random.default_rng(seed)
    facts = replace(facts, always=frozenset((facts.maps[0].name,)))
    folder = write_trace(tmp_path_factory.mktemp("trace") / "t", [launched(facts, random)])
    (path,) = (folder / "result").iterdir()
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + 8] = data.draw(st.binary(min_size=1, max_size=8))
    path.write_bytes(bytes(content))
    with contextlib.suppress(UserError), np.errstate(all="ignore"):
        prepared(folder).frame()


def test_woven_lines_are_those_that_the_original_lacks() -> None:
    assert inserted_lines("a\nb\na\n", "x\na\nb\ny\na\nz\n") == (1, 4, 6)
    assert inserted_lines("", "a\nb") == (1, 2)


# ---- played


def test_it_plays_to_the_end_and_stops(trace: Path) -> None:
    watch = ReplayWatch(trace, callback=None)
    watch.faster(10)
    until(lambda: watch.status().aside == "stopped at launch 4 of 4")
    frame = watch.latest()
    assert frame is not None and frame.launches == 4
    watch.play_or_stop()
    until(lambda: "playing, 32 launches a second" in watch.status().aside)
    watch.close()


def test_moving_stops_and_seeks(trace: Path) -> None:
    watch = ReplayWatch(trace, callback=None)
    watch.play_or_stop()
    watch.select(launch=1)
    until(lambda: watch.status().aside == "stopped at launch 2 of 4")
    watch.move(1)
    until(lambda: watch.status().aside == "stopped at launch 3 of 4")
    frame = watch.latest()
    assert frame is not None and frame.launches == 2, "one further counts on"
    watch.move(-10)
    until(lambda: watch.status().aside == "stopped at launch 1 of 4")
    watch.close()


def test_a_launch_that_is_damaged_is_told_and_the_others_stay(trace: Path) -> None:
    third = sorted((trace / "result").iterdir())[2]
    whole = third.read_bytes()
    watch = ReplayWatch(trace, callback=None)
    watch.play_or_stop()
    third.write_bytes(whole[:-1])
    watch.select(launch=2)
    until(lambda: watch.status().state == "failed")
    error = watch.status().error
    assert error is not None and "would end at byte" in error.message
    watch.move(-10)
    until(lambda: watch.status().state == "running")
    watch.close()


def test_a_fault_of_ours_is_told_and_the_thread_goes_on(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = ReplayWatch(trace, callback=None)
    watch.play_or_stop()
    until(lambda: "stopped" in watch.status().aside)
    with monkeypatch.context() as patch:
        patch.setattr(ReplaySession, "seek", Mock(side_effect=ZeroDivisionError("nothing")))
        watch.move(-1)
        until(lambda: watch.status().state == "failed")
    assert "internal error in the replay: ZeroDivisionError: nothing" in watch.status().detail
    watch.move(-1)
    until(lambda: watch.status().state == "running")
    watch.close()


def test_sessions_are_closed_when_they_are_done_with(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = Mock()
    monkeypatch.setattr(ReplaySession, "close", lambda self: closed(self))
    watch = ReplayWatch(trace, callback=None)
    watch.restart()
    until(lambda: closed.call_count == 1)
    watch.close()
    until(lambda: closed.call_count == 2)
    first, second = (call.args[0] for call in closed.call_args_list)
    assert first is not second


def test_the_callback_s_words_are_in_the_log(trace: Path, tmp_path: Path) -> None:
    callback = tmp_path / "callback.py"
    callback.write_text("print('forty-two'); raise SystemExit(4)")
    watch = ReplayWatch(trace, callback=str(callback))
    until(lambda: any("failed" in entry.text for entry in watch.log()))
    said = [entry.text for entry in watch.log()]
    assert "recording ends, 4 launches" in said[0] and "ptxas info" in said[1]
    assert said[2:] == [
        "callback callback.py:\nforty-two",
        "the callback callback.py failed: it ended with status 4",
    ]
    watch.close()


async def test_keys_of_the_replay_screen(trace: Path) -> None:
    watch = ReplayWatch(trace, callback=None)
    app = GpuwatchApp(watch, picker=False, screen=ReplayScreen)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("full_stop")
        await pilot.pause(0.2)
        assert watch.status().aside.startswith("stopped at launch")
        await pilot.press("greater_than_sign")
        until(lambda: watch.status().aside == "stopped at launch 4 of 4")
        await pilot.pause(0.2)
        headline = app.screen.query_one(Header).render_line(0).text
        assert "launch 4 of 4" in headline and "/s" not in headline
        await pilot.press("less_than_sign")
        await pilot.pause(0.2)
        assert watch.status().aside == "stopped at launch 1 of 4"
        slower, faster = "left_square_bracket", "right_square_bracket"
        await pilot.press(slower, slower, faster, "space")
        until(lambda: "playing, 1 launches a second" in watch.status().aside)
        await pilot.press("question_mark")
        await pilot.pause(0.2)
        shown = app.export_screenshot()
        assert "ten" in shown and "launches" in shown
    watch.close()
