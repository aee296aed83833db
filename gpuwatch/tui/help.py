"""The help: every key, from the table that binds them, and how to read the panes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from gpuwatch.tui.keymap import Key, Where, key_text
from gpuwatch.tui.theme import FOUND, KEY, QUIET, TEXT

_PANES = (
    ("SM occupancy", "sum of a SM's warp cycles over its busy span times its most resident warps"),
    ("Elapsed", "cycles of the warp's own SM; blue is fast, orange is slow"),
    ("Timeline", "when the warp ran between its SM's first start and last end"),
)
_READING = (
    *_PANES,
    ("MODELLED", "the device is simulated: values are exact, times are modelled"),
    ("Identical", "the probed launch left the same output bytes as the plain one"),
)
_READING_ATTACHED = (
    *_PANES,
    ("Probed", "launches with the probe, of all since it was attached; outputs are not compared"),
)
_READING_PROGRAM = (
    ("Total, mean", "seconds of the GPU, of all launches since the program began"),
    ("Share", "total of the kernel in that of all kernels"),
    ("theor. occ.", "theoretical occupancy: warps that such blocks can fill of an SM's most"),
    ("Shared", "bytes of a block: static + dynamic"),
    ("+3", "the kernel was launched in 3 other shapes; the most frequent one is shown"),
)
_KEY_WIDTH = 15
_SEARCH = "type to search: a key, or words"
_NOTHING = "No key and no word begins so."


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the help. `keys` are the single keys that it is found by."""

    name: str
    text: str
    keys: tuple[str, ...] = ()
    words: str = ""
    """What else it is found by."""

    @staticmethod
    def of(key: Key) -> Entry:
        return Entry(key.text, key.help, tuple(map(key_text, key.names)), key.id)

    def has(self, word: str) -> bool:
        """Whether a key or a word begins with `word`."""
        words = re.findall(r"\w+", f"{self.name} {self.text} {self.words}".casefold())
        return any(key.startswith(word) for key in self.keys) or any(
            one.startswith(word.casefold()) for one in words
        )


def found(entries: Sequence[Entry], query: str) -> list[Entry]:
    """Those that have all words of `query`, the ones that are bound to such a key first."""
    words = query.split()
    left = [entry for entry in entries if all(map(entry.has, words))]
    return sorted(left, key=lambda entry: set(entry.keys).isdisjoint(words))


class Help(ModalScreen[None]):
    """What is typed searches; every key but those below is text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("ctrl+c", "app.finish", show=False),
        Binding("up", "lines('scroll_up')", show=False),
        Binding("down", "lines('scroll_down')", show=False),
        Binding("pageup", "lines('scroll_page_up')", show=False),
        Binding("pagedown", "lines('scroll_page_down')", show=False),
    ]
    DEFAULT_CSS = """
    Help { align: center middle; }
    Help > Vertical {
        width: 90%; max-width: 96; height: 90%; max-height: 70; padding: 1 2; background: $panel;
    }
    Help Input { height: 1; margin-bottom: 1; background: $panel; }
    Help VerticalScroll { height: 1fr; }
    Help Static { height: auto; }
    """

    def __init__(self, keys: Sequence[Key], where: Where) -> None:
        super().__init__()
        self._keys = [Entry.of(key) for key in keys]
        lines = {"program": _READING_PROGRAM, "attached": _READING_ATTACHED}.get(where, _READING)
        self._reading = [Entry(name, text) for name, text in lines]

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Input(placeholder=_SEARCH, compact=True)
            with VerticalScroll(can_focus=False):
                yield Static(self._text(""))

    def on_mount(self) -> None:
        box = self.query_one(Input)
        box.cursor_blink = False
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one(Static).update(self._text(event.value))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def on_input_submitted(self) -> None:
        self.dismiss(None)

    def action_lines(self, how: str) -> None:
        getattr(self.query_one(VerticalScroll), how)(animate=False)

    def _text(self, query: str) -> Text:
        keys, reading = found(self._keys, query), found(self._reading, query)
        text = Text()
        for entry in keys:
            text.append(entry.name.rjust(_KEY_WIDTH), KEY).append(f"  {entry.text}\n", TEXT)
        if keys and reading:
            text.append("\n")
        for entry in reading:
            text.append(entry.name.rjust(_KEY_WIDTH), KEY).append(f"  {entry.text}\n", QUIET)
        if not keys and not reading:
            return text.append(_NOTHING, QUIET)
        for word in query.split():
            text.highlight_regex(rf"(?i)\b{re.escape(word)}", FOUND)
        return text
