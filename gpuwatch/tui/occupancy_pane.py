"""Per-SM occupancy: bars with numbers, packed tighter the more SMs there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rich.style import Style

from gpuwatch.analysis.occupancy import SmColumns
from gpuwatch.tui.glyphs import bar, short
from gpuwatch.tui.paint import Span, roomiest
from gpuwatch.tui.pane import Pane, nothing_recorded
from gpuwatch.tui.theme import CURSOR, QUIET, STRONG, TEXT, heat, ramp

_BAR_CELL = 9
"""Narrowest cell with a label, a bar and a number: " 17 ▇  94"."""
_NUMBER_CELL = 3
_LABEL = 4


@dataclass(frozen=True, slots=True)
class CellLayout:
    """`style` is "bar" (label, bar, number), "number" (coloured numbers, one label a line) or
    "dot" (one coloured cell each)."""

    style: str
    columns: int
    width: int


def cell_layout(sms: int, width: int, height: int) -> CellLayout:
    """How to show `sms` cells in `width` x `height`, as roomy as possible with all in view."""
    columns = max(1, -(-sms // max(1, height)))
    if width // columns >= _BAR_CELL:
        return CellLayout("bar", columns, min(width // columns, 40))
    if (width - _LABEL) // columns >= _NUMBER_CELL:
        most = (width - _LABEL) // _NUMBER_CELL
        tens = most // 10 * 10
        return CellLayout("number", tens if tens >= columns else columns, _NUMBER_CELL)
    return CellLayout("dot", max(1, width - _LABEL), 1)


class OccupancyPane(Pane):
    """All SMs at once, the one of the selected warp marked."""

    def title_text(self) -> str:
        return "SM occupancy"

    @property
    def sms(self) -> SmColumns | None:
        return self.view.frame.sms if self.view is not None and self.view.frame else None

    def figures(self) -> list[list[list[Span]]]:
        sms = self.sms
        if sms is None or len(sms.sm) == 0:
            return [[]]
        percent = sms.occupancy * 100
        low, high = int(np.argmin(percent)), int(np.argmax(percent))
        mean = float(percent.mean())
        groups: list[list[Span]] = [
            [("mean ", QUIET), (f"{mean:.1f}%", ramp(mean / 100) + STRONG)],
            [("min ", QUIET), (f"{percent[low]:.0f}%", TEXT), (f" SM {sms.sm[low]}", QUIET)],
            [("max ", QUIET), (f"{percent[high]:.0f}%", TEXT), (f" SM {sms.sm[high]}", QUIET)],
        ]
        return [groups]

    def body(self, row: int, width: int, height: int) -> list[Span]:
        sms = self.sms
        if sms is None:
            return nothing_recorded(self.view, "SM and no start and elapsed", row, height)
        if height > 2 and row == height - 1:
            return self._summary(sms, width)
        layout = cell_layout(len(sms.sm), width, height - (height > 2))
        first = row * layout.columns
        chosen = range(first, min(first + layout.columns, len(sms.sm)))
        draw = {"bar": self._bars, "number": self._numbers, "dot": self._dots}[layout.style]
        return draw(sms, chosen, layout)

    def _bars(self, sms: SmColumns, chosen: range, layout: CellLayout) -> list[Span]:
        spans: list[Span] = []
        size = layout.width - 9 if layout.width >= 11 else layout.width - 8
        for index in chosen:
            part = float(sms.occupancy[index])
            number = int(sms.sm[index])
            spans.append((f"{number:>3} ", self._label(number)))
            spans.append((bar(part, size, self.glyphs.across), ramp(part)))
            spans.append((f"{part * 100:>3.0f}", TEXT))
            spans.append((" " * (layout.width - size - 7), TEXT))
        return spans

    def _numbers(self, sms: SmColumns, chosen: range, layout: CellLayout) -> list[Span]:
        if not chosen:
            return []
        spans: list[Span] = [(f"{int(sms.sm[chosen.start]):>3} ", QUIET)]
        for index in chosen:
            part = float(sms.occupancy[index])
            style = CURSOR if int(sms.sm[index]) == self._selected() else heat(part)
            spans.append((f"{part * 100:>{layout.width}.0f}", style))
        return spans

    def _dots(self, sms: SmColumns, chosen: range, layout: CellLayout) -> list[Span]:
        if not chosen:
            return []
        spans: list[Span] = [(f"{int(sms.sm[chosen.start]):>3} ", QUIET)]
        for index in chosen:
            part = float(sms.occupancy[index])
            style = CURSOR if int(sms.sm[index]) == self._selected() else ramp(part)
            spans.append((self.glyphs.block * layout.width, style))
        return spans

    def _selected(self) -> float | None:
        return self.view.selected_value("SM") if self.view is not None else None

    def _label(self, number: int) -> Style:
        return CURSOR if number == self._selected() else QUIET

    def _summary(self, sms: SmColumns, width: int) -> list[Span]:
        assert self.view is not None and self.view.frame is not None
        frame = self.view.frame
        busy = int((sms.blocks > 0).sum())
        spread = f" ({sms.blocks.min()}-{sms.blocks.max()})"
        groups: list[list[Span]] = [
            [("busy ", QUIET), (f"{busy}/{len(sms.sm)}", TEXT), (" SMs", QUIET)],
            [("blocks/SM ", QUIET), (f"{sms.blocks.mean():.1f}", TEXT), (spread, QUIET)],
        ]
        versions = [groups]
        if frame.idle_cycles_mean is not None:
            idle: list[Span] = [("idle ", QUIET), (short(frame.idle_cycles_mean), TEXT)]
            unit: Span = (" cycles/SM", QUIET)
            versions = [[*groups, [*idle, unit]], [*groups, idle]]
        return [(" ", TEXT), *roomiest(versions, width - 1)]
