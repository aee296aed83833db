"""A terminal of a test's own, made by tmux."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKE = [sys.executable, str(ROOT / "tests/tui/fake_program.py"), "live"]
REAL = [sys.executable, "-m", "gpuwatch", "gemm", "-d", "sim:a10", "--no-picker", "--"]
REAL += ["128", "128", "128"]
DEADLINE_SECONDS = 60.0
POLL_SECONDS = 0.1
UNWANTED = ("TMUX", "NO_COLOR", "COLUMNS", "LINES")


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

    def start_shell(self) -> None:
        """An interactive shell, which stops and continues what is started in it."""
        shell = "exec env PS1='at the prompt> ' bash --norc --noprofile -i"
        self.tmux("new-session", "-d", "-x", "120", "-y", "40", "-c", str(ROOT), shell)
        self.wait_for("at the prompt>")

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
