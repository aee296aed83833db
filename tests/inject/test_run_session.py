"""Programs in a session, as `gpuwatch run` starts them, over a driver that stands in for a GPU."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inject_support import HERE, PLAIN_NS, PROBED_NS, Fake, Seen, Watched, wait_for, watch

from gpuwatch.engine import program_weaver
from gpuwatch.engine.attached import AttachedBuild
from gpuwatch.engine.program_process import key_of
from gpuwatch.engine.program_session import ProgramOptions
from gpuwatch.engine.program_watch import RunningProgram
from gpuwatch.errors import UserError
from gpuwatch.inject.protocol import Shape
from gpuwatch.inject.server import Server, Wishes
from gpuwatch.launch.exchange import read_capture
from gpuwatch.ptx import parse
from gpuwatch.toolchain.process import Finished

Start = Callable[..., Watched]

SLOTS = 8
"""Launches whose records may be under way at once."""


@pytest.fixture
def start(fake: Fake, tmp_path: Path) -> Iterator[Start]:
    """Starts a program in a session that ends with the test."""
    started: list[Watched] = []

    def begin(mode: str, count: int = 3, *environment: str, **options: object) -> Watched:
        loading = [str(options.pop(name, default)) for name, default in _LOADING]
        output = tmp_path / f"output-{len(started)}"
        command = fake.command(mode, count, *loading)
        started.append(watch(fake, output, command, environment, **options))
        return started[-1]

    yield begin
    for one in started:
        one.close()


_LOADING = (("loader", "data"), ("image", "ptx"))


@pytest.fixture
def run(start: Start, fake: Fake) -> Start:
    """Runs one to its end. What it prints and its status are those of the program alone."""

    def go(mode: str, count: int = 3, *environment: str, **options: object) -> Watched:
        loading = [str(options.get(name, default)) for name, default in _LOADING]
        watched = start(mode, count, *environment, **options)
        watched.end()
        assert watched.ended == fake.alone(fake.command(mode, count, *loading), *environment)
        return watched

    return go


def whole(seen: list[Seen]) -> bool:
    """Whether there is a record of every warp, and each is of the launch that it says."""
    return all(one.launch == one.number for one in seen)


# ---- the list of kernels


def test_kernels_are_listed_with_their_launches(run: Start) -> None:
    watched = run("others", 5, hold=False)
    vadd, twice = watched.kernel("vadd"), watched.kernel("twice")
    assert (vadd.launches, twice.launches, vadd.probed, vadd.skipped) == (5, 5, 0, 0)
    assert (vadd.grid, vadd.block, vadd.shapes) == ((8, 1, 1), (128, 1, 1), 1)
    assert vadd.total_seconds == pytest.approx(5 * PLAIN_NS / 1e9)
    assert vadd.mean_seconds == pytest.approx(PLAIN_NS / 1e9)
    assert (vadd.origin, vadd.why, vadd.registers, vadd.static_shared) == ("PTX text", "", 20, 64)
    assert vadd.occupancy == 1.0
    assert watched.seen == []


def test_shapes_of_a_kernel_are_counted_together(run: Start) -> None:
    vadd = run("shapes", 5, hold=False).kernel("vadd")
    assert (vadd.launches, vadd.shapes, vadd.grid) == (5, 2, (8, 1, 1))


@pytest.mark.parametrize(
    ("loader", "image", "origin"),
    [
        ("data", "ptx", "PTX text"),
        ("options", "ptx", "PTX text"),
        ("file", "ptx", "PTX text"),
        ("linked", "ptx", "PTX text"),
        ("library", "ptx", "PTX text"),
        ("library-file", "ptx", "PTX text"),
        ("early", "ptx", "PTX text"),
        ("fatbin", "fatbin", "in the program"),
        ("wrapped", "fatbin", "in the program"),
        ("library", "fatbin", "in the program"),
    ],
)
def test_the_only_launch_of_a_kernel_however_loaded(
    run: Start, loader: str, image: str, origin: str
) -> None:
    watched = run("many", 1, kernel="vadd", loader=loader, image=image)
    assert watched.errors == ""
    assert [(one.name, one.launch) for one in watched.seen] == [("vadd", 0)]
    assert watched.kernel("vadd").origin == origin


def test_machine_code_is_left_alone(run: Start) -> None:
    watched = run("many", 3, kernel="vadd", image="cubin")
    assert watched.seen == []
    assert "machine code" in watched.kernel("vadd").why
    assert watched.kernel("vadd").launches == 3


# ---- probed launches


@pytest.mark.parametrize("how", ["many", "extra", "config", "cooperative", "per-thread", "shared"])
def test_every_launch_has_its_records(run: Start, how: str) -> None:
    watched = run(how, 20, kernel="vadd")
    assert watched.errors == ""
    assert watched.launches == list(range(20))
    assert whole(watched.seen)
    assert {(len(one.table), one.blocks) for one in watched.seen} == {(32, 8)}
    assert {one.seconds for one in watched.seen} == {PROBED_NS / 1e9}
    kernel = watched.kernel("vadd")
    assert (kernel.launches, kernel.probed, kernel.skipped) == (20, 20, 0)
    assert kernel.total_seconds == pytest.approx(20 * PROBED_NS / 1e9)


@pytest.mark.parametrize("kernel", ["constant", "constant-extra", "tally", "wide", "nothing"])
def test_kernels_with_other_needs(run: Start, kernel: str) -> None:
    """Constants and variables of the module, no room for another parameter, none at all."""
    name = "scale" if kernel.startswith("constant") else kernel
    watched = run(kernel, 10, kernel=name)
    assert watched.errors == ""
    assert watched.launches == list(range(10))
    assert whole(watched.seen)


def test_the_own_variables_of_the_program_are_used(run: Start) -> None:
    watched = run("tally", 2, kernel="tally")
    (attachment,) = watched.session.attachments.values()
    (build,) = attachment.builds.values()
    address = build.wanted.addresses["total"]
    assert address != 0
    assert str(address) in build.woven.text or f"{address:#x}" in build.woven.text.lower()


def test_each_shape_has_a_build(run: Start) -> None:
    watched = run("shapes", 9, kernel="vadd")
    assert watched.launches == list(range(9))
    assert whole(watched.seen)
    of = {one.number: (one.build, len(one.table)) for one in watched.seen}
    assert {size for number, (_, size) in of.items() if number % 2 == 0} == {32}
    assert {size for number, (_, size) in of.items() if number % 2} == {2}
    assert len({build for build, _ in of.values()}) == 2


def test_the_figures_of_a_build_are_of_its_shape(run: Start) -> None:
    watched = run("shapes", 5, kernel="vadd")
    (attachment,) = watched.session.attachments.values()
    rows = attachment.process.rows()
    assert rows is not None
    builds = list(attachment.builds.values())
    assert [Shape.of_row(rows[one.row]) for one in builds] == [one.wanted.shape for one in builds]


def test_the_shapes_of_a_kernel_share_the_memory_for_maps(run: Start) -> None:
    watched = run("sizes", 40, kernel="nothing", map_limit=20_000)
    assert "no memory is left for maps of nothing" in watched.errors
    (attachment,) = watched.session.attachments.values()
    assert attachment.problem is None
    assert 0 < len(watched.seen) < 40
    assert attachment.held[0] <= 20_000


def test_only_the_kernels_wanted_are_probed(run: Start) -> None:
    watched = run("others", 4, kernel="twice")
    assert {one.name for one in watched.seen} == {"twice"}
    assert watched.launches == list(range(4))
    assert watched.kernel("vadd").launches == 4
    assert watched.kernel("vadd").probed == 0


def test_a_range_of_launches(run: Start) -> None:
    watched = run("many", 8, kernel="vadd", first=2, last=4)
    assert watched.launches == [2, 3, 4]
    assert whole(watched.seen)
    assert watched.kernel("vadd").skipped == 5


def test_some_launches_are_left_plain(run: Start) -> None:
    watched = run("many", 9, kernel="vadd", plain_every=2)
    assert watched.launches == [0, 1, 3, 4, 6, 7]
    assert whole(watched.seen)
    kernel = watched.kernel("vadd")
    assert (kernel.probed, kernel.skipped) == (6, 3)
    assert kernel.total_seconds == pytest.approx((6 * PROBED_NS + 3 * PLAIN_NS) / 1e9)


def test_a_pace_is_kept(run: Start) -> None:
    watched = run("many", 20, kernel="vadd", pace=0.001)
    assert watched.launches == [0]
    assert watched.kernel("vadd").skipped == 19


def test_where_launches_do_not_wait_some_go_unprobed(run: Start) -> None:
    watched = run("many", 200, kernel="vadd", wait=False)
    kernel = watched.kernel("vadd")
    assert kernel.launches == kernel.probed + kernel.skipped == 200
    assert kernel.probed == len(watched.seen) >= SLOTS
    assert whole(watched.seen)


def test_threads_launch_at_once(run: Start) -> None:
    watched = run("threads", 25, kernel="vadd")
    assert watched.launches == list(range(100))
    assert sorted(one.launch for one in watched.seen) == list(range(100))


def test_launches_that_the_driver_refuses(run: Start) -> None:
    """They are refused as ever, and another shape goes on being probed."""
    watched = run("bad", 3, kernel="vadd")
    assert watched.ended.output.count("launch: 1\n") == 3
    assert [one.launch for one in watched.seen] == [0]
    assert watched.errors == ""


# ---- attaching, and letting go


def stop_file(tmp_path: Path) -> tuple[Path, str]:
    path = tmp_path / "stop"
    return path, f"PROGRAM_STOP={path}"


def key_for(watched: Watched, name: str) -> str:
    """The key of a kernel, once it is known."""

    def found() -> list[str]:
        return [
            key_of(process, kernel)
            for process in watched.session.processes.values()
            for kernel in process.kernels.values()
            if kernel.mangled == name
        ]

    watched.until(found)
    return found()[0]


def test_attaching_while_the_program_runs(start: Start, tmp_path: Path) -> None:
    stop, variable = stop_file(tmp_path)
    watched = start("until", 0, variable, hold=False, wait=False)
    key = key_for(watched, "vadd")
    assert watched.seen == []
    watched.session.attach(key, "block_sched")
    watched.until(lambda: len(watched.seen) > 3)
    watched.session.detach(key)
    watched.session.attach(key, "block_sched")
    before = len(watched.seen)
    watched.until(lambda: len(watched.seen) > before + 3)
    stop.touch()
    watched.end()
    assert (watched.ended.status, watched.errors) == (0, "")
    assert watched.ended.output == "until: checksum 0, wrong 0\n"
    assert all(one.launch >= 0 for one in watched.seen)


def test_another_probe_while_the_first_is_woven(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was woven for the first is not taken for the other's."""
    stop, variable = stop_file(tmp_path)
    begun, go_on, woven = threading.Event(), threading.Event(), program_weaver.build_attached

    def slowly(*words: Any) -> AttachedBuild:
        begun.set()
        go_on.wait()
        return woven(*words)

    watched = start("until", 0, variable, hold=False, wait=False)
    key = key_for(watched, "vadd")
    monkeypatch.setattr(program_weaver, "build_attached", slowly)
    watched.session.attach(key, "block_sched")
    watched.until(begun.is_set)
    second = watched.session.attach(key, "block_sched")
    watched.until(lambda: len(watched.session._weaver._jobs) == 2)
    go_on.set()
    watched.until(lambda: second.taken > 3)
    stop.touch()
    watched.end()
    assert (watched.ended.status, watched.errors) == (0, "")


def test_detaching_gives_the_memory_back(start: Start, tmp_path: Path) -> None:
    """However often the launches are in the driver just then."""
    stop, variable = stop_file(tmp_path)
    slow = "FAKE_SLOW_LAUNCH=2000"
    watched = start("given-back", 0, variable, slow, hold=False, wait=False)
    key = key_for(watched, "vadd")
    watched.session.attach(key, "block_sched")
    watched.until(lambda: watched.seen)
    watched.session.detach(key)
    (process,) = watched.session.processes.values()
    assert not list(process.link.folder.glob("slots-*"))
    stop.touch()
    watched.end()
    assert watched.ended.output.startswith("memory given back: 1\n")
    assert "wrong 0" in watched.ended.output


def test_gpuwatch_goes_away(start: Start, tmp_path: Path) -> None:
    stop, variable = stop_file(tmp_path)
    watched = start("given-back", 0, variable, kernel="vadd")
    watched.until(lambda: len(watched.seen) > 3)
    watched.session.close()
    stop.touch()
    assert watched.session.wait() == 0
    text = watched.output.read_text()
    assert text == "memory given back: 1\ngiven-back: checksum 0, wrong 0\n"


def beside(fake: Fake, output: Path, kernel: str, *command: str) -> list[str]:
    """A session in a process of its own."""
    script = HERE / "inject_support.py"
    given = (script, fake.folder, fake.library, output, kernel)
    return [sys.executable, *map(str, given), *command]


def test_gpuwatch_is_killed(fake: Fake, tmp_path: Path) -> None:
    """The program ends by itself, and is right."""
    stop, variable = stop_file(tmp_path)
    output = tmp_path / "output"
    words = beside(fake, output, "vadd", "env", variable, *fake.command("until", 0))
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    folder = Path(child.stdout.readline().strip())
    try:
        assert child.stdout.readline() == "seen\n"
        child.send_signal(signal.SIGKILL)
        child.wait()
        stop.touch()
        wait_for(lambda: output.read_text().endswith("\n"), os.sched_yield)
        assert output.read_text() == "until: checksum 0, wrong 0\n"
    finally:
        child.kill()
        child.communicate()
        shutil.rmtree(folder)


# ---- what goes wrong


def test_a_probed_kernel_that_cannot_be_launched(run: Start) -> None:
    watched = run("many", 3, "FAKE_REFUSE_PROBED=1", kernel="vadd")
    assert "it cannot be launched: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" in watched.errors
    assert watched.errors.count("it cannot be launched") == 1
    assert watched.seen == []
    kernel = watched.kernel("vadd")
    assert (kernel.launches, kernel.probed) == (3, 0)


def test_one_that_cannot_be_launched_when_gpuwatch_goes_away(start: Start, fake: Fake) -> None:
    environment = ("FAKE_REFUSE_PROBED=1", "FAKE_SLOW_LAUNCH=300000")
    watched = start("many", 1, *environment, kernel="vadd")
    loaded: list[object] = []
    watched.session._HANDLERS = watched.session._HANDLERS | {  # type: ignore[misc]
        "loaded": lambda *words: loaded.append(words)
    }
    watched.until(lambda: loaded)
    watched.session.close()
    assert watched.session.wait() == 0
    assert watched.output.read_text() == fake.alone(fake.command("many", 1)).output


def test_no_memory_for_maps(run: Start) -> None:
    """There is enough for the program, and for a few of the slots."""
    watched = run("many", 3, "FAKE_MEMORY=15000", kernel="vadd")
    assert "no memory for its maps: CUDA_ERROR_OUT_OF_MEMORY" in watched.errors
    assert watched.seen == []
    assert watched.kernel("vadd").launches == 3


@pytest.mark.parametrize("mode", ["wide", "constant", "constant-extra"])
def test_what_a_probed_kernel_needs_cannot_be_given(run: Start, mode: str) -> None:
    watched = run(mode, 3, "FAKE_BROKEN_UPLOAD=1", kernel="scale" if mode != "wide" else mode)
    assert "its parameters cannot be given" in watched.errors
    assert watched.seen == []


@pytest.mark.parametrize("what", ["DOWNLOAD", "EVENTS"])
def test_records_that_cannot_be_copied(run: Start, what: str) -> None:
    watched = run("many", 3, f"FAKE_BROKEN_{what}=1", kernel="vadd")
    assert "the records of a launch were lost" in watched.errors
    assert watched.seen == []


def _mounts() -> bool:
    """Whether a folder in memory can be mounted, so small that it is soon full."""
    words = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/dev/shm"]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not _mounts(), reason="nothing can be mounted here")
@pytest.mark.parametrize(("mode", "count", "size"), [("sizes", 40, "4k"), ("large", 3, "8m")])
def test_no_room_for_the_table_and_for_records(
    fake: Fake, tmp_path: Path, mode: str, count: int, size: str
) -> None:
    """What is mapped from a file that has no room behind it ends a program that writes there."""
    output = tmp_path / "output"
    command = fake.command(mode, count, "file")
    watched = beside(fake, output, "nothing", *command)
    mount = f'mount -t tmpfs -o size={size} none /dev/shm && exec "$@"'
    words = ["unshare", "-rm", "sh", "-c", mount, "sh", *watched]
    told = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "\nnot seen\n0 " in told
    assert ("no memory for its maps" in told) == (mode == "large")
    assert output.read_text() == fake.alone(command).output


def test_another_profiler(run: Start) -> None:
    watched = run("many", 3, "FAKE_SECOND_SUBSCRIBER=1", kernel="vadd")
    assert "another profiler has subscribed" in watched.errors
    assert (watched.seen, watched.kernels) == ([], [])


@pytest.mark.parametrize("kernel", ["", "vadd"])
def test_no_times(run: Start, kernel: str) -> None:
    """Launches are counted all the same, and probed."""
    watched = run("many", 5, "FAKE_NO_ACTIVITY=1", kernel=kernel, hold=bool(kernel))
    assert "CUPTI gives no times" in watched.errors
    vadd = watched.kernel("vadd")
    assert (vadd.launches, vadd.total_seconds) == (5, None)
    probed = list(range(5)) if kernel else []
    assert (watched.launches, vadd.probed) == (probed, len(probed))
    assert {one.seconds for one in watched.seen} <= {0.0}
    assert whole(watched.seen)


def test_fewer_blocks_on_an_sm(run: Start) -> None:
    watched = run("many", 2, "FAKE_FEW_RESIDENT=1", kernel="vadd")
    assert watched.launches == [0, 1]
    (attachment,) = watched.session.attachments.values()
    (build,) = attachment.builds.values()
    assert (build.resident_plain, build.resident_probed) == (8, 4)


# ---- graphs, contexts, modules


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


# ---- processes


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


# ---- a launch that is stored


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
