"""What toolchain, weaver, device and kernel said."""

from __future__ import annotations

import time
from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpuwatch.engine.frame import LogEntry
from gpuwatch.tui.glyphs import Glyphs
from gpuwatch.tui.paint import Span
from gpuwatch.tui.pane import Drawing, View
from gpuwatch.tui.theme import FOCUS, KEY, QUIET, TEXT, WOVEN, WRONG

_STYLES = {"worker": QUIET, "toolchain": FOCUS, "weaver": WOVEN, "kernel": KEY, "error": WRONG}
_WHO = 10


class LogPane(Drawing, ScrollView):
    """Follows the newest line until it is scrolled away from it."""

    can_focus = True
    DEFAULT_CSS = "LogPane { height: 1fr; width: 1fr; scrollbar-size-horizontal: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", show=False),
        Binding("down", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
        Binding("home", "scroll_home", show=False),
        Binding("end", "scroll_end", show=False),
    ]

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(id=name)
        self.glyphs = glyphs
        self._key: tuple[object, ...] = ()
        self._lines: list[list[Span]] = []
        self._following = True

    def show(self, view: View) -> None:
        printed = view.frame.printed if view.frame is not None else ""
        key = (len(view.log), view.log[-1] if view.log else None, printed)
        self.view = view
        if key == self._key:
            return
        self._key = key
        self._lines = [line for entry in view.log for line in _lines_of(entry)]
        if printed:
            self._lines += _lines_of(LogEntry(time.time(), "kernel", printed.rstrip()))
        self.virtual_size = Size(self.size.width, len(self._lines) + 1)
        self._follow()
        self.refresh()

    def _follow(self) -> None:
        if self._following:
            self.scroll_end(animate=False, immediate=True)

    def on_resize(self) -> None:
        self._follow()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._following = new_value >= self.max_scroll_y

    def render_line(self, y: int) -> Strip:
        if y == 0:
            count: list[Span] = [(f"{len(self._lines):,}", TEXT), (" lines", QUIET)]
            return self.draw(self, self.title_rule(self, "Log", [count]), ages=False)
        index = int(self.scroll_offset.y) + y - 1
        spans = self._lines[index] if index < len(self._lines) else []
        if not self._lines and y == 2:
            spans = [("  nothing was said yet", QUIET)]
        return self.draw(self, spans, ages=False)


def _lines_of(entry: LogEntry) -> list[list[Span]]:
    """One line of the screen for each of the text; time and speaker stand before the first."""
    style: Style = _STYLES.get(entry.who, TEXT)
    when = time.strftime("%H:%M:%S", time.localtime(entry.at))
    text_style = WRONG if entry.who == "error" else TEXT
    lines: list[list[Span]] = []
    for text in entry.text.split("\n") or [""]:
        head = f" {when}  " if not lines else " " * 11
        who = entry.who if not lines else ""
        lines.append([(head, QUIET), (who.ljust(_WHO), style), (text.expandtabs(4), text_style)])
    return lines
