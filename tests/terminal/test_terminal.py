"""gpuwatch in a real terminal: started, used, ended and killed inside tmux."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from pathlib import Path

import pytest
from real_terminal import DEADLINE_SECONDS, FAKE, POLL_SECONDS, REAL, ROOT, Terminal

pytestmark = pytest.mark.terminal

CHOSEN_BY_2 = " 2 warp_duration "
"""Digit and name share one style only for the active probe; capture-pane -e shows the change."""


@pytest.mark.parametrize("program", [FAKE, REAL], ids=["fake", "real"])
def test_use_and_quit(terminal: Terminal, program: list[str]) -> None:
    terminal.start(program)
    screen = terminal.wait_for("SM occupancy", "MODELLED")
    assert CHOSEN_BY_2 not in screen
    assert terminal.alternate() == "1"
    terminal.press("2")
    terminal.wait_for(CHOSEN_BY_2, "SM occupancy")
    terminal.press("Space")
    terminal.wait_for(" PAUSED ")
    terminal.press("q")
    terminal.wait_for("status=0")
    assert terminal.alternate() == "0"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("program", [FAKE, REAL], ids=["fake", "real"])
def test_a_signal_restores_the_terminal(
    terminal: Terminal, program: list[str], number: signal.Signals
) -> None:
    terminal.start(program)
    terminal.wait_for("SM occupancy")
    terminal.kill(number)
    screen = terminal.wait_for(f"status={128 + number}")
    assert "Traceback" not in screen
    assert (terminal.alternate(), terminal.mouse()) == ("0", "0")


@pytest.mark.parametrize("program", [FAKE, REAL], ids=["fake", "real"])
def test_stopped_and_brought_back(terminal: Terminal, program: list[str]) -> None:
    terminal.start_shell()
    terminal.press(shlex.join(program), "Enter")
    terminal.wait_for("SM occupancy")
    for _ in range(2):
        terminal.press("C-z")
        terminal.wait_for("Stopped", "at the prompt>")
        assert (terminal.alternate(), terminal.mouse()) == ("0", "0")
        terminal.press("echo typed; fg", "Enter")
        screen = terminal.wait_for("SM occupancy", "MODELLED")
        assert "typed" not in screen
        assert terminal.alternate() == "1"
    terminal.press("Space")
    terminal.wait_for(" PAUSED ")
    terminal.press("q")
    terminal.wait_for("at the prompt>")
    terminal.press("echo status=$?", "Enter")
    terminal.wait_for("status=0")
    assert (terminal.alternate(), terminal.mouse()) == ("0", "0")


def test_no_process_outlives_its_terminal(terminal: Terminal) -> None:
    terminal.start(REAL)
    terminal.wait_for("SM occupancy")
    process = terminal.process
    children = _children(process)
    assert children
    terminal.close()
    end = time.monotonic() + DEADLINE_SECONDS
    while any(map(_runs, (process, *children))):
        assert time.monotonic() < end, "a process is still there"
        time.sleep(POLL_SECONDS)


def _children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(number) for number in listed.split()]


def _runs(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_small_terminal_shows_the_size_needed(terminal: Terminal) -> None:
    terminal.start(FAKE, 50, 12)
    screen = terminal.wait_for("this is 50x12")
    assert "SM occupancy" not in screen
    terminal.press("q")
    terminal.wait_for("status=0")


def test_a_fault_in_a_pane_restores_the_terminal_and_fails(terminal: Terminal) -> None:
    terminal.start([sys.executable, str(ROOT / "tests/tui/broken_program.py")])
    terminal.wait_for("SM occupancy")
    terminal.press("x")
    terminal.wait_for("this pane is broken", "status=1")
    assert terminal.alternate() == "0"
    assert terminal.mouse() == "0"


def test_a_storm_of_sizes_ends_in_a_whole_screen(terminal: Terminal) -> None:
    terminal.start(FAKE)
    terminal.wait_for("SM occupancy")
    terminal.press("p")
    for columns, rows in [(2, 2), (200, 60), (60, 16), (3, 50), (150, 3), (2, 2), (80, 24)] * 3:
        terminal.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        time.sleep(0.05)
    terminal.wait_for("SM occupancy", "Source")
    terminal.press("p")
    terminal.wait_for("Warps")
    terminal.press("q")
    terminal.wait_for("status=0")


def test_the_screen_opens_as_it_was_left(terminal: Terminal) -> None:
    terminal.start(FAKE)
    terminal.wait_for("SM occupancy")
    terminal.press("g")
    terminal.wait_for("Log ")
    terminal.press("q")
    terminal.wait_for("status=0")
    terminal.restart(FAKE)
    terminal.wait_for("SM occupancy", "Log ")


def test_an_edit_is_seen_beside_the_running_kernel(terminal: Terminal, tmp_path: Path) -> None:
    source = tmp_path / "gemm.cu"
    text = (ROOT / "kernels/gemm.cu").read_text()
    source.write_text(text)
    command = [sys.executable, "-m", "gpuwatch", str(source), "-d", "sim:a10", "--no-picker"]
    terminal.start([*command, "--", "128", "128", "128"])
    terminal.wait_for("outputs identical")
    source.write_text(text.replace("float sum = 0.0f;", "float sum = 0.0f + nonsense;"))
    terminal.wait_for("nonsense", "the former build runs on")
    source.write_text(text.replace("float sum = 0.0f;", "float sum = 1.0f;"))
    screen = terminal.wait_for("delta")
    assert "nonsense" not in screen
    terminal.press("q")
    terminal.wait_for("status=0")
