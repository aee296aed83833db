"""gpuwatch in a real terminal: started, used, ended and killed inside tmux."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

ROOT = Path(__file__).resolve().parents[2]
FAKE = [sys.executable, str(ROOT / "tests/tui/fake_program.py"), "live"]
REAL = [sys.executable, "-m", "gpuwatch", "gemm", "-d", "sim:a10", "--no-picker", "--"]
REAL += ["128", "128", "128"]
DEADLINE_SECONDS = 60.0
POLL_SECONDS = 0.1
UNWANTED = ("TMUX", "NO_COLOR", "COLUMNS", "LINES")
CHOSEN_BY_2 = " 2 warp_duration "
"""Digit and name share one style only for the active probe; capture-pane -e shows the change."""


class Terminal:
    """One tmux server of its own; the shell in its pane prints the program's exit status."""

    def __init__(self, folder: Path) -> None:
        self._base = ["tmux", "-L", f"gpuwatch-test-{uuid.uuid4().hex}", "-f", "/dev/null"]
        self._folder = folder
        self._env = {k: v for k, v in os.environ.items() if k not in UNWANTED}
        self._env |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self._env["GPUWATCH_CONFIG_DIR"] = str(folder)

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            [*self._base, *words],
            env=self._env,
            check=True,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
        )
        return done.stdout

    def start(self, program: list[str], columns: int = 120, rows: int = 40) -> None:
        pid_file = shlex.quote(str(self._pid_file))
        inner = f"echo $$ > {pid_file}; exec {shlex.join(program)}"
        shell = f'sh -c {shlex.quote(inner)}; echo "status=$?"; exec cat'
        size = ["-x", str(columns), "-y", str(rows)]
        self.tmux("new-session", "-d", *size, "-c", str(ROOT), shell)

    def restart(self, program: list[str]) -> None:
        """Another program in another window, once the first has ended."""
        self._pid_file.unlink()
        inner = f"echo $$ > {shlex.quote(str(self._pid_file))}; exec {shlex.join(program)}"
        self.tmux("new-window", "-c", str(ROOT), f"sh -c {shlex.quote(inner)}; exec cat")

    def mouse(self) -> str:
        return self.tmux("display-message", "-p", "#{mouse_any_flag}").strip()

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def screen(self) -> str:
        """The visible text, with escape sequences wherever the style changes."""
        return self.tmux("capture-pane", "-e", "-p")

    def alternate(self) -> str:
        return self.tmux("display-message", "-p", "#{alternate_on}").strip()

    @property
    def process(self) -> int:
        return int(self._pid_file.read_text())

    def kill(self, number: signal.Signals) -> None:
        os.kill(self.process, number)

    def wait_for(self, *texts: str) -> str:
        """The first screen that shows all `texts`."""
        end = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < end:
            screen = self.screen()
            if all(text in screen for text in texts):
                return screen
            time.sleep(POLL_SECONDS)
        pytest.fail(f"not all of {texts} within {DEADLINE_SECONDS:.0f} s:\n{self.screen()}")

    def close(self) -> None:
        subprocess.run(
            [*self._base, "kill-server"], env=self._env, check=False, capture_output=True
        )

    @property
    def _pid_file(self) -> Path:
        return self._folder / "pid"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    running = Terminal(tmp_path)
    try:
        yield running
    finally:
        running.close()


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("program", [FAKE, REAL], ids=["fake", "real"])
def test_a_signal_restores_the_terminal(
    terminal: Terminal, program: list[str], number: signal.Signals
) -> None:
    terminal.start(program)
    terminal.wait_for("SM occupancy")
    terminal.kill(number)
    terminal.wait_for(f"status={128 + number}")
    assert terminal.alternate() == "0"


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


@pytest.mark.parametrize("term", ["xterm", "xterm-256color"])
def test_few_colours_and_none_are_enough(terminal: Terminal, term: str) -> None:
    terminal.start(["env", f"TERM={term}", "NO_COLOR=1", *FAKE])
    screen = terminal.wait_for("SM occupancy", "MODELLED")
    assert not re.search(r"\x1b\[[0-9;]*38;2;(?!(\d+);\1;\1)", screen)
    terminal.press("2")
    terminal.wait_for("warp_duration")
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
