"""Graphs, contexts, modules and processes of a program that is probed; a launch that is stored."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path

import numpy as np
import pytest
from inject_support import (
    PROBED_NS,
    Fake,
    Start,
    stop_file,
    whole,
)

from gpuwatch.engine.program_session import ProgramOptions
from gpuwatch.engine.program_watch import RunningProgram
from gpuwatch.errors import UserError
from gpuwatch.inject.server import Server, Wishes
from gpuwatch.launch.exchange import read_capture
from gpuwatch.ptx import parse
from gpuwatch.toolchain.process import Finished


@pytest.mark.parametrize("timed", [True, False])
def test_what_a_graph_captures_is_left_alone(run: Start, timed: bool) -> None:
    """And capturing is not disturbed by a probe that is loaded meanwhile."""
    watched = run("graph", 3, *(() if timed else ("FAKE_NO_ACTIVITY=1",)), kernel="vadd")
    assert len(watched.seen) == 1
    assert watched.seen[0].launch == 0
    vadd = watched.kernel("vadd")
    assert (vadd.launches, vadd.in_graphs) == ((7, 6) if timed else (1, 0))


def test_a_module_that_is_loaded_again(run: Start) -> None:
    watched = run("reload", 3, kernel="vadd")
    assert watched.ended.output.startswith("same handles: 1 1\n")
    assert sorted(one.launch for one in watched.seen) == list(range(6))
    assert watched.launches == [0, 0, 0, 1, 1, 1]
    assert [one.launches for one in watched.kernels] == [2, 2, 2]


def test_variables_lie_elsewhere_after_a_reset(run: Start) -> None:
    watched = run("reset", 2, "FAKE_NO_GAPS=1", loader="library", kernel="tally")
    (attachment,) = watched.session.attachments.values()
    first, second = (one.wanted.addresses["total"] for one in attachment.builds.values())
    assert first != second
    assert watched.errors == ""
    assert sorted(one.launch for one in watched.seen) == [0, 1, 2, 3]


def test_a_variable_that_is_not_found_is_not_replaced(run: Start) -> None:
    watched = run("tally", 3, "FAKE_NO_VARIABLES=1", kernel="tally")
    assert "does not tell where the variable total" in watched.errors
    assert watched.seen == []


def test_records_come_through_memory_that_cannot_be_registered(run: Start) -> None:
    watched = run("threads", 5, "FAKE_NO_PINNING=1", kernel="vadd")
    assert (watched.errors, sorted(one.launch for one in watched.seen)) == ("", list(range(20)))


def test_a_handle_that_comes_to_mean_another_kernel(run: Start) -> None:
    watched = run("replaced", 3, kernel="vadd")
    assert watched.ended.output.startswith("same handle: 1\n")
    assert watched.launches == [0, 1, 2]
    assert (watched.kernel("vadd").launches, watched.kernel("nothing").launches) == (3, 3)


def test_contexts_that_end(run: Start) -> None:
    watched = run("contexts", 6, kernel="vadd")
    assert watched.errors == ""
    assert sorted(one.launch for one in watched.seen) == list(range(12))
    assert {one.seconds for one in watched.seen} == {PROBED_NS / 1e9}


@pytest.mark.parametrize("loader", ["data", "library"])
def test_two_contexts_on_one_gpu(run: Start, loader: str) -> None:
    watched = run("two-contexts", 6, loader=loader, kernel="vadd")
    assert watched.errors == ""
    assert sorted(one.launch for one in watched.seen) == list(range(12))


def test_how_a_program_ends(run: Start) -> None:
    assert run("exit", 3, kernel="vadd").ended.status == 7
    crashed = run("crash", 3, kernel="vadd")
    assert crashed.ended.status == -signal.SIGSEGV
    assert crashed.ended.output == "crash: checksum 3222796800, wrong 0\n"
    (process,) = crashed.session.processes.values()
    assert process.status == f"signal {int(signal.SIGSEGV)}"


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_children_are_processes_of_their_own(run: Start, mode: str) -> None:
    watched = run(mode, 4, kernel="vadd")
    assert len(watched.session.processes) == 2
    for pid in watched.session.processes:
        mine = [one for one in watched.seen if one.pid == pid]
        assert sorted(one.number for one in mine) == list(range(4))
        assert whole(mine)
    assert [one.launches for one in watched.kernels] == [4, 4]


def test_a_child_that_outlives_the_program(start: Start, tmp_path: Path) -> None:
    """It takes no part: the process has ended when the program has."""
    stop, variable = stop_file(tmp_path)
    watched = start("fork-after", 3, variable, kernel="vadd")
    try:
        watched.until(lambda: watched.session.idle)
        assert watched.launches == [0, 1, 2]
    finally:
        stop.touch()


def test_a_launch_is_stored_with_its_memory(start: Start, fake: Fake) -> None:
    watched = start("constant", 4, kernel="scale")
    watched.session.storing = 2
    watched.end()
    assert watched.ended == fake.alone(fake.command("constant", 4))
    stored = watched.session.stored
    assert stored is not None
    assert stored.problem == ""
    module = parse(fake.image("ptx").read_text(), "kernels.ptx")
    folder = stored.process.link.folder
    capture = read_capture(folder, module.entries(), None, Finished(0, ""))
    (launch,) = capture.launches
    assert (launch.kernel, launch.grid, launch.block) == ("scale", (8, 1, 1), (128, 1, 1))
    contents = [np.frombuffer(one, np.float32) for one in launch.buffers]
    assert any((one[:1024] == 2 * np.arange(1024)).all() for one in contents)
    assert np.frombuffer(launch.globals["factor"], np.float32)[0] == 2.0
    os.truncate(folder / "0.buffers", 100)
    cut_off = read_capture(folder, module.entries(), None, Finished(0, ""))
    assert cut_off.launches == ()
    assert "0.buffers has 100 bytes of the 8,192 that were stored" in cut_off.listed[0].error


def test_buffers_that_touch_are_both_stored(start: Start, fake: Fake) -> None:
    watched = start("constant", 1, "FAKE_NO_GAPS=1", kernel="scale")
    watched.session.storing = 0
    watched.end()
    stored = watched.session.stored
    assert stored is not None
    module = parse(fake.image("ptx").read_text(), "kernels.ptx")
    folder = stored.process.link.folder
    (launch,) = read_capture(folder, module.entries(), None, Finished(0, "")).launches
    assert [len(one) for one in launch.buffers] == [4096, 4096]


def test_a_run_of_another_container_is_left_alone() -> None:
    """Its processes are not to be seen here."""
    folder = Path(tempfile.mkdtemp(prefix="gpuwatch-run-999999999-", dir="/dev/shm"))
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(folder / "control"))
            listening.listen()
            server = Server(Wishes(), lambda *_: None)
            server.close()
            server.remove()
            assert folder.exists()
        server = Server(Wishes(), lambda *_: None)
        server.close()
        server.remove()
        assert not folder.exists()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.usefixtures("fake")
def test_a_program_that_cannot_be_started_leaves_nothing() -> None:
    with pytest.raises(UserError):
        RunningProgram(ProgramOptions(command=("/nowhere/program",)))
    assert list(Path("/dev/shm").glob(f"gpuwatch-run-{os.getpid()}-*")) == []
