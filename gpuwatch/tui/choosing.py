"""Choosing what is watched: kernel, probe, source and launch."""

from __future__ import annotations

from textual.widgets import Input

from gpuwatch.engine.frame import Frame, KernelChoice, LaunchForm
from gpuwatch.tui.frame_screen import FittedScreen
from gpuwatch.tui.kernel_picker import KernelPicker
from gpuwatch.tui.kiosk import next_stop
from gpuwatch.tui.launch_form import ask_launch
from gpuwatch.tui.lists import split_choice


class ChoosingScreen(FittedScreen[None]):
    """The part of the live screen that asks the watch for something else.

    `kernel` (mangled) and `probe` are what was asked for, None for the watch's own choice.
    """

    def __init__(self, kernel: str | None, probe: str | None) -> None:
        super().__init__()
        self._kernel, self._probe = kernel, probe
        self._frame: Frame | None = None
        self._paused = False
        self._refused = ""
        """The probe asked for last, if it cannot attach."""

    def pull(self) -> None:
        """Takes the newest frame and status, and redraws what they change."""
        raise NotImplementedError

    def _waiting(self) -> str:
        """What was asked for and has not arrived yet, "" when nothing."""
        frame = self._frame
        if frame is None:
            return ""
        if frame.source and frame.source != self.gpuwatch.feed.source():
            return f"switching to {self.gpuwatch.feed.source()}"
        if self._kernel is not None and frame.mangled != self._kernel:
            return f"switching to {self._kernel_name()}"
        if self._probe is not None and frame.probe != self._probe:
            return f"switching to {self._probe}"
        return ""

    def _kernel_name(self) -> str:
        for kernel in self.gpuwatch.feed.kernels():
            if kernel.mangled == self._kernel:
                return kernel.demangled
        return self._kernel or (self._frame.kernel if self._frame is not None else "")

    def _followed(self, frame: Frame) -> None:
        """Another build may have the kernel under another name: it is the one wanted now."""
        if self._kernel is not None:
            self._kernel = frame.mangled

    def action_probe(self, key: int) -> None:
        for probe in self.gpuwatch.feed.probes():
            if probe.key == key:
                if probe.problem:
                    self._refused = probe.name
                    self.pull()
                    self.notify(probe.problem, title=f"{probe.name} cannot attach")
                else:
                    self._switch(probe=probe.name)

    def _switch(
        self, kernel: str | None = None, probe: str | None = None, launch: int | None = None
    ) -> None:
        self._kernel = kernel or self._kernel
        self._probe = probe or self._probe
        self._paused, self._refused = False, ""
        self.gpuwatch.feed.select(kernel=kernel, probe=probe, launch=launch)
        self.pull()

    def _stop(self) -> None:
        """Goes to the next stop of the kiosk's tour."""
        frame = self._frame
        if frame is None or self._paused:
            return
        stop = next_stop(self.gpuwatch.feed, frame.mangled, frame.probe)
        if stop is None:
            return
        self._kernel = stop.kernel or (None if stop.source else self._kernel)
        self._probe = stop.probe
        self.gpuwatch.feed.select(kernel=stop.kernel, probe=stop.probe, source=stop.source)

    def action_other_source(self) -> None:
        """The next of the sources that were named; the former becomes the baseline."""
        sources = self.gpuwatch.feed.sources()
        if len(sources) < 2:
            self.notify("there is one source; name several: gpuwatch a.cu b.cu")
            return
        current = self.gpuwatch.feed.source()
        chosen = sources[(sources.index(current) + 1) % len(sources)]
        self._kernel, self._paused = None, False
        self.gpuwatch.feed.select(source=chosen)
        self.pull()

    def action_source_or_pane(self) -> None:
        """The next source where there are several, unless a text is being edited; else the next
        pane."""
        if self.gpuwatch.keymap.several and not isinstance(self.focused, Input):
            self.action_other_source()
        else:
            self.focus_next()

    def action_pick_kernel(self) -> None:
        kernels = self.gpuwatch.feed.kernels()
        if not kernels:
            self.notify("the kernels are not known yet")
            return
        chosen = self._kernel or (self._frame.mangled if self._frame is not None else "")
        self.app.push_screen(KernelPicker(kernels, chosen, self.gpuwatch.keymap), self._picked)

    def _picked(self, option: str | None) -> None:
        kernel, launch = split_choice(option)
        choice = self._choice(kernel)
        if choice is not None and choice.form is not None and not choice.ready:
            self._ask(choice, choice.form)
        elif kernel is not None:
            self._switch(kernel=kernel, launch=launch)

    def action_edit_launch(self) -> None:
        """Opens the form of the kernel whose launch the user gives."""
        choice = self._choice(self._kernel or (self._frame.mangled if self._frame else None))
        if choice is None or choice.form is None:
            self.notify("this launch is the program's own; --no-run lets you give it")
            return
        self._ask(choice, choice.form)

    def _choice(self, kernel: str | None) -> KernelChoice | None:
        known = self.gpuwatch.feed.kernels()
        return next((one for one in known if one.mangled == kernel), None)

    def _ask(self, choice: KernelChoice, form: LaunchForm) -> None:
        def give(filled: LaunchForm) -> None:
            self._kernel, self._paused = choice.mangled, False
            self.gpuwatch.feed.give(choice.mangled, filled, self._probe)
            self.pull()

        ask_launch(self.gpuwatch, choice, form, give)
