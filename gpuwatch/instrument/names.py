"""Names for what is woven in, none of which the module already uses."""

from __future__ import annotations

import re

IDENTIFIER = re.compile(r"[%$A-Za-z_][\w$]*")


class Names:
    """Hands out identifiers that occur nowhere in a PTX text, not even as a part of others."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._given: set[str] = set()
        self.registers = self._prefix("%gpw")
        """Prefix of every woven register."""
        self.labels = self._prefix("$gpw_")
        """Prefix of every woven label; a number follows."""
        self.labels_given = 0

    def unique(self, wanted: str) -> str:
        """`wanted`, or the first of `wanted_2`, `wanted_3`, ... that is free; then taken."""
        name, number = wanted, 1
        while name in self._given or name in self._text:
            number += 1
            name = f"{wanted}_{number}"
        self._given.add(name)
        return name

    def label(self) -> str:
        """A new label."""
        return f"{self.labels}{self.reserve_labels(1) + 1}"

    def reserve_labels(self, count: int) -> int:
        """Takes the next `count` labels; the number of labels given out before them."""
        before = self.labels_given
        self.labels_given += count
        return before

    def _prefix(self, wanted: str) -> str:
        prefix, number = wanted, 1
        while prefix in self._text:
            number += 1
            prefix = f"{wanted}{number}_"
        return prefix
