"""The commands that run a program, over the stand-in driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from inject_support import Ended, Fake, children_of, wait_for

from gpuwatch.trace import Trace


def gpuwatch(fake: Fake, *words: str | Path, more: tuple[str, ...] = ()) -> tuple[Ended, str]:
    """How the command ended, with what came out on standard output; and its errors."""
    done = subprocess.run(
        [sys.executable, "-m", "gpuwatch", *map(str, words)],
        env={**os.environ, **fake.environment(*more)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return Ended(done.stdout, done.returncode), done.stderr


def test_the_kernels_are_listed_behind_the_programs_own_output(fake: Fake) -> None:
    command = fake.command("many", 5)
    ended, listed = gpuwatch(fake, "run", "--no-screen", "--", *command)
    assert ended == fake.alone(command)
    assert "vadd" in listed and "PTX text" in listed and "<<<8x1, 128x1>>>" in listed


def test_values_of_a_probed_kernel(fake: Fake, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    ended, errors = gpuwatch(fake, "run", "--json", report, "-k", "vadd", "--",
                             *fake.command("exit", 5))  # fmt: skip
    assert (ended.status, errors) == (7, "")
    values = json.loads(report.read_text())
    (kernel,) = values["kernels"]
    assert (kernel["launches"], kernel["probed"], kernel["probeable"]) == (5, 5, True)
    (frame,) = values["frames"]
    assert frame["outputs_identical"] is None
    assert (kernel["registers"], frame["kernel_seconds"]["plain"]) == (None, None)
    assert frame["kernel_seconds"]["probed"] > 0
    assert frame["attached"] == {"process": kernel["process"], "seen": 5, "probed": 5, "skipped": 0}


@pytest.mark.parametrize(
    ("wanted", "launches"), [((), 30), (("-n", "4"), 4), (("--range", "3:9"), 7)]
)
def test_launches_are_recorded(
    fake: Fake, tmp_path: Path, wanted: tuple[str, ...], launches: int
) -> None:
    trace, command = tmp_path / "trace", fake.command("many", 30)
    ended, errors = gpuwatch(fake, "record", "--no-callback", "-o", trace, *wanted, "--", *command)
    assert ended == fake.alone(command), errors
    found = Trace(trace)
    assert len(found.results) == launches
    shown, _ = gpuwatch(fake, "report", trace)
    assert "kernel 6.0 us probed, " in shown.output
    events = (trace / "event.log").read_text()
    assert "uses CUDA" in events and "program ends with status 0" in events


def test_a_stored_launch_is_a_source(fake: Fake, tmp_path: Path) -> None:
    stored, command = tmp_path / "one", fake.command("many", 5)
    ended, errors = gpuwatch(fake, "capture", "-k", "vadd", "--launch", "3", "-o", stored, "--",
                             *command)  # fmt: skip
    assert ended == fake.alone(command), errors
    shown, errors = gpuwatch(fake, "report", stored, "-d", "sim:h200", "--json")
    assert shown.status == 0, errors
    values = json.loads(shown.output)
    assert values["outputs_identical"] is True and values["launch"]["grid"] == [8, 1, 1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run",), "no program to run"),
        (("run", "-k", "x", "-p", "nosuch", "--", "true"), "no such probe"),
        (("run", "-p", "dmat", "--", "true"), "no kernel is chosen to be probed, which --probe"),
        (("run", "--json", "/", "--", "true"), "is a folder"),
        (("run", "--json", "/no/such/folder/a", "--", "true"), "is in no folder that exists"),
        (("run", "--", "/no/such/program"), "cannot run"),
        (("record", "-d", "sim", "--", "true"), "cannot follow --device"),
        (("capture", "-o", "x", "--", "true"), "-k"),
    ],
)
def test_what_a_user_can_mend(fake: Fake, words: tuple[str, ...], said: str) -> None:
    ended, errors = gpuwatch(fake, *words)
    assert ended.status == 2 and said in errors and "Traceback" not in errors


def test_nothing_recorded_is_told(fake: Fake, tmp_path: Path) -> None:
    trace, command = tmp_path / "trace", fake.command("many", 3)
    ended, errors = gpuwatch(fake, "record", "-k", "nosuch", "-o", trace, "--", *command)
    assert ended.status == 1 and "no launch was recorded" in errors
    assert not trace.exists()


def test_why_nothing_was_probed_is_told(fake: Fake) -> None:
    command = fake.command("many", 3)
    _, errors = gpuwatch(fake, "run", "--no-screen", "-k", "nosuch", "--", *command)
    assert "no kernel has 'nosuch' in its name; launched were vadd" in errors
    _, errors = gpuwatch(fake, "run", "--no-screen", "-k", "vadd", "--range", "9:", "--", *command)
    assert "there were 3 launches of it, counted from 0" in errors


def test_a_crash_is_told_with_the_list(fake: Fake) -> None:
    ended, errors = gpuwatch(fake, "run", "--no-screen", "--", *fake.command("crash", 20))
    assert ended.status == 128 + signal.SIGSEGV
    assert "has ended at once, by signal 11" in errors and "launched no kernel" not in errors


def test_a_recording_ended_by_a_signal_is_kept(fake: Fake, tmp_path: Path) -> None:
    trace, environment = tmp_path / "trace", {**os.environ, **fake.environment()}
    words = ["record", "--no-callback", "-o", str(trace), "--", *fake.command("many", 10**6)]
    errors = tmp_path / "errors"
    with errors.open("wb") as file:
        child = subprocess.Popen(
            [sys.executable, "-m", "gpuwatch", *words],
            env={**environment, "FAKE_SLOW_LAUNCH": "2000"}, stdout=file, stderr=file,
        )  # fmt: skip
    wait_for(lambda: any(tmp_path.glob(".trace.recording-*/result/*.bin")), lambda: time.sleep(0.1))
    (program,) = children_of(child.pid)
    try:
        child.terminate()
        assert child.wait(60) == 128 + signal.SIGTERM
        assert f"goes on as process {program}" in errors.read_text()
        assert Trace(trace).results
    finally:
        os.kill(program, signal.SIGKILL)
