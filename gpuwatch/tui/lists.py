"""The lists of kernels and probes to choose from."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gpuwatch.engine.frame import KernelChoice, LaunchChoice, ProbeChoice
from gpuwatch.tui.glyphs import shape
from gpuwatch.tui.kernel_names import shorten_signature
from gpuwatch.tui.theme import KEY, QUIET, STRONG, TEXT

_LAUNCH = "@"
"""Between kernel and launch in the id of an option; no mangled name has it."""


class ChoiceList(OptionList):
    """A titled list; ids of the options are what is chosen."""

    DEFAULT_CSS = """
    ChoiceList {
        height: auto; max-height: 1fr; border: none; padding: 0 1; background: $background;
    }
    ChoiceList:focus { border: none; background-tint: $background; }
    ChoiceList > .option-list--option-highlighted { background: $panel; }
    ChoiceList:focus > .option-list--option-highlighted { background: #2b4a70; }
    """

    @property
    def chosen(self) -> str | None:
        """Id of the highlighted option."""
        if self.highlighted is None:
            return None
        return self.get_option_at_index(self.highlighted).id

    def fill(self, options: list[Option], chosen: str | None) -> None:
        """Replaces the options, keeping `chosen` highlighted if it is among them."""
        self.clear_options()
        self.add_options(options)
        ids = [option.id for option in options]
        if options:
            self.highlighted = ids.index(chosen) if chosen in ids else 0


def kernel_options(kernels: list[KernelChoice]) -> list[Option]:
    """Two lines each: name and parameters; shape and how often the program launched it. Where it
    launched a kernel in several shapes, a line for each."""
    options = []
    for kernel in kernels:
        options.append(Option(_kernel_text(kernel), id=kernel.mangled))
        if len(kernel.shapes) > 1:
            options += [
                Option(_launch_text(one), id=f"{kernel.mangled}{_LAUNCH}{one.index}")
                for one in kernel.shapes
            ]
    return options


def split_choice(option: str | None) -> tuple[str | None, int | None]:
    """The kernel (mangled) and the launch that the id of an option stands for."""
    if option is None or _LAUNCH not in option:
        return option, None
    kernel, _, index = option.partition(_LAUNCH)
    return kernel, int(index)


def _launch_text(one: LaunchChoice) -> Text:
    text = Text(f"    launch {one.index:<6}", TEXT, no_wrap=True, overflow="ellipsis")
    text.append(f"<<<{shape(one.grid)}, {shape(one.block)}>>>", TEXT)
    return text.append("  once" if one.times == 1 else f"  {one.times:,} times", QUIET)


def _kernel_text(kernel: KernelChoice) -> Text:
    name = shorten_signature(kernel.demangled)
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(name, STRONG)
    text.append(f"({', '.join(kernel.parameters)})\n", QUIET)
    if kernel.form is not None:
        words = "launched by" if kernel.ready else "enter asks how to launch it; a guess:"
        shown = f"  {words} grid {kernel.form.grid}, block {kernel.form.block}"
        return text.append(shown, QUIET)
    if len(kernel.shapes) > 1:
        return text.append(f"  launched {kernel.launches:,} times, in these shapes:", QUIET)
    if kernel.grid is None or kernel.block is None:
        return text.append("  the program never launched it", QUIET)
    times = "once" if kernel.launches == 1 else f"{kernel.launches:,} times"
    text.append(f"  <<<{shape(kernel.grid)}, {shape(kernel.block)}>>>", TEXT)
    return text.append(f"  launched {times}", QUIET)


def probe_options(probes: list[ProbeChoice]) -> list[Option]:
    """One line each: digit, name, what it measures."""
    width = max((len(probe.name) for probe in probes), default=0)
    return [Option(_probe_text(probe, width), id=probe.name) for probe in probes]


def _probe_text(probe: ProbeChoice, width: int) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{probe.key or ' '} ", KEY)
    text.append(probe.name.ljust(width), STRONG)
    return text.append(f"  {probe.title}", QUIET)
