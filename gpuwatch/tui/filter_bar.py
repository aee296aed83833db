"""The line in which a filter of the table is written."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Label

from gpuwatch.analysis.filtering import Filter, FilterError
from gpuwatch.tui.glyphs import Glyphs
from gpuwatch.tui.paint import Span
from gpuwatch.tui.pane import Drawing
from gpuwatch.tui.theme import QUIET, TEXT, WRONG

PROMPT = " / "
_EXAMPLE = "sm == 3 and elapsed > p99"
_HINT = "enter keeps it, esc shows all rows"


class _Remark(Drawing, Widget):
    """What the filter does, or what is wrong with it, under the column where it is."""

    DEFAULT_CSS = "_Remark { height: 1; }"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.fault: FilterError | None = None
        self.text = ""
        self.offset_x = 0

    def render_line(self, y: int) -> Strip:
        return self.draw(self, self._spans() if y == 0 else [])

    def _spans(self) -> list[Span]:
        if self.fault is None:
            return [(" " * len(PROMPT) + self.text, TEXT), ("   " + _HINT, QUIET)]
        left = len(PROMPT) + self.fault.column - self.offset_x
        left = max(0, min(left, self.size.width - 1))
        right = f"{self.glyphs.mark} {self.fault.message}"
        if left + len(right) <= self.size.width or left < self.size.width // 2:
            return [(" " * left, TEXT), (right, WRONG)]
        words = f"{self.fault.message} "[-left:]
        return [(words.rjust(left), WRONG), (self.glyphs.mark, WRONG)]


class FilterBar(Vertical):
    """Reads the filter with every key and posts what it now means."""

    DEFAULT_CSS = """
    FilterBar { height: 2; display: none; background: $panel; }
    FilterBar.open { display: block; }
    FilterBar Horizontal { height: 1; }
    FilterBar Label { width: 3; color: $primary; text-style: bold; }
    FilterBar Input { width: 1fr; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    class Changed(Message):
        """The text is a filter, or empty: None."""

        def __init__(self, wanted: Filter | None) -> None:
            super().__init__()
            self.wanted = wanted

    class Closed(Message):
        """The bar has gone."""

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(id=name)
        self._names: Collection[str] = ()
        self._remark = _Remark(glyphs)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label(PROMPT)
            yield Input(placeholder=_EXAMPLE, compact=True)
        yield self._remark

    def open(self, names: Collection[str], text: str) -> None:
        """Lets the user write a filter over columns called `names`, beginning with `text`."""
        self._names = names
        self.add_class("open")
        box = self.query_one(Input)
        box.value = text
        box.cursor_position = len(text)
        box.focus()
        self._read(text)

    def tell(self, text: str) -> None:
        """What the filter does: "1,204 of 33,024"."""
        if text != self._remark.text:
            self._remark.text = text
            self._remark.refresh()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_class("open"):
            self._read(event.value)

    def _read(self, text: str) -> None:
        wanted: Filter | None = None
        self._remark.fault = None
        try:
            wanted = Filter.of(text, self._names) if text.strip() else None
        except FilterError as fault:
            self._remark.fault = fault
            self._remark.offset_x = int(self.query_one(Input).scroll_offset.x)
        else:
            self.post_message(self.Changed(wanted))
        self._remark.refresh()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._remark.fault is None:
            self._close()

    def action_leave(self) -> None:
        """Closes the bar and shows all rows again."""
        self.post_message(self.Changed(None))
        self._close()

    def _close(self) -> None:
        self.remove_class("open")
        self.post_message(self.Closed())
