"""A screen that gives way to a short notice when the terminal is too small for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.tui.glyphs import Glyphs
from gpuwatch.tui.keymap import Where
from gpuwatch.tui.paint import Span
from gpuwatch.tui.pane import Drawing
from gpuwatch.tui.theme import KEY, STRONG, TEXT

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp

LEAST = (60, 16)
"""Columns and lines below which the panes are not shown."""

Result = TypeVar("Result")


class TooSmall(Drawing, Widget):
    """Says which size is needed."""

    DEFAULT_CSS = "TooSmall { display: none; height: 1fr; width: 1fr; }"

    def render_line(self, y: int) -> Strip:
        width, height = self.app.size
        lines: list[list[Span]] = [
            [("gpuwatch", STRONG)],
            [(f"needs {LEAST[0]}x{LEAST[1]},", TEXT)],
            [(f"this is {width}x{height}.", TEXT)],
            [(self.keymap.text("quit"), KEY), (" quit", TEXT)],
        ]
        row = y - max(0, (self.size.height - len(lines)) // 2)
        if not 0 <= row < len(lines):
            return self.draw(self, [])
        text = sum(len(part) for part, _ in lines[row])
        pad = max(0, (self.size.width - text) // 2)
        return self.draw(self, [(" " * pad, TEXT), *lines[row]])


class FittedScreen(Screen[Result]):
    """Subclasses yield their widgets from `parts`, and say which keys count."""

    where: ClassVar[Where] = "everywhere"
    DEFAULT_CSS = """
    FittedScreen.too-small > * { display: none; }
    FittedScreen.too-small > TooSmall { display: block; }
    """

    @property
    def gpuwatch(self) -> GpuwatchApp:
        """The app, by its own type."""
        return cast("GpuwatchApp", self.app)

    @property
    def glyphs(self) -> Glyphs:
        return self.gpuwatch.glyphs

    def on_mount(self) -> None:
        self.gpuwatch.keymap.rebind(self)

    def parts(self) -> Iterable[Widget]:
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield TooSmall()
        yield from self.parts()

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        self.set_class(width < LEAST[0] or height < LEAST[1], "too-small")
        if not self.has_class("too-small"):
            self.lay_out(width, height)

    def lay_out(self, width: int, height: int) -> None:
        """Adapts the layout to a size that is large enough."""
