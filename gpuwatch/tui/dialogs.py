"""What opens above the live screen: the kernel picker and the help."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from gpuwatch.engine.frame import KernelChoice
from gpuwatch.tui.keymap import Where, help_lines
from gpuwatch.tui.lists import ChoiceList, kernel_options
from gpuwatch.tui.theme import KEY, QUIET, TEXT

_QUIT = Binding("q,ctrl+c", "app.finish", show=False)
"""The app's keys do not reach it past a modal screen."""


class KernelPicker(ModalScreen[str | None]):
    """Returns the mangled name of the kernel that was chosen, None when left with escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,k", "dismiss(None)", show=False),
        _QUIT,
    ]
    DEFAULT_CSS = """
    KernelPicker { align: center middle; }
    KernelPicker > ChoiceList {
        width: 80%; height: auto; max-height: 80%; padding: 1 2; background: $panel;
    }
    """

    def __init__(self, kernels: list[KernelChoice], chosen: str) -> None:
        super().__init__()
        self._kernels, self._chosen = kernels, chosen

    def compose(self) -> ComposeResult:
        yield ChoiceList()

    def on_mount(self) -> None:
        box = self.query_one(ChoiceList)
        box.fill(kernel_options(self._kernels), self._chosen)
        box.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)


_READING = (
    ("SM occupancy", "sum of a SM's warp cycles over its busy span times its most resident warps"),
    ("Elapsed", "cycles of the warp's own SM; blue is fast, orange is slow"),
    ("Timeline", "when the warp ran between its SM's first start and last end"),
    ("MODELLED", "the device is simulated: values are exact, times are modelled"),
    ("Identical", "the probed launch left the same output bytes as the plain one"),
)


class Help(ModalScreen[None]):
    """Every key, from the table that binds them, and how to read the panes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,enter", "dismiss(None)", show=False),
        _QUIT,
    ]
    DEFAULT_CSS = """
    Help { align: center middle; }
    Help > VerticalScroll {
        width: 90%; max-width: 96; height: auto; max-height: 90%; padding: 1 2; background: $panel;
    }
    Help Static { height: auto; }
    """

    def __init__(self, where: Where) -> None:
        super().__init__()
        self._where: Where = where

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text())

    def _text(self) -> Text:
        text = Text()
        for key, what in help_lines(self._where):
            text.append(key.rjust(15), KEY).append(f"  {what}\n", TEXT)
        text.append("\n")
        for name, what in _READING:
            text.append(name.rjust(15), KEY).append(f"  {what}\n", QUIET)
        return text
