"""Probe code under construction: lines, temporaries, branches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gpuwatch.instrument.names import Names

CLASS = {
    "u32": "r",
    "s32": "r",
    "u64": "d",
    "s64": "d",
    "f32": "f",
    "pred": "p",
    "b16": "h",
}
"""Register class of each scalar type: the letter in a temporary's name."""

DECLARED = {"r": "b32", "d": "b64", "f": "f32", "p": "pred", "h": "b16"}


OF_LANES = frozenset({"active lanes", "leads"})
"""Keys of memo that hold only while no lane has branched off."""


@dataclass(slots=True)
class Temporaries:
    """Counts temporaries per class; the widest place decides what is declared."""

    prefix: str
    used: dict[str, int] = field(default_factory=dict)
    widest: dict[str, int] = field(default_factory=dict)

    def new(self, type_: str) -> str:
        """A register of a scalar type that nothing else at this place uses."""
        letter = CLASS[type_]
        number = self.used.get(letter, 0)
        self.used[letter] = number + 1
        self.widest[letter] = max(self.widest.get(letter, 0), number + 1)
        return f"{self.prefix}{letter}{number}"

    def restart(self) -> None:
        """Begin a new place: temporaries do not live from one place to the next."""
        self.used.clear()

    def declarations(self) -> list[str]:
        """The `.reg` lines of all temporaries."""
        return [
            f"\t.reg .{DECLARED[letter]} \t{self.prefix}{letter}<{count}>;"
            for letter, count in sorted(self.widest.items())
        ]


class Code:
    """Lines of PTX for one place.

    `memo` holds values computed once and dominating what follows (indices, slots); a
    conditional region sees those from before it, but for what it knew of the lanes that run
    together, and leaves none behind.
    """

    def __init__(self, names: Names, temporaries: Temporaries) -> None:
        self.lines: list[str] = []
        self.memo: dict[str, str] = {}
        self.names = names
        self.temporaries = temporaries

    def emit(self, instruction: str) -> None:
        """Add one instruction, given without its semicolon."""
        self.lines.append(f"\t{instruction};")

    def compute(self, type_: str, instruction: str, *operands: str, into: str | None = None) -> str:
        """Add `instruction into, operands`; gives `into`, a new temporary if it is None."""
        target = into or self.temporaries.new(type_)
        self.emit(f"{instruction} \t{', '.join((target, *operands))}")
        return target

    def once(self, key: str, type_: str, instruction: str, *operands: str) -> str:
        """Like `compute`, but a second call with the same key gives the first one's register."""
        if key not in self.memo:
            self.memo[key] = self.compute(type_, instruction, *operands)
        return self.memo[key]

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    @contextmanager
    def region(self) -> Iterator[None]:
        """What is computed inside is not known to be computed outside."""
        outer = self.memo
        self.memo = {key: value for key, value in outer.items() if key not in OF_LANES}
        yield
        self.memo = outer

    @contextmanager
    def skipped_unless(self, guard: str) -> Iterator[None]:
        """A region run only by lanes for which `guard` ("%p" or "!%p") holds."""
        end = self.names.label()
        inverse = guard[1:] if guard.startswith("!") else f"!{guard}"
        self.emit(f"@{inverse} bra \t{end}")
        with self.region():
            yield
        self.label(end)
