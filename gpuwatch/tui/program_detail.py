"""The lines below the list: all of the name under the cursor, and what a row has no room for."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.engine.program_kernels import ProgramKernel
from gpuwatch.tui.glyphs import Glyphs, shape, whole
from gpuwatch.tui.kernel_names import cut_within
from gpuwatch.tui.paint import Span, as_many
from gpuwatch.tui.pane import Drawing
from gpuwatch.tui.program_columns import shared_text
from gpuwatch.tui.theme import QUIET, RULE, STRONG, TEXT

Line = list[Span]

_GAP: Span = ("   ", QUIET)
_HEIGHT = 4
"""With one line for the name."""


class ProgramDetail(Drawing, Widget):
    """A rule; the whole name, in as many lines as there are; its shape; PTX and figures."""

    DEFAULT_CSS = f"ProgramDetail {{ height: {_HEIGHT}; }}"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._kernel: ProgramKernel | None = None

    def show(self, kernel: ProgramKernel | None) -> None:
        if kernel != self._kernel:
            self._kernel = kernel
            self.refresh()

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self.draw(self, [(self.glyphs.rule * self.size.width, RULE)])
        lines = [] if self._kernel is None else self._lines(self._kernel)
        return self.draw(self, lines[y - 1] if y <= len(lines) else [])

    def _lines(self, kernel: ProgramKernel) -> list[Line]:
        room = self.size.width - 2
        of_name = self.size.height - _HEIGHT + 1
        name = cut_within(kernel.name, of_name * room, self.glyphs.ellipsis)
        parts = [name[at : at + room] for at in range(0, len(name), room)]
        rest = (self._launches(kernel), self._figures(kernel))
        return [
            *([(" " + part, STRONG)] for part in parts),
            *([(" ", TEXT), *as_many(groups, room, _GAP)] for groups in rest),
        ]

    def _launches(self, kernel: ProgramKernel) -> list[Line]:
        parts = [shape(kernel.grid), shape(kernel.block)]
        if kernel.dynamic_shared:
            parts.append(str(kernel.dynamic_shared))
        others = kernel.shapes - 1
        groups: list[Line] = [[(f"<<<{', '.join(parts)}>>>", TEXT)]]
        if others > 0:
            groups[0].append((f" and {others} other shape{'s' if others > 1 else ''}", QUIET))
        if kernel.in_graphs:
            groups.append([(whole(kernel.in_graphs), TEXT), (" in CUDA graphs, not probed", QUIET)])
        if kernel.probed or kernel.skipped:
            groups.append(
                [
                    ("probed ", QUIET),
                    (whole(kernel.probed), TEXT),
                    (", without the probe ", QUIET),
                    (whole(kernel.skipped), TEXT),
                ]
            )
        return groups

    def _figures(self, kernel: ProgramKernel) -> list[Line]:
        figures: list[Line] = [
            [(str(kernel.registers), TEXT), (" registers", QUIET)],
            [("shared ", QUIET), (shared_text(kernel), TEXT)],
        ]
        if kernel.occupancy is not None:
            share = f"{100 * kernel.occupancy:.0f}%"
            figures.append([("theoretical occupancy ", QUIET), (share, TEXT)])
        if kernel.probeable:
            return [[("PTX ", QUIET), (kernel.origin, TEXT)], *figures]
        words = f"{self.glyphs.cross} no probe can attach: "
        room = self.size.width - 2 - len(words)
        why = cut_within(kernel.why, room, self.glyphs.ellipsis)
        return [[(words, QUIET), (why, TEXT)], *figures]
