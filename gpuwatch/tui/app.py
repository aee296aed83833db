"""The Textual app: what all screens share, and how it starts and ends."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, NoReturn

from textual.app import App
from textual.command import CommandPalette
from textual.filter import LineFilter
from textual.scrollbar import ScrollBar, ScrollBarRender

from gpuwatch.engine.frame import Watch
from gpuwatch.errors import UserError
from gpuwatch.tui.few_colours import SixteenColours
from gpuwatch.tui.frame_screen import FittedScreen
from gpuwatch.tui.glyphs import ASCII, UNICODE
from gpuwatch.tui.help import Help
from gpuwatch.tui.keymap import Keymap, Where, bindings
from gpuwatch.tui.live_screen import LiveScreen
from gpuwatch.tui.palette import KeyCommands
from gpuwatch.tui.remembered import Remembered, recall, remember
from gpuwatch.tui.start_screen import StartScreen
from gpuwatch.tui.theme import THEME

SHOTS = Path("screenshots")
LOCAL_HZ = 30.0
REMOTE_HZ = 10.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CHECK_SECONDS = 1.0
_LONGEST_NAME = 60
_GC_THRESHOLDS = (100_000, 50, 100)
_SIXTEEN = SixteenColours()


class GpuwatchApp(App[None]):
    """`owns_process` adds what only a program of its own may do: signal handlers and tuning of
    the garbage collector."""

    TITLE = "gpuwatch"
    COMMANDS = {KeyCommands}  # noqa: RUF012 - as Textual declares it
    BINDINGS = bindings("everywhere")
    CSS = """
    Screen { background: $background; overflow: hidden; }
    App.ascii Toast, App.ascii #banner { border: none; }
    App.ascii CommandPalette * { border: none; }
    App.ascii SearchIcon { display: none; }
    """
    AUTO_FOCUS: ClassVar[str | None] = None

    def __init__(
        self,
        watch: Watch,
        *,
        ascii_only: bool = False,
        rate_hz: float = LOCAL_HZ,
        picker: bool = True,
        owns_process: bool = False,
        screen: type[LiveScreen] = LiveScreen,
        first: Callable[[], FittedScreen[None]] | None = None,
        shots: Path = SHOTS,
        kiosk: float | None = None,
        remembered: Remembered | None = None,
        keymap: Keymap | None = None,
    ) -> None:
        """`first` makes the first screen where that is neither the picker nor `screen`; `kiosk`
        goes on by itself after so many seconds; `shots` takes screenshots; `remembered` is how
        the live screen starts; `keymap` has the user's own keys."""
        super().__init__()
        self._shots = shots
        self.kiosk = kiosk
        self.remembered = remembered or Remembered()
        changed = keymap.changed if keymap is not None else {}
        self.keymap = Keymap(changed, several=len(watch.sources()) > 1)
        self.keymap.rebind(self)
        self._live_screen = screen
        self._first = first or (StartScreen if picker else lambda: screen(None, None))
        self.feed = watch
        self.glyphs = ASCII if ascii_only else UNICODE
        self.set_class(ascii_only, "ascii")
        self.rate_hz = rate_hz
        self._owns_process = owns_process
        self.register_theme(THEME)
        if "TEXTUAL_THEME" not in os.environ:
            self.theme = THEME.name

    def get_line_filters(self) -> Sequence[LineFilter]:
        few = self.console.color_system == "standard" and not self.is_headless
        given = super().get_line_filters()
        return [*given, _SIXTEEN] if few else given

    def on_mount(self) -> None:
        self.push_screen(self._first())
        if self._owns_process:
            loop = asyncio.get_running_loop()
            for number in _SIGNALS:
                loop.add_signal_handler(number, self._end_by_signal, number)
            self.set_interval(_CHECK_SECONDS, self._check_terminal)
            self.call_after_refresh(_calm_collector)

    def go_live(self, kernel: str | None, probe: str | None) -> None:
        """From the first screen to the live one."""
        self.switch_screen(self._live_screen(kernel, probe))

    def press(self, action: str) -> None:
        """Does what a key of the footer does."""
        self.call_later(self._act, action)

    async def _act(self, action: str) -> None:
        namespace = self if hasattr(self, f"action_{action}") else self.screen
        await self.run_action(action, namespace)

    def action_finish(self) -> None:
        """Quits, with the status of the error on the screen if there is one."""
        status = self.feed.status()
        failed = status.state in ("failed", "stopped")
        self.exit(return_code=(status.error.status if status.error else 1) if failed else 0)

    @property
    def where(self) -> Where:
        """Which keys count, below whatever dialog is open."""
        below = (one for one in reversed(self.screen_stack) if isinstance(one, FittedScreen))
        return next((screen.where for screen in below), "everywhere")

    def action_help(self) -> None:
        self.push_screen(Help(self.keymap.help_keys(self.where), self.where))

    def action_command_palette(self) -> None:
        self.push_screen(CommandPalette(placeholder="search for an action"))

    def action_shot(self) -> None:
        """Saves the screen as an SVG picture, named by source, probe and time; a browser gets
        it to download."""
        source = re.sub(r"[^\w.-]+", "-", Path(self.feed.source()).stem)[:_LONGEST_NAME]
        frame = self.feed.latest()
        probe = Path(frame.probe).stem if frame is not None else "start"
        stamp = time.strftime("%Y%m%d-%H%M%S")
        name = f"{source}-{probe}-{stamp}.svg"
        if self.is_web:
            self.deliver_screenshot(name)
            return
        try:
            self._shots.mkdir(parents=True, exist_ok=True)
            self.notify(f"saved {self.save_screenshot(name, str(self._shots))}")
        except OSError as problem:
            self.notify(f"no screenshot: {problem}", severity="error")

    def _end_by_signal(self, number: int) -> None:
        if not can_draw():
            self._abandon()
        self.exit(return_code=128 + number)

    def _check_terminal(self) -> None:
        """Textual's thread that writes to the terminal ends when that is gone, and an orderly
        exit would then wait for it for ever. In a browser the one that reads ends so."""
        name = "_key_thread" if self.is_web else "_writer_thread"
        thread = getattr(self._driver, name, None)
        if thread is not None and not thread.is_alive():
            self._abandon()

    def _abandon(self) -> NoReturn:
        """Ends the worker and the process at once: there is no terminal left to restore."""
        self.feed.close()
        os._exit(128 + signal.SIGHUP)


class _BlankScrollBar(ScrollBarRender):
    """Told by its background alone."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def _calm_collector() -> None:
    """Keeps collections of long-lived widgets out of the frames."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _keep(state: Remembered) -> None:
    try:
        remember(state)
    except OSError as problem:
        print(f"gpuwatch: the state of the screen is not saved: {problem}", file=sys.stderr)


def can_draw() -> bool:
    """Whether the streams are a terminal's, or textual-serve's on their way to a browser."""
    served = os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")
    return served or (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty())


def default_rate() -> float:
    """Redraws a second: fewer over SSH."""
    remote = any(name in os.environ for name in ("SSH_CONNECTION", "SSH_TTY"))
    return REMOTE_HZ if remote else LOCAL_HZ


def run_app(
    watch: Watch,
    *,
    ascii_only: bool = False,
    rate_hz: float | None = None,
    picker: bool = True,
    screen: type[LiveScreen] = LiveScreen,
    first: Callable[[], FittedScreen[None]] | None = None,
    shots: Path = SHOTS,
    kiosk: float | None = None,
    keymap: Keymap | None = None,
) -> int:
    """Shows `watch` until the user quits, closes it, and returns the exit status.

    0 after a normal end, 128 + number after SIGINT, SIGTERM or SIGHUP, the error's status when
    quitting from one, 1 after a fault of the screen itself. `picker` starts with the choice of
    kernel and probe; see `GpuwatchApp` for the rest. How the screen is left is remembered for
    the next run.
    Raises UserError when the terminal cannot be drawn on, or what was remembered not be read.
    """
    try:
        if not can_draw():
            raise UserError(
                "the live screen needs a terminal for input, output and stderr",
                hint="use `gpuwatch report` for output to a file or a pipe",
            )
        app = GpuwatchApp(
            watch,
            ascii_only=ascii_only,
            rate_hz=rate_hz or default_rate(),
            picker=picker,
            owns_process=True,
            screen=screen,
            first=first,
            shots=shots,
            kiosk=kiosk,
            remembered=recall(),
            keymap=keymap,
        )
        if ascii_only:
            ScrollBar.renderer = _BlankScrollBar
        thresholds = gc.get_threshold()
        try:
            app.run()
        finally:
            gc.unfreeze()
            gc.set_threshold(*thresholds)
        _keep(app.remembered)
        return app.return_code or 0
    finally:
        watch.close()
