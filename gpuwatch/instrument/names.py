"""Names for what is woven in, none of which the module already uses."""

from __future__ import annotations

import re

IDENTIFIER = re.compile(r"[%$A-Za-z_][\w$]*")


class Names:
    """Hands out identifiers that do not occur in a PTX text."""

    def __init__(self, text: str) -> None:
        self._taken = set(IDENTIFIER.findall(text))
        self._labels = 0
        self.registers = self._prefix("%gpw")
        """Prefix of every woven register; no identifier of the module begins with it."""
        self._label_prefix = self._prefix("$gpw_")

    def unique(self, wanted: str) -> str:
        """`wanted`, or the first of `wanted_2`, `wanted_3`, ... that is free; then taken."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name

    def label(self) -> str:
        """A new label."""
        self._labels += 1
        return f"{self._label_prefix}{self._labels}"

    def _prefix(self, wanted: str) -> str:
        prefix, number = wanted, 1
        while any(name.startswith(prefix) for name in self._taken):
            number += 1
            prefix = f"{wanted}{number}_"
        return prefix
