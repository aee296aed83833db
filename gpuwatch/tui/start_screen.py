"""The first screen: which kernel, which probe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static
from textual.widgets.option_list import Option

from gpuwatch.engine.frame import KernelChoice, LaunchForm
from gpuwatch.errors import UserError
from gpuwatch.tui.bars import Footer, StatusLine
from gpuwatch.tui.frame_screen import FittedScreen
from gpuwatch.tui.keymap import Where, bindings
from gpuwatch.tui.launch_form import ask_launch
from gpuwatch.tui.lists import ChoiceList, kernel_options, probe_options, split_choice
from gpuwatch.tui.theme import CHOSEN, QUIET, STRONG, TAG, TEXT, WRONG

_FIRST_CHECK = 0.1


def error_text(error: UserError, closing: str) -> Text:
    """The whole error, its first words in red, and what to do."""
    text = Text()
    for line in error.render().splitlines():
        style = WRONG if "error: " in line else STRONG if line.startswith("hint:") else TEXT
        text.append(line + "\n", style)
    return text.append(closing, QUIET)


class StartScreen(FittedScreen[None]):
    """Lists kernels and probes; Enter in either starts."""

    BINDINGS = bindings("start")
    where: ClassVar[Where] = "start"
    DEFAULT_CSS = """
    StartScreen #top { height: 2; padding: 0 1; }
    StartScreen #choices { height: 1fr; }
    StartScreen .title { height: 1; padding: 0 1; color: $foreground; text-style: bold; }
    StartScreen #kernels { max-height: 45%; margin-bottom: 1; }
    StartScreen #error { display: none; height: 1fr; padding: 1 2; }
    StartScreen.failed #error { display: block; }
    StartScreen.failed #choices { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._kernels: list[KernelChoice] | None = None
        self._error: UserError | None = None
        self._tick = 0

    def parts(self) -> Iterable[Widget]:
        yield Static(id="top")
        with Vertical(id="choices"):
            yield Static("Kernel", classes="title")
            yield ChoiceList(id="kernels")
            yield Static("Probe", classes="title")
            yield ChoiceList(id="probes")
        with VerticalScroll(id="error"):
            yield Static(id="error-text")
        yield StatusLine(self.glyphs)
        yield Footer(self.glyphs, self.where)

    def on_mount(self) -> None:
        watch = self.gpuwatch.feed
        self.query_one("#probes", ChoiceList).fill(probe_options(watch.probes()), None)
        self.refresh_view()
        self.set_interval(_FIRST_CHECK, self.refresh_view)

    def refresh_view(self) -> None:
        """Takes over what the watch knows by now."""
        watch = self.gpuwatch.feed
        self._tick += 3
        status = watch.status()
        self._show_top()
        if status.error is not self._error:
            self._error = status.error
            self.set_class(self._error is not None, "failed")
            if self._error is not None:
                keys = self.gpuwatch.keymap
                closing = f"\n{keys.text('quit')} quits, {keys.text('restart')} tries again"
                text = error_text(self._error, closing)
                self.query_one("#error-text", Static).update(text)
        kernels = watch.kernels()
        if kernels != self._kernels:
            self._fill_kernels(kernels)
        self.query_one(StatusLine).show(status, (), "", self._tick)

    def _fill_kernels(self, kernels: list[KernelChoice]) -> None:
        box = self.query_one("#kernels", ChoiceList)
        launched = next((kernel.mangled for kernel in kernels if kernel.ready), None)
        chosen = box.chosen or launched
        self._kernels = kernels
        waiting = Option(Text("reading the source ...", QUIET), disabled=True)
        box.fill(kernel_options(kernels) or [waiting], chosen)
        if kernels and not self.query_one("#probes", ChoiceList).has_focus:
            box.focus()

    def _show_top(self) -> None:
        watch = self.gpuwatch.feed
        text = Text()
        text.append(" gpuwatch ", CHOSEN)
        text.append(f"  {watch.source()}", TEXT)
        info = watch.device()
        if info is not None:
            text.append(f"   on {info.name}", QUIET)
            if info.modelled:
                text.append(" ")
                text.append(" MODELLED ", TAG)
        self.query_one("#top", Static).update(text)

    def action_start(self) -> None:
        """Hands the choice to the watch and goes live; nothing to start yet: waits."""
        if not self._kernels or self._error is not None:
            return
        kernel, launch = split_choice(self.query_one("#kernels", ChoiceList).chosen)
        probe = self.query_one("#probes", ChoiceList).chosen
        choice = next((one for one in self._kernels if one.mangled == kernel), None)
        if choice is not None and choice.form is not None and not choice.ready:
            self._ask(choice, choice.form, probe)
            return
        self.gpuwatch.feed.select(kernel=kernel, probe=probe, launch=launch)
        self.gpuwatch.go_live(kernel, probe)

    def _ask(self, choice: KernelChoice, form: LaunchForm, probe: str | None) -> None:
        def give(filled: LaunchForm) -> None:
            self.gpuwatch.feed.give(choice.mangled, filled, probe)
            self.gpuwatch.go_live(choice.mangled, probe)

        ask_launch(self.gpuwatch, choice, form, give)

    def on_option_list_option_selected(self) -> None:
        self.action_start()

    def action_restart(self) -> None:
        self.gpuwatch.feed.restart()

    def on_footer_pressed(self, message: Footer.Pressed) -> None:
        self.gpuwatch.press(message.action)
