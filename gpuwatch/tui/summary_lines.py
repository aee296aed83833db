"""A preset's own view: its figures as columns with bars, beside those of the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.style import Style

from gpuwatch.analysis.maps import Number
from gpuwatch.analysis.summary import Column, Row, Section
from gpuwatch.tui.glyphs import Glyphs, bar, brief
from gpuwatch.tui.paint import Span, as_many
from gpuwatch.tui.theme import FORMER, QUIET, STRONG, TEXT, TITLE, ramp

Line = list[Span]

_LEAST_BAR, _MOST_BAR = 6, 40
_GAP = 2
_SHARE = 8
"""Columns of a share and the blank in front of it."""
_INDENT = 3
_LEAST_NAME = 14
_ALL = "all"
_THEN, _CHANGE = "  before", "  change"


def summary_lines(
    sections: Sequence[Section],
    before: Sequence[Section],
    glyphs: Glyphs,
    width: int,
    *,
    modelled: bool,
) -> Iterable[Line]:
    """Lines of all sections, a blank one behind each. `before` are those of the baseline."""
    former = {section.title: section for section in before}
    for section in sections:
        yield _heading(section, width, modelled=modelled)
        yield from _Table(section, former.get(section.title), glyphs, width).lines()
        yield []


def _heading(section: Section, width: int, *, modelled: bool) -> Line:
    """As much of what is to be said as fits."""
    title = f" {section.title}  "
    said: list[Line] = []
    if section.timed and modelled:
        said.append([("modelled", STRONG)])
    if section.estimated:
        said.append([(f"~ estimated from 1 in {section.sample}", STRONG)])
    if section.remark:
        said.append([(section.remark, QUIET)])
    return [(title, TITLE), *as_many(said, width - len(title), ("  ", QUIET))]


@dataclass(frozen=True, slots=True)
class _Cells:
    """A row as texts, by column; the share of its bar, None for no bar."""

    name: str
    texts: tuple[str, ...]
    share: float | None = None
    note: str = ""
    former: bool = False


class _Table:
    """The columns that fit, as wide as their texts; a bar takes what is left."""

    def __init__(
        self, section: Section, before: Section | None, glyphs: Glyphs, width: int
    ) -> None:
        self._section, self._glyphs, self._width = section, glyphs, width
        self._former = {row.name: row for row in before.totals} if before is not None else {}
        if before is not None and before.columns != section.columns:
            self._former = {}
        self._totals, self._parts, self._kept = self._roomiest()
        self._sizes = {place: self._size(place) for place in self._kept}
        self._name = self._name_width()
        left = width - self._needed(self._kept)
        self._bar = min(_MOST_BAR, max(_LEAST_BAR, _LEAST_BAR + left))

    # ---- what fits

    def _roomiest(self) -> tuple[list[_Cells], list[_Cells], list[int]]:
        """Whole numbers in all columns, else short ones, in ever fewer columns."""
        columns = self._section.columns
        values = list(range(len(columns) - self._section.barred))
        by_rank = sorted(values, key=lambda place: columns[place].rank)
        choices = [(True, values)]
        choices += [(False, sorted(by_rank[:count])) for count in range(len(values), -1, -1)]
        for exact, kept in choices:
            self._totals, self._parts = self._cells(exact=exact)
            if self._needed(kept) <= self._width:
                break
        return self._totals, self._parts, kept

    def _needed(self, kept: Sequence[int]) -> int:
        cells = _INDENT + self._name_width() + sum(_GAP + self._size(place) for place in kept)
        if not self._section.barred:
            return cells
        note = max((len(row.note) for row in self._section.parts), default=0)
        return cells + _GAP + _LEAST_BAR + _SHARE + (_GAP + note if note else 0)

    def _size(self, place: int) -> int:
        title = self._section.columns[place].title
        rows = (*self._totals, *self._parts)
        return max(len(title), *(len(row.texts[place]) for row in rows), 0)

    def _name_width(self) -> int:
        longest = max(len(row.name) for row in (*self._totals, *self._parts, _Cells(_THEN, ())))
        return min(longest, max(_LEAST_NAME, self._width // 3))

    # ---- texts

    def _cells(self, *, exact: bool) -> tuple[list[_Cells], list[_Cells]]:
        totals: list[_Cells] = []
        for row in self._section.totals:
            totals.append(self._row(row, exact=exact))
            then = self._former.get(row.name)
            if then is not None:
                totals.append(self._row(then, exact=exact, former=True))
                totals.append(self._change(then, row))
        return totals, [self._row(row, exact=exact) for row in self._section.parts]

    def _row(self, row: Row, *, exact: bool, former: bool = False) -> _Cells:
        section = self._section
        texts = tuple(
            _text(column, value, exact=exact, estimated=row.estimated)
            for column, value in zip(section.columns, row.values, strict=True)
        )
        last = row.values[-1] if section.barred else None
        share = None if last is None else float(last)
        return _Cells(_THEN if former else row.name or _ALL, texts, share, row.note, former)

    def _change(self, then: Row, now: Row) -> _Cells:
        pairs = zip(self._section.columns, then.values, now.values, strict=True)
        texts = tuple(change_text(*pair, self._glyphs.times) for pair in pairs)
        return _Cells(_CHANGE, texts, former=True)

    # ---- lines

    def lines(self) -> Iterator[Line]:
        if not self._totals and not self._parts:
            yield [("   nothing was measured", QUIET)]
            return
        yield self._heads()
        for row in self._totals:
            yield self._line(row, total=True)
        for row in self._parts:
            yield self._line(row, total=False)
        if self._section.left_out:
            yield [(f"   and {self._section.left_out} more {self._section.parts_are}s", QUIET)]

    def _heads(self) -> Line:
        columns = self._section.columns
        name = "" if self._totals else self._section.parts_are
        spans: Line = [(f"   {name:<{self._name}}", QUIET)]
        spans += [
            (f"{columns[place].title:>{_GAP + self._sizes[place]}}", QUIET) for place in self._kept
        ]
        if self._section.barred:
            spans.append((" " * _GAP + columns[-1].title, QUIET))
        return spans

    def _line(self, row: _Cells, *, total: bool) -> Line:
        names, figures = (TEXT, STRONG) if total else (QUIET, TEXT)
        if row.former:
            names = figures = QUIET
        spans: Line = [(f"   {row.name[: self._name]:<{self._name}}", names)]
        spans += [
            (f"{row.texts[place]:>{_GAP + self._sizes[place]}}", figures) for place in self._kept
        ]
        if self._section.barred:
            spans += self._share(row, figures)
        return spans

    def _share(self, row: _Cells, figures: Style) -> Line:
        """The bar of the last column, its figure and what is noted of the row."""
        share = row.share or 0.0
        shown = bar(share, self._bar, self._glyphs.across)
        return [
            (" " * _GAP + shown, FORMER if row.former else ramp(share)),
            (f"{row.texts[-1]:>{_SHARE}}", figures),
            (f"  {row.note}" if row.note else "", STRONG),
        ]


def _text(column: Column, value: Number | None, *, exact: bool, estimated: bool) -> str:
    full = column.text(value, estimated=estimated)
    if exact or value is None or column.form in ("mean", "share"):
        return full
    return ("~" if full.startswith("~") else "") + brief(value)


def change_text(column: Column, then: Number | None, now: Number | None, times: str) -> str:
    """+12.5%, or x2.5 from twice as much on; of shares the difference in points; "" where there
    is nothing to compare."""
    if then is None or now is None:
        return ""
    if now == then:
        return "="
    if column.form == "share":
        return f"{100 * (now - then):+.1f} pt"
    if not then:
        return ""
    return f"{times}{now / then:,.1f}" if now >= 2 * then else f"{100 * (now / then - 1):+.1f}%"
