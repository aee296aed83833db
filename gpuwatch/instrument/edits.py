"""Insertions into a text, applied in one pass."""

from __future__ import annotations

import re
from dataclasses import dataclass

_REST_OF_LINE = re.compile(r"[ \t\r]*(?://[^\n]*)?\n")


@dataclass(frozen=True, slots=True)
class _Insertion:
    offset: int
    block: str
    whole: bool
    """Whether `offset` is the start of a line, so that no line of the text has to be split."""


class Edits:
    """Collects whole lines to insert; those at one offset stay in the order of their calls.

    A block is one or more lines without the last one's line break; "" inserts nothing.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._insertions: list[_Insertion] = []

    def before(self, offset: int, block: str) -> None:
        """Insert `block` in front of the statement that starts at `offset`."""
        if block:
            start = self._text.rfind("\n", 0, offset) + 1
            whole = not self._text[start:offset].strip(" \t")
            self._insertions.append(_Insertion(start if whole else offset, block, whole))

    def after(self, offset: int, block: str) -> None:
        """Insert `block` behind the statement that ends at `offset`."""
        if block:
            rest = _REST_OF_LINE.match(self._text, offset)
            place = rest.end() if rest else offset
            self._insertions.append(_Insertion(place, block, rest is not None))

    def apply(self) -> tuple[str, tuple[int, ...]]:
        """The text with all insertions, and the numbers (from 1) of the lines they added."""
        parts: list[str] = []
        added: list[int] = []
        position, line = 0, 1
        for insertion in sorted(self._insertions, key=lambda each: each.offset):
            kept = self._text[position : insertion.offset]
            line += kept.count("\n") + (not insertion.whole)
            parts += (kept, "" if insertion.whole else "\n", insertion.block, "\n")
            end = line + insertion.block.count("\n") + 1
            added.extend(range(line, end))
            line = end
            position = insertion.offset
        parts.append(self._text[position:])
        return "".join(parts), tuple(added)
