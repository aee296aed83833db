"""A probe put on a running program and taken off, and a gpuwatch that goes away."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from inject_support import (
    Fake,
    Start,
    beside,
    key_for,
    stop_file,
    wait_for,
)

from gpuwatch.engine import program_weaver
from gpuwatch.engine.attached import AttachedBuild


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


def test_a_probe_whose_loading_waits_for_launches(start: Start) -> None:
    """As the driver does behind a running kernel, which may itself wait for a launch."""
    slow = ("FAKE_LOAD_BEHIND=20", "FAKE_SLOW_LAUNCH=2000")
    watched = start("many", 300, *slow, kernel="vadd", hold=False, wait=False)
    watched.end()
    assert (watched.ended.status, watched.errors) == (0, "")
    assert watched.seen


@pytest.mark.parametrize("loader", ["data", "library"])
def test_a_kernel_that_runs_plain_later_is_loaded_from_the_first(run: Start, loader: str) -> None:
    watched = run("many", 6, "FAKE_LAZY=1", loader=loader, kernel="vadd", plain_every=1)
    assert (watched.ended.status, watched.errors) == (0, "")
    assert [one.number for one in watched.seen] == [0, 2, 4]
