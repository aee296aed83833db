"""The form that asks how a kernel is launched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from gpuwatch.engine.frame import KernelChoice, LaunchForm
from gpuwatch.tui.theme import KEY, QUIET, STRONG, TEXT

_HELP = (
    "Expressions may name sizes and scalar arguments: cdiv(n, 256).\n"
    "Buffers: f32[1024]:uniform, zeros, ones, iota, normal, a number, or file=PATH."
)


def ask_launch(
    app: App[None], kernel: KernelChoice, form: LaunchForm, give: Callable[[LaunchForm], None]
) -> None:
    """Opens the form; `give` gets it filled in, unless it was left with escape."""

    def closed(filled: LaunchForm | None) -> None:
        if filled is not None:
            give(filled)

    app.push_screen(LaunchFormScreen(kernel, form), closed)


class LaunchFormScreen(ModalScreen[LaunchForm | None]):
    """Returns the filled form, None when left with escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("ctrl+c", "app.finish", show=False),
    ]
    DEFAULT_CSS = """
    LaunchFormScreen { align: center middle; }
    LaunchFormScreen > VerticalScroll {
        width: 90%; max-width: 96; height: auto; max-height: 95%; padding: 1 2; background: $panel;
    }
    LaunchFormScreen Static { height: auto; }
    LaunchFormScreen Horizontal { height: 1; }
    LaunchFormScreen .label { width: 26; color: $foreground; }
    LaunchFormScreen Input { border: none; height: 1; padding: 0 1; }
    LaunchFormScreen Input:focus { border: none; background-tint: $primary 25%; }
    """

    def __init__(self, kernel: KernelChoice, form: LaunchForm) -> None:
        super().__init__()
        self._kernel, self._form = kernel, form

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            title = Text("How to launch ", TEXT).append(self._kernel.demangled, STRONG)
            yield Static(title.append("\n"))
            for name, value in self._rows():
                with Horizontal():
                    yield Static(name, classes="label", markup=False)
                    yield Input(value, select_on_focus=False)
            keys = Text(f"\n{_HELP}\n\n", QUIET).append("enter", KEY).append(" launch   ", TEXT)
            keys.append("tab", KEY).append(" next field   ", TEXT)
            yield Static(keys.append("esc", KEY).append(" leave", TEXT))

    def on_mount(self) -> None:
        self.query(Input).first().focus()

    def on_input_submitted(self) -> None:
        grid, block, shared, *values = [field.value.strip() for field in self.query(Input)]
        labels = [label for label, _ in self._form.arguments]
        self.dismiss(
            replace(
                self._form,
                grid=grid,
                block=block,
                shared=shared or "0",
                arguments=tuple(zip(labels, values, strict=True)),
                places={},
            )
        )

    def _rows(self) -> list[tuple[str, str]]:
        types = self._kernel.parameters
        labels = [label for label, _ in self._form.arguments]
        described = [
            f"{label}  {types[place]}" if len(types) == len(labels) else label
            for place, label in enumerate(labels)
        ]
        return [
            ("grid, blocks", self._form.grid),
            ("block, threads", self._form.block),
            ("shared, bytes", self._form.shared),
            *zip(described, (value for _, value in self._form.arguments), strict=True),
        ]
