"""The first screen of a running program: the kernels that it launches, as they come."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, cast

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from gpuwatch.engine.frame import Status
from gpuwatch.engine.program_kernels import ProgramKernel, ProgramState, ProgramWatch
from gpuwatch.errors import UserError
from gpuwatch.tui.bars import Footer, StatusLine
from gpuwatch.tui.frame_screen import FittedScreen
from gpuwatch.tui.kernel_names import fitted_name
from gpuwatch.tui.keymap import Where, bindings
from gpuwatch.tui.live_screen import LiveScreen
from gpuwatch.tui.program_detail import ProgramDetail
from gpuwatch.tui.program_filter import NameBar
from gpuwatch.tui.program_header import LaunchesPerSecond, Overview, ProgramHeader
from gpuwatch.tui.program_list import ProgramList
from gpuwatch.tui.program_live_screen import ProgramLiveScreen as ProgramLiveScreen
from gpuwatch.tui.program_live_screen import status_of
from gpuwatch.tui.start_screen import error_text

_LIST_SECONDS = 0.2
"""How often the list takes new figures: faster ones cannot be read."""
_LOW, _HIGH = 20, 32
"""Lines below which all are the list's, and from which a long name is told in several."""
_EMPTY = {
    "starting": "the program starts",
    "running": "waiting for the program's first kernel",
    "ended": "the program has launched no kernel that was seen",
}


class ProgramScreen(FittedScreen[None]):
    """The app's feed must be a `ProgramWatch`. `probe` is what enter attaches, None for the
    watch's own choice; with `straight` the first kernel that the watch itself attaches to is
    shown at once."""

    BINDINGS = bindings("program")
    where: ClassVar[Where] = "program"
    DEFAULT_CSS = """
    ProgramScreen #banner {
        display: none; height: auto; max-height: 40%; padding: 0 1; border-left: thick $error;
        background: $panel;
    }
    ProgramScreen.failed #banner { display: block; }
    ProgramScreen #banner Static { height: auto; }
    ProgramScreen.low ProgramDetail { display: none; }
    ProgramScreen.high ProgramDetail { height: 6; }
    """

    def __init__(self, probe: str | None = None, *, straight: bool = False) -> None:
        super().__init__()
        self._probe = probe
        self._straight = straight
        self._live: ProgramLiveScreen | None = None
        self._error = ""
        self._rate = LaunchesPerSecond()
        self._listed = 0.0
        self._tick = 0

    @property
    def _watch(self) -> ProgramWatch:
        return cast(ProgramWatch, self.gpuwatch.feed)

    @property
    def _list(self) -> ProgramList:
        return self.query_one(ProgramList)

    def parts(self) -> Iterable[Widget]:
        yield ProgramHeader(self.glyphs)
        with VerticalScroll(id="banner", can_focus=False):
            yield Static(id="banner-text")
        yield ProgramList(self.glyphs, "kernels")
        yield ProgramDetail(self.glyphs)
        yield NameBar(id="filter")
        yield StatusLine(self.glyphs)
        yield Footer(self.glyphs, self.where)

    def on_mount(self) -> None:
        self._list.focus()
        self.pull()
        self.set_interval(1 / self.gpuwatch.rate_hz, self.pull)

    def on_screen_resume(self) -> None:
        """Back from a kernel's live screen, where another probe may have been chosen."""
        if self._live is not None:
            self._probe = self._live.probe or self._probe
            self._live = None
        self._listed = 0.0
        self.pull()

    def lay_out(self, width: int, height: int) -> None:  # noqa: ARG002
        self.set_class(height < _LOW, "low")
        self.set_class(height >= _HIGH, "high")

    # ---- pulling

    def pull(self) -> None:
        """Takes what is known of the program by now, unless a live screen covers it."""
        if any(isinstance(screen, LiveScreen) for screen in self.app.screen_stack):
            return
        watch, now = self._watch, time.monotonic()
        attached = watch.watched()
        if self._straight and attached is not None:
            self._straight = False
            self._open(attached)
            return
        program, status = watch.program(), status_of(watch)
        self._rate.add(now, program.launches)
        self._tick += 1
        if now - self._listed >= _LIST_SECONDS:
            self._listed = now
            self._list.show(watch.program_kernels(), watch.watched(), _EMPTY[program.state])
            self._show_detail()
            self._show_header(program)
        self._show_banner(status)
        notes = (f"output in {program.output}",) if program.output else ()
        waited = program.state != "ended" and not self._list.rows.kernels
        waiting = _EMPTY[program.state] if waited and not status.detail else ""
        line = self.query_one(StatusLine)
        line.show(status, notes, waiting, self._tick, self._at_rest(program))

    def _show_header(self, program: ProgramState) -> None:
        watch = self._watch
        device, frame = watch.device(), watch.latest()
        probe = self._probe or (frame.probe if frame is not None else "")
        overview = Overview(
            program=program,
            processes=tuple(watch.processes()),
            kernels=len(self._list.rows.kernels),
            per_second=self._rate.value,
            device="" if device is None else device.name,
            probes=tuple(replace(one, problem="") for one in watch.probes()),
            probe=probe,
        )
        self.query_one(ProgramHeader).show(overview)

    def _show_detail(self) -> None:
        self.query_one(ProgramDetail).show(self._list.kernel)

    def _at_rest(self, program: ProgramState) -> str:
        """Which kernel has the probe."""
        key = self._watch.watched()
        kernel = next((one for one in self._list.rows.kernels if one.key == key), None)
        if kernel is None:
            return self._watch.status().detail if self._straight else "no probe is attached"
        frame = self._watch.latest()
        probe = frame.probe if frame is not None else self._probe or "the probe"
        verb = "was" if program.state == "ended" else "is"
        return f"{self.glyphs.block} {probe} {verb} attached to {self._title_of(kernel)}"

    def _title_of(self, kernel: ProgramKernel) -> str:
        return fitted_name(kernel.name, 48, self.glyphs.ellipsis)

    def _show_banner(self, status: Status) -> None:
        """What is wrong with the watch; that the program has ended is not."""
        bad = status.error
        if bad is None and status.state in ("failed", "stopped"):
            bad = UserError(status.detail or f"the watch has {status.state}")
        words = "" if bad is None else bad.render()
        if words == self._error:
            return
        self._error = words
        self.set_class(bad is not None, "failed")
        if bad is not None:
            closing = f"{self.gpuwatch.keymap.text('quit')} quits"
            self.query_one("#banner-text", Static).update(error_text(bad, closing))

    # ---- keys

    def action_watch(self) -> None:
        """Attaches the probe to the kernel under the cursor and shows it, or says why not."""
        kernel, watch = self._list.kernel, self._watch
        if kernel is None:
            return
        if not kernel.probeable:
            title = f"no probe can attach to {self._title_of(kernel)}"
            self.notify(kernel.why, title=title, severity="warning")
            return
        over = watch.program().state == "ended"
        if not self._is_attached(kernel) and not (over and watch.watched() == kernel.key):
            if over:
                self.notify("the program has ended; no probe can be attached any more")
                return
            watch.select(kernel=kernel.key, probe=self._probe)
        self._open(kernel.key)

    def _open(self, key: str) -> None:
        self._list.select(key)
        self._live = ProgramLiveScreen(key, self._probe)
        self.app.push_screen(self._live)

    def _is_attached(self, kernel: ProgramKernel) -> bool:
        """Whether the kernel has the chosen probe already."""
        frame = self._watch.latest()
        attached = frame.probe if frame is not None else None
        return self._watch.watched() == kernel.key and self._probe in (None, attached)

    def action_probe(self, key: int) -> None:
        for probe in self._watch.probes():
            if probe.key == key:
                self._probe, self._listed = probe.name, 0.0
                self.pull()

    def action_detach(self) -> None:
        watch = self._watch
        if watch.watched() is None or watch.program().state == "ended":
            self.notify("no probe is attached")
            return
        watch.detach()
        self._listed = 0.0
        self.pull()

    def action_sort_next(self) -> None:
        self._list.sort_next()

    def action_sort_reverse(self) -> None:
        self._list.sort_reverse()

    def action_unselect(self) -> None:
        """Puts the cursor on top; where it is there, drops the filter."""
        if not self._list.unselect():
            self._list.filter_by("")

    def action_filter(self) -> None:
        self.query_one(NameBar).open(self._list.rows.filter)

    def on_name_bar_changed(self, message: NameBar.Changed) -> None:
        self._list.filter_by(message.text)

    def on_name_bar_closed(self) -> None:
        self._list.focus()

    def on_program_list_moved(self) -> None:
        self._show_detail()

    def on_program_list_chosen(self) -> None:
        self.action_watch()

    def on_footer_pressed(self, message: Footer.Pressed) -> None:
        self.gpuwatch.press(message.action)
