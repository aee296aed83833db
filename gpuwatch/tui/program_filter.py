"""The line in which a part of a kernel's name is written."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label

from gpuwatch.tui.filter_bar import PROMPT

_EXAMPLE = "words of a kernel's name; enter keeps them, esc shows all kernels"


class NameBar(Horizontal):
    """Posts its text with every key."""

    DEFAULT_CSS = """
    NameBar { height: 1; display: none; background: $panel; }
    NameBar.open { display: block; }
    NameBar Label { width: 3; color: $primary; text-style: bold; }
    NameBar Input { width: 1fr; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    class Changed(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Closed(Message):
        """The bar has gone."""

    def compose(self) -> ComposeResult:
        yield Label(PROMPT)
        yield Input(placeholder=_EXAMPLE, compact=True, select_on_focus=False)

    def open(self, text: str) -> None:
        """Lets the user go on writing `text`."""
        self.add_class("open")
        box = self.query_one(Input)
        box.value = text
        box.cursor_position = len(text)
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_class("open"):
            self.post_message(self.Changed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close()

    def action_leave(self) -> None:
        """Closes the bar and shows all kernels again."""
        self.post_message(self.Changed(""))
        self._close()

    def _close(self) -> None:
        self.remove_class("open")
        self.post_message(self.Closed())
