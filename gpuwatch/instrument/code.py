"""Probe code under construction: lines, temporaries, branches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
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


OF_LANES = frozenset({"active lanes", "leads", "lane step", "lanes here", "lower lanes"})
"""Keys of memo that hold only while no lane has branched off."""
KEPT = {
    "active lanes": "u32",
    "leads": "pred",
    "lane step": "u32",
}
"""Keys of memo, with their types, that hold throughout a basic block, so that places in it share
them in registers of their own."""


@dataclass(slots=True)
class Temporaries:
    """Counts temporaries per class; the widest place decides what is declared."""

    prefix: str
    used: dict[str, int] = field(default_factory=dict)
    widest: dict[str, int] = field(default_factory=dict)
    keeping: dict[str, str] = field(default_factory=dict)
    """Registers of KEPT that are used, with their types."""

    def new(self, type_: str) -> str:
        """A register of a scalar type that nothing else at this place uses."""
        letter = CLASS[type_]
        number = self.used.get(letter, 0)
        self.used[letter] = number + 1
        self.widest[letter] = max(self.widest.get(letter, 0), number + 1)
        return f"{self.prefix}{letter}{number}"

    def kept(self, key: str, type_: str) -> str:
        """The register of a key of KEPT."""
        name = f"{self.prefix}k{list(KEPT).index(key)}"
        self.keeping[name] = type_
        return name

    def restart(self) -> None:
        """Begin a new place: temporaries do not live from one place to the next."""
        self.used.clear()

    def declarations(self) -> list[str]:
        """The `.reg` lines of all temporaries."""
        kept = sorted(self.keeping.items())
        return [
            f"\t.reg .{DECLARED[letter]} \t{self.prefix}{letter}<{count}>;"
            for letter, count in sorted(self.widest.items())
        ] + [f"\t.reg .{DECLARED[CLASS[type_]]} \t{name};" for name, type_ in kept]


class Code:
    """Lines of PTX for one place.

    `memo` holds values computed once and dominating what follows (indices, slots); a
    conditional region sees those from before it, but for what it knew of the lanes that run
    together, and leaves none behind.
    """

    def __init__(
        self,
        names: Names,
        temporaries: Temporaries,
        known: Mapping[str, str],
        kept: Collection[str] | None = None,
    ) -> None:
        """`known` are special registers with what they hold in every thread of the launch. `kept`
        are the keys of KEPT that are known from earlier places of the block; None where the place
        shares nothing with others."""
        self.lines: list[str] = []
        self._keeps = kept is not None
        self.kept = frozenset(kept or ())
        self.memo: dict[str, str] = {}
        self.now = ""
        """A u64 that was just read from the clock, for the first who asks; "" for none."""
        self.narrow: dict[str, str] = {}
        """Registers of u64 that were widened, with the u32 that they hold."""
        self.names = names
        self.temporaries = temporaries
        self.known = known
        self.memo.update((key, self._kept_in(key)) for key in self.kept)

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
            self.memo[key] = self.compute(type_, instruction, *operands, into=self.keep(key))
        return self.memo[key]

    def keep(self, key: str) -> str | None:
        """The register in which to compute what `key` of memo stands for; None for a temporary."""
        if not self._keeps or key not in KEPT:
            return None
        self.kept |= {key}
        return self._kept_in(key)

    def _kept_in(self, key: str) -> str:
        return self.temporaries.kept(key, KEPT[key])

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    @contextmanager
    def region(self) -> Iterator[None]:
        """What is computed inside is not known to be computed outside."""
        outer, keeps = self.memo, self._keeps
        self.now = ""
        self.memo = {key: value for key, value in outer.items() if key not in OF_LANES}
        self._keeps = False
        yield
        self.memo, self._keeps = outer, keeps

    @contextmanager
    def skipped_unless(self, guard: str) -> Iterator[None]:
        """A region run only by lanes for which `guard` ("%p" or "!%p") holds."""
        end = self.names.label()
        inverse = guard[1:] if guard.startswith("!") else f"!{guard}"
        self.emit(f"@{inverse} bra \t{end}")
        with self.region():
            yield
        self.label(end)
