"""Choosing another kernel of the file, above the live screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList

from gpuwatch.engine.frame import KernelChoice
from gpuwatch.tui.keymap import Keymap
from gpuwatch.tui.lists import ChoiceList, kernel_options


class KernelPicker(ModalScreen[str | None]):
    """Returns the mangled name of the kernel that was chosen, None when left with escape."""

    # The app's keys do not reach it past a modal screen.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("k", "dismiss(None)", show=False, id="kernel"),
        Binding("ctrl+c", "app.finish", show=False),
        Binding("q", "app.finish", show=False, id="quit"),
    ]
    DEFAULT_CSS = """
    KernelPicker { align: center middle; }
    KernelPicker > ChoiceList {
        width: 80%; height: auto; max-height: 80%; padding: 1 2; background: $panel;
    }
    """

    def __init__(self, kernels: list[KernelChoice], chosen: str, keymap: Keymap) -> None:
        super().__init__()
        self._kernels, self._chosen = kernels, chosen
        keymap.rebind(self)

    def compose(self) -> ComposeResult:
        yield ChoiceList()

    def on_mount(self) -> None:
        box = self.query_one(ChoiceList)
        box.fill(kernel_options(self._kernels), self._chosen)
        box.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)
