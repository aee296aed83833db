"""`gpuwatch run` in a real terminal, over the stand-in driver."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from inject_support import Fake, children_of

sys.path.append(str(Path(__file__).parents[1] / "terminal"))
from real_terminal import Terminal

pytestmark = pytest.mark.terminal

SLOW = "2000"
"""Microseconds of a launch, so that the program lasts."""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    running = Terminal(tmp_path)
    try:
        yield running
    finally:
        running.close()


def command(fake: Fake, count: int, *words: str) -> list[str]:
    environment = [f"{name}={value}" for name, value in fake.environment().items()]
    program = fake.command("many", count)
    run = [sys.executable, "-m", "gpuwatch", "run", *words, "--"]
    return ["env", *environment, f"FAKE_SLOW_LAUNCH={SLOW}", *run, *program]


def test_a_probe_is_put_on_and_taken_off_and_the_program_goes_on(
    terminal: Terminal, fake: Fake
) -> None:
    terminal.start(command(fake, 4000))
    terminal.wait_for("vadd", "RUNNING", "no probe is attached")
    terminal.press("Enter")
    terminal.wait_for("launches", "records", "32/32")
    terminal.press("2")
    terminal.wait_for("warp_duration", "missing")
    terminal.press("d")
    terminal.wait_for("DETACHED")
    terminal.press("k")
    terminal.wait_for("no probe is attached")
    terminal.press("q")
    screen = terminal.wait_for("no probes any more", "status=0")
    assert "wrong 0" in screen
    assert terminal.alternate() == "0"


def test_a_named_kernel_is_shown_at_once(terminal: Terminal, fake: Fake) -> None:
    terminal.start(command(fake, 2000, "-k", "vadd"))
    terminal.wait_for("block_sched", "records", "32/32")
    terminal.press("q")
    terminal.wait_for("status=0")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_outlives_gpuwatch(
    terminal: Terminal, fake: Fake, number: signal.Signals
) -> None:
    terminal.start(command(fake, 1_000_000, "-k", "vadd"))
    terminal.wait_for("records", "32/32")
    (program,) = children_of(terminal.process)
    try:
        os.kill(terminal.process, number)
        terminal.wait_for(f"status={128 + number}")
        os.kill(program, 0)
    finally:
        os.kill(program, signal.SIGKILL)
