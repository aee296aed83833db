"""The lists of kernels and probes to choose from."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gpuwatch.engine.frame import KernelChoice, ProbeChoice
from gpuwatch.tui.bars import shorten_signature
from gpuwatch.tui.glyphs import shape
from gpuwatch.tui.theme import KEY, QUIET, STRONG, TEXT


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
    """Two lines each: name and parameters; shape and how often the program launched it."""
    return [Option(_kernel_text(kernel), id=kernel.mangled) for kernel in kernels]


def _kernel_text(kernel: KernelChoice) -> Text:
    name = shorten_signature(kernel.demangled)
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(name, STRONG)
    text.append(f"({', '.join(kernel.parameters)})\n", QUIET)
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
