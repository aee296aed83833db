"""What the panes of the live screen have in common: a title rule and greying of old data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.engine.frame import Frame, Listing, LogEntry, ProbeChoice, Status
from gpuwatch.tui.comparison import Baseline
from gpuwatch.tui.glyphs import UNICODE, Glyphs
from gpuwatch.tui.keymap import Keymap
from gpuwatch.tui.paint import Span, roomiest, spread_out, strip_of
from gpuwatch.tui.record_table import RecordTable
from gpuwatch.tui.theme import FOCUS, QUIET, RULE, TITLE


@dataclass(frozen=True, slots=True)
class View:
    """What the live screen shows at one moment.

    `frame` may be older than the worker's newest: while paused (`launches_now` goes on), and
    while a new selection is being prepared (`stale`). `source` and `kernel` are the frame's, if
    there is one; `probe` is what was asked for, at once.
    """

    source: str
    frame: Frame | None
    status: Status
    probe: str
    kernel: str
    probes: tuple[ProbeChoice, ...] = ()
    stale: bool = False
    paused: bool = False
    launches_now: int = 0
    table: RecordTable | None = None
    """Of `frame`."""
    selected: int | None = None
    """Row of `table`."""
    filter: str = ""
    tick: int = 0
    baseline: Baseline | None = None
    """What the present is compared with."""
    listing: Listing | None = None
    log: Sequence[LogEntry] = ()
    refused: str = ""
    """The probe asked for last, if it cannot attach."""
    ended: str = ""
    """Why no launches come any more, as a tag: DETACHED, ENDED."""

    def selected_value(self, column: str) -> float | None:
        """The selected row's value, None without a selection or such a column."""
        if self.selected is None or self.table is None or column not in self.table.columns:
            return None
        value: float = self.table.columns[column][self.selected].item()
        return value


class Narrow(Message):
    """Asks for only the rows of the table that `condition` holds for; the same once more takes
    it back."""

    def __init__(self, condition: str) -> None:
        super().__init__()
        self.condition = condition


if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp

    _Mixin = Widget
else:  # with Widget as a base, Textual would take default CSS from here and not from ScrollView
    _Mixin = object

CURSOR_KEYS: list[BindingType] = [
    Binding("up", "move(-1)", show=False),
    Binding("down", "move(1)", show=False),
    Binding("pageup", "page(-1)", show=False),
    Binding("pagedown", "page(1)", show=False),
    Binding("home", "edge(0)", show=False),
    Binding("end", "edge(1)", show=False),
]
"""How a cursor moves through the lines of a pane."""


class Drawing(_Mixin):
    """Makes a widget without border or padding draw itself line by line, from spans. Mixed into
    Widget or ScrollView."""

    glyphs: Glyphs = UNICODE
    view: View | None = None
    _base: Style | None = None
    """What lies below the text, and the width, while lines are drawn."""
    _across: int = 0

    @property
    def keymap(self) -> Keymap:
        return cast("GpuwatchApp", self.app).keymap

    @property
    def stale(self) -> bool:
        return self.view is not None and self.view.stale

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of `crop`. Textual's own way asks each line for its style, background and
        border again, which takes longer than all else here."""
        self._base, self._across = self.rich_style, self.size.width
        strips = [self.render_line(y) for y in crop.line_range]
        if (crop.x, crop.right) != (0, self._across):
            strips = [strip.crop_extend(crop.x, crop.right, self._base) for strip in strips]
        self._base = None
        _, background = self.background_colors
        for line_filter in self.get_line_filters():
            if not isinstance(line_filter, ANSIToTruecolor):  # there are no ANSI colours here
                strips = [strip.apply_filter(line_filter, background) for strip in strips]
        return strips

    def draw(self, widget: Widget, spans: Sequence[Span], *, ages: bool = True) -> Strip:
        """One finished line of `widget`, grey when its data are old."""
        if self._base is None:
            return strip_of(spans, widget.size.width, widget.rich_style, old=ages and self.stale)
        return strip_of(spans, self._across, self._base, old=ages and self.stale)

    def title_rule(
        self, widget: Widget, title: str, *figures: Sequence[Sequence[Span]]
    ) -> list[Span]:
        """The pane's first line: title at the left; at the right the first of the versions
        of `figures` that fits, else as many of the last one as fit."""
        rule = FOCUS if widget.has_focus else RULE
        line = self.glyphs.rule
        left: list[Span] = [(line + " ", rule), (title + " ", TITLE)]
        room = widget.size.width - len(title) - 7
        shown = roomiest(figures, room)
        right: list[Span] = [(" ", rule), *shown, (" " + line, rule)] if shown else []
        return spread_out(left, right, widget.size.width, (line, rule))


class Pane(Drawing, Widget):
    """A fixed pane. Subclasses say their title, figures and body lines."""

    can_focus = True
    DEFAULT_CSS = "Pane { height: 1fr; width: 1fr; }"

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(id=name)
        self.glyphs = glyphs

    def show(self, view: View) -> None:
        """Takes over `view` and redraws."""
        self.view = view
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self.draw(self, self.title_rule(self, self.title_text(), *self.figures()))
        width, height = self.size
        return self.draw(self, self.body(y - 1, width, height - 1))

    def title_text(self) -> str:
        raise NotImplementedError

    def figures(self) -> list[list[list[Span]]]:
        """Versions of the groups for the title rule, the roomiest first; in each the most
        important group first."""
        return [[]]

    def body(self, row: int, width: int, height: int) -> list[Span]:
        """Body line `row` of `height`."""
        raise NotImplementedError


def nothing_recorded(view: View | None, wanted: str, row: int, height: int) -> list[Span]:
    """Lines of a pane without data: why, and what the frame's notes say."""
    if view is None or view.frame is None:
        lines = [view.status.detail if view is not None else ""]
    else:
        lines = [f"{view.frame.probe} records no {wanted}.", "", *view.frame.notes]
    first = max(0, (height - len(lines)) // 3)
    return [("  " + lines[row - first], QUIET)] if 0 <= row - first < len(lines) else []
