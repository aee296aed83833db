"""Per-SM occupancy: bars with numbers, packed tighter the more SMs there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType

from gpuwatch.analysis.occupancy import SmColumns
from gpuwatch.analysis.timeline import residency
from gpuwatch.tui.glyphs import Glyphs, bar, short
from gpuwatch.tui.paint import Span, roomiest
from gpuwatch.tui.pane import Narrow, Pane, View, nothing_recorded
from gpuwatch.tui.theme import CURSOR, QUIET, STRONG, TEXT, heat, ramp

_SPARK_CELL = 26
"""Narrowest cell that also holds a sparkline: " 17 ████▊ 94 ▁▇▇▇▇▇▇▇▇▇▅"."""
_BAR_CELL = 9
"""Narrowest cell with a label, a bar and a number: " 17 ▇  94"."""
_DELTA_CELL = 15
"""Narrowest cell that also holds the difference to the baseline, in points."""
_NUMBER_CELL = 3
_DOT_CELL = 2
_LABEL = 4
_WIDEST = 60


@dataclass(frozen=True, slots=True)
class CellLayout:
    """`style` is "spark" (label, bar, number, sparkline), "bar" (without the sparkline),
    "number" (coloured numbers, one label a line) or "dot" (a coloured mark each, in ASCII the
    tens)."""

    style: str
    columns: int
    width: int

    @property
    def left(self) -> int:
        """Where the cells begin."""
        return 0 if self.style in ("spark", "bar") else _LABEL


def cell_layout(sms: int, width: int, height: int) -> CellLayout:
    """How to show `sms` cells in `width` x `height`, as roomy as possible with all in view."""
    columns = max(1, -(-sms // max(1, height)))
    if width // columns >= _SPARK_CELL:
        return CellLayout("spark", columns, min(width // columns, _WIDEST))
    if width // columns >= _BAR_CELL:
        return CellLayout("bar", columns, min(width // columns, _WIDEST))
    if (width - _LABEL) // columns >= _NUMBER_CELL:
        most = (width - _LABEL) // _NUMBER_CELL
        tens = most // 10 * 10
        return CellLayout("number", tens if tens >= columns else columns, _NUMBER_CELL)
    if (width - _LABEL) // columns >= _DOT_CELL:
        return CellLayout("dot", (width - _LABEL) // _DOT_CELL, _DOT_CELL)
    return CellLayout("dot", max(1, width - _LABEL), 1)


class OccupancyPane(Pane):
    """All SMs at once, the one of the selected warp marked. `cursor` is the index of an SM."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1, 0)", show=False),
        Binding("right", "move(1, 0)", show=False),
        Binding("up", "move(0, -1)", show=False),
        Binding("down", "move(0, 1)", show=False),
        Binding("enter", "narrow", show=False),
    ]

    def __init__(self, glyphs: Glyphs, name: str) -> None:
        super().__init__(glyphs, name)
        self.cursor: int | None = None
        self._over_time: tuple[int, NDArray[np.float64]] | None = None
        self._of_selected: float | None = None
        """SM of the selected warp."""
        self._former: SmColumns | None = None
        """Of the baseline."""

    def title_text(self) -> str:
        return "SM occupancy"

    @property
    def sms(self) -> SmColumns | None:
        return self.view.frame.sms if self.view is not None and self.view.frame else None

    def show(self, view: View) -> None:
        if self.view is None or view.frame is not self.view.frame:
            self._over_time = None
        self._of_selected = view.selected_value("SM")
        self._former = _former(view)
        super().show(view)

    # ---- cursor

    @property
    def _layout(self) -> CellLayout:
        count = len(self.sms.sm) if self.sms is not None else 0
        height = self.size.height - 1
        return cell_layout(count, self.size.width, height - (height > 2))

    def action_move(self, columns: int, rows: int) -> None:
        """Moves the cursor; the first key press puts it on the first SM."""
        sms = self.sms
        if sms is None or len(sms.sm) == 0:
            return
        if self.cursor is None:
            self.cursor = 0
        else:
            wanted = self.cursor + columns + rows * self._layout.columns
            if 0 <= wanted < len(sms.sm):
                self.cursor = wanted
        self.refresh()

    def action_narrow(self) -> None:
        """Filters the table to the warps of the SM under the cursor."""
        if self.sms is not None and self.cursor is not None and self.cursor < len(self.sms.sm):
            self.post_message(Narrow(f"sm == {int(self.sms.sm[self.cursor])}"))

    def on_click(self, event: events.Click) -> None:
        index = self.index_at(event.x, event.y)
        if index is not None:
            self.cursor = index
            self.refresh()
            self.action_narrow()

    def index_at(self, x: int, y: int) -> int | None:
        """The SM drawn at a cell of the pane."""
        layout, sms = self._layout, self.sms
        column = (x - layout.left) // layout.width
        if sms is None or y < 1 or x < layout.left or column >= layout.columns:
            return None
        index = (y - 1) * layout.columns + column
        return index if index < len(sms.sm) else None

    # ---- drawing

    def figures(self) -> list[list[list[Span]]]:
        sms = self.sms
        mean = None if sms is None else sms.mean_occupancy
        if sms is None or mean is None:
            return [[]]
        used = sms.used
        occupancy = sms.occupancy[used]
        groups: list[list[Span]] = [[("mean ", QUIET), (f"{mean:.1%}", ramp(mean) + STRONG)]]
        for name, at in (("min ", occupancy.argmin()), ("max ", occupancy.argmax())):
            sm: Span = (f" SM {sms.sm[used[at]]}", QUIET)
            groups.append([(name, QUIET), (f"{occupancy[at]:.0%}", TEXT), sm])
        before = None if self._former is None else self._former.mean_occupancy
        if before is not None:
            groups.insert(1, [("before ", QUIET), (f"{before:.1%}", TEXT)])
        if len(used) == len(sms.sm):
            return [groups]
        of_used: Span = (f" of {len(used)} {'SM' if len(used) == 1 else 'SMs'} used", QUIET)
        return [[[*groups[0], of_used], *groups[1:]], groups]

    def body(self, row: int, width: int, height: int) -> list[Span]:
        sms = self.sms
        if sms is None:
            return nothing_recorded(self.view, "SM and no start and elapsed", row, height)
        if height > 2 and row == height - 1:
            return self._summary(sms, width)
        layout = self._layout
        first = row * layout.columns
        chosen = range(first, min(first + layout.columns, len(sms.sm)))
        draw = {
            "spark": self._bars, "bar": self._bars, "number": self._numbers, "dot": self._dots
        }[layout.style]  # fmt: skip
        return draw(sms, chosen, layout)

    def _bars(self, sms: SmColumns, chosen: range, layout: CellLayout) -> list[Span]:
        spans: list[Span] = []
        former = self._former if layout.width >= _DELTA_CELL else None
        free = layout.width - (9 if layout.width >= 11 else 8) - (4 if former is not None else 0)
        spark = max(1, (free - 1) * 2 // 3) if layout.style == "spark" else 0
        size = free - (spark + 1 if spark else 0)
        used = size + 7 + (spark + 1 if spark else 0) + (4 if former is not None else 0)
        for index in chosen:
            part = float(sms.occupancy[index])
            number = int(sms.sm[index])
            spans.append((f"{number:>3} ", self._label(index)))
            spans.append((bar(part, size, self.glyphs.across), ramp(part)))
            spans.append((f"{part * 100:>3.0f}", TEXT))
            if former is not None:
                change = round(100 * (part - float(former.occupancy[index])))
                spans.append((f"{change:+4d}", STRONG if change else QUIET))
            if spark:
                spans += [(" ", TEXT), *self._spark(index, spark)]
            spans.append((" " * (layout.width - used), TEXT))
        return spans

    def _spark(self, index: int, cells: int) -> list[Span]:
        """Resident warps over the SM's busy span, of as many as it holds at most."""
        if self._over_time is None or self._over_time[0] != cells:
            self._over_time = (cells, self._residency(cells))
        levels = self.glyphs.upward
        top = len(levels) - 1
        row = self._over_time[1]
        parts = row[index].tolist() if index < len(row) else [0.0] * cells
        return [(levels[max(part > 0, min(top, round(part * top)))], ramp(part)) for part in parts]

    def _residency(self, cells: int) -> NDArray[np.float64]:
        frame = self.view.frame if self.view is not None else None
        if frame is None or frame.warps_table is None or frame.sms is None:
            return np.zeros((0, cells))
        table = frame.warps_table
        resident = residency(table.sm, table.start, table.elapsed, len(frame.sms.sm), cells)
        return resident / max(1, frame.device.warps_per_sm)

    def _numbers(self, sms: SmColumns, chosen: range, layout: CellLayout) -> list[Span]:
        if not chosen:
            return []
        spans: list[Span] = [(f"{int(sms.sm[chosen.start]):>3} ", QUIET)]
        for index in chosen:
            part = float(sms.occupancy[index])
            style = CURSOR if self._marked(index) else heat(part)
            spans.append((f"{part * 100:>{layout.width}.0f}", style))
        return spans

    def _dots(self, sms: SmColumns, chosen: range, layout: CellLayout) -> list[Span]:
        if not chosen:
            return []
        spans: list[Span] = [(f"{int(sms.sm[chosen.start]):>3} ", QUIET)]
        for index in chosen:
            part = float(sms.occupancy[index])
            style = CURSOR if self._marked(index) else ramp(part)
            tens = "0123456789#"[min(10, int(part * 10))]
            dot = tens if self.glyphs.block.isascii() else self.glyphs.block
            spans.append((dot.rjust(layout.width), style))
        return spans

    def _marked(self, index: int) -> bool:
        """Whether the SM holds the selected warp, or the cursor is on it."""
        if index == self.cursor and self.has_focus:
            return True
        sms = self.sms if self._of_selected is not None else None
        return sms is not None and int(sms.sm[index]) == self._of_selected

    def _label(self, index: int) -> Style:
        return CURSOR if self._marked(index) else QUIET

    def _cursor_groups(self, sms: SmColumns) -> list[list[Span]]:
        if not self.has_focus or self.cursor is None or self.cursor >= len(sms.sm):
            return []
        at = self.cursor
        return [
            [(f" SM {int(sms.sm[at])} ", CURSOR), (f" {sms.occupancy[at] * 100:.1f}%", TEXT)],
            [("blocks ", QUIET), (str(int(sms.blocks[at])), TEXT)],
            [("warps ", QUIET), (str(int(sms.warps[at])), TEXT)],
            [("span ", QUIET), (short(int(sms.busy_cycles[at])), TEXT)],
            [("enter filters", QUIET)],
        ]

    def _summary(self, sms: SmColumns, width: int) -> list[Span]:
        assert self.view is not None and self.view.frame is not None
        if groups := self._cursor_groups(sms):
            return [(" ", TEXT), *roomiest([groups, groups[:-1], groups[:2]], width - 1)]
        frame = self.view.frame
        busy = int((sms.blocks > 0).sum())
        spread = f" ({sms.blocks.min()}-{sms.blocks.max()})"
        groups = [
            [("busy ", QUIET), (f"{busy}/{len(sms.sm)}", TEXT), (" SMs", QUIET)],
            [("blocks/SM ", QUIET), (f"{sms.blocks.mean():.1f}", TEXT), (spread, QUIET)],
        ]
        versions = [groups]
        if frame.idle_cycles_mean is not None:
            idle: list[Span] = [("idle ", QUIET), (short(frame.idle_cycles_mean), TEXT)]
            unit: Span = (" cycles/warp", QUIET)
            versions = [[*groups, [*idle, unit]], [*groups, idle]]
        if self._layout.style == "spark":
            versions.insert(0, [*versions[0], [("right: warps over the SM's busy span", QUIET)]])
        return [(" ", TEXT), *roomiest(versions, width - 1)]


def _former(view: View) -> SmColumns | None:
    """The SMs of the baseline, where it is of a device with the same ones."""
    now = view.frame.sms if view.frame is not None else None
    before = view.baseline.frame.sms if view.baseline is not None else None
    if now is None or before is None or len(now.sm) != len(before.sm):
        return None
    return before
