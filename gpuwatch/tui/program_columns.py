"""The columns of the list of a program's kernels: texts, order, and which fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpuwatch.engine.program_kernels import ProgramKernel
from gpuwatch.tui.glyphs import Glyphs, seconds, shape, whole
from gpuwatch.tui.kernel_names import plain_name

GUTTER = 4
"""Cells of the cursor, the mark and a blank on both their sides."""
GAP = 2
NO_PTX = "machine code only"
NAME, SHARE = "kernel", "share"
PER_CENT = 6
"""Cells of a share's figure."""
_LEAST_NAME = 24
_LEAST_BAR, _MOST_BAR = 6, 24
_BAR_PART = 12
"""Of how many columns of the screen a bar has one at least."""
_WIDEST = 30
_KIB = 1024

Value = float | str | None


@dataclass(frozen=True, slots=True)
class Column:
    """`value` is what the kernels are ordered by, None where it is not known. Columns of a lower
    `rank` stay longer on a narrow screen."""

    title: str
    text: Callable[[ProgramKernel, Glyphs], str]
    value: Callable[[ProgramKernel], Value]
    rank: int
    left: bool = False
    """Texts begin at the left."""

    @property
    def descending(self) -> bool:
        """Whether the largest come first, as of figures."""
        return self.title not in (NAME, "PTX", "pid", "GPU")


def _launches(kernel: ProgramKernel) -> str:
    return ("~" if kernel.estimated else "") + whole(kernel.launches)


def share_of(kernel: ProgramKernel, total: float) -> float | None:
    """Its part, 0..1, of the `total` seconds of all kernels."""
    return None if kernel.total_seconds is None or total <= 0 else kernel.total_seconds / total


def per_cent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f}%"


def launch_shape(kernel: ProgramKernel) -> str:
    """32x43, 32x24 +3"""
    others = f" +{kernel.shapes - 1}" if kernel.shapes > 1 else ""
    return f"{shape(kernel.grid)}, {shape(kernel.block)}{others}"


def shared_text(kernel: ProgramKernel) -> str:
    """Static + dynamic shared memory of a block: 16+32 KiB."""
    sizes = (kernel.static_shared, kernel.dynamic_shared)
    if not any(sizes):
        return "0"
    if max(sizes) < _KIB:
        return f"{sizes[0]}+{sizes[1]} B"
    static, dynamic = (f"{round(size / _KIB, 1):g}" for size in sizes)
    return f"{static}+{dynamic} KiB"


def origin_text(kernel: ProgramKernel, glyphs: Glyphs) -> str:
    """Where its PTX came from, or else why no probe can attach."""
    if kernel.probeable:
        return kernel.origin
    return f"{glyphs.cross} {NO_PTX if kernel.origin == NO_PTX else kernel.why}"


def _seconds(value: float | None, glyphs: Glyphs) -> str:
    return "-" if value is None else seconds(value, glyphs)


def _occupancy(kernel: ProgramKernel) -> str:
    return "-" if kernel.occupancy is None else f"{100 * kernel.occupancy:.0f}%"


COLUMNS = (
    Column(NAME, lambda one, _: plain_name(one.name), lambda one: plain_name(one.name), 0, True),
    Column("launches", lambda one, _: _launches(one), lambda one: one.launches, 1),
    Column(
        "total", lambda one, g: _seconds(one.total_seconds, g), lambda one: one.total_seconds, 2
    ),
    Column(SHARE, lambda _, __: "", lambda one: one.total_seconds, 3),
    Column("mean", lambda one, g: _seconds(one.mean_seconds, g), lambda one: one.mean_seconds, 4),
    Column(
        "<<<grid, block>>>",
        lambda one, _: launch_shape(one),
        lambda one: math.prod((*one.grid, *one.block)),
        7,
        True,
    ),
    Column("regs", lambda one, _: str(one.registers), lambda one: one.registers, 9),
    Column(
        "shared",
        lambda one, _: shared_text(one),
        lambda one: one.static_shared + one.dynamic_shared,
        11,
    ),
    Column("theor. occ.", lambda one, _: _occupancy(one), lambda one: one.occupancy, 10),
    Column("pid", lambda one, _: str(one.process), lambda one: one.process, 5),
    Column("GPU", lambda one, _: str(one.device), lambda one: one.device, 6),
    Column("PTX", origin_text, lambda one: f"{one.origin}{one.why}", 8, True),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns on a screen, in order, with the cells of each; `bar` are those of a share's
    bar, which its figure follows."""

    columns: tuple[Column, ...] = ()
    widths: tuple[int, ...] = ()
    bar: int = 0

    @staticmethod
    def of(
        kernels: Sequence[ProgramKernel], width: int, glyphs: Glyphs, before: Layout | None = None
    ) -> Layout:
        """What fits into `width`. No column gets narrower than `before`, so that they stand still
        while figures change."""
        known = {} if before is None else before._by_title()
        sizes = {
            column.title: max(_cells(column, kernels, glyphs), known.get(column.title, 0))
            for column in COLUMNS[1:]
            if column.title != SHARE
        }
        bar = max(_LEAST_BAR, min(_MOST_BAR, width // _BAR_PART))
        sizes[SHARE] = bar + PER_CENT
        longest = max((len(plain_name(one.name)) for one in kernels), default=0)
        name = max(len(NAME) + 1, min(longest, max(_LEAST_NAME, width * 3 // 10)))
        left = width - GUTTER - name - 1
        shown = {NAME}
        for column in sorted(_wanted(kernels), key=lambda one: one.rank):
            if GAP + sizes[column.title] <= left:
                left -= GAP + sizes[column.title]
                shown.add(column.title)
        wider = max(0, min(left, longest - name))
        bar = min(_MOST_BAR, bar + max(0, left - wider))
        sizes |= {NAME: name + wider, SHARE: bar + PER_CENT}
        columns = tuple(column for column in COLUMNS if column.title in shown)
        return Layout(columns, tuple(sizes[column.title] for column in columns), bar)

    def title_at(self, x: int) -> str | None:
        """The column over the cell `x`, as far as there is one."""
        edge = GUTTER - GAP
        for column, width in zip(self.columns, self.widths, strict=True):
            edge += width + GAP
            if x < edge:
                return column.title
        return None

    def _by_title(self) -> dict[str, int]:
        titles = (column.title for column in self.columns)
        return dict(zip(titles, self.widths, strict=True))


def _wanted(kernels: Sequence[ProgramKernel]) -> list[Column]:
    """Columns but the name's: a process or a GPU is told only where there are several."""
    alone = set()
    if len({one.process for one in kernels}) < 2:
        alone.add("pid")
    if len({one.device for one in kernels}) < 2:
        alone.add("GPU")
    return [column for column in COLUMNS[1:] if column.title not in alone]


def _cells(column: Column, kernels: Sequence[ProgramKernel], glyphs: Glyphs) -> int:
    widest = max((len(column.text(one, glyphs)) for one in kernels), default=0)
    return max(len(column.title) + 1, min(widest, _WIDEST))
