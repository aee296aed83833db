"""A tour that goes by itself through sources, kernels and probes, for a screen on a wall."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.engine.frame import ProbeChoice, Watch
from gpuwatch.tui.glyphs import Glyphs, bar
from gpuwatch.tui.kernel_names import shorten_signature
from gpuwatch.tui.paint import Span
from gpuwatch.tui.pane import Drawing, View
from gpuwatch.tui.theme import CAPTION, CAPTION_QUIET


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the tour goes next; None keeps."""

    probe: str
    kernel: str | None = None
    source: str | None = None


class Tour:
    """`seconds` for each probe of a kernel; then the next kernel, and then the next source."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._since: float | None = None

    def part(self, now: float) -> float:
        """How much of the present stop is over, 0..1."""
        return 0.0 if self._since is None else min(1.0, (now - self._since) / self.seconds)

    def due(self, now: float, *, arrived: bool) -> bool:
        """Whether to go on; then the next stop begins. The time at a stop counts from its first
        frame."""
        if not arrived:
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since >= self.seconds:
            self._since = None
            return True
        return False


def next_stop(watch: Watch, kernel: str, probe: str) -> Stop | None:
    """The stop after `probe` on `kernel` (mangled); None where there is no other."""
    probes = [one.name for one in watch.probes() if not one.problem or one.name == probe]
    kernels = [one.mangled for one in watch.kernels() if one.ready]
    sources = list(watch.sources())
    at = probes.index(probe) + 1 if probe in probes else len(probes)
    if at < len(probes):
        return Stop(probes[at])
    if not probes:
        return None
    place = kernels.index(kernel) + 1 if kernel in kernels else len(kernels)
    if place < len(kernels):
        return Stop(probes[0], kernel=kernels[place])
    if len(sources) > 1:
        source = sources[(sources.index(watch.source()) + 1) % len(sources)]
        return Stop(probes[0], source=source)
    if probes[0] == probe and kernels[:1] in ([], [kernel]):
        return None
    return Stop(probes[0], kernel=kernels[0] if kernels and kernels[0] != kernel else None)


class Caption(Drawing, Widget):
    """Three lines that say from afar what is to be seen, and how soon it changes."""

    DEFAULT_CSS = "Caption { height: 3; }"

    def __init__(self, glyphs: Glyphs, tour: Tour) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._tour = tour

    def show(self, view: View) -> None:
        self.view = view
        self.refresh()

    def advance(self, go_on: Callable[[], None], *, arrived: bool) -> None:
        """Calls `go_on` when the time of the present stop is over."""
        if self._tour.due(time.monotonic(), arrived=arrived):
            go_on()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self._lines(width)
        spans = lines[y] if y < len(lines) else []
        return self.draw(self, spans, ages=False)

    def _lines(self, width: int) -> list[list[Span]]:
        if self.view is None:
            return []
        frame = self.view.frame
        probe = frame.probe if frame is not None else self.view.probe
        chosen = next((one for one in self.view.probes if one.name == probe), None)
        head = f"{shorten_signature(self.view.kernel)}   {self.view.source}"
        return [
            [(_centred(_title(chosen, probe), width), CAPTION)],
            [(_centred(head, width), CAPTION_QUIET)],
            [(bar(self._tour.part(time.monotonic()), width, self.glyphs.across), CAPTION_QUIET)],
        ]


def _title(chosen: ProbeChoice | None, name: str) -> str:
    return name if chosen is None else f"{name}: {chosen.title}"


def _centred(text: str, width: int) -> str:
    return text[:width].center(width)
