"""The instruction that a probe is about: what the helpers can read of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

SOURCES = ("in1", "in2", "in3")

Kind = Literal["register", "special", "integer", "float", "symbol", "negated"]


@dataclass(slots=True)
class Part:
    """One operand. `declared` is a register's type, `taken` the type in which the instruction
    takes it; "" when unknown."""

    text: str
    kind: Kind
    declared: str = ""
    taken: str = ""
    value: int = 0
    """Value of an integer, bit pattern of an f64 literal."""

    @property
    def varies(self) -> bool:
        """Whether code for one such operand serves for others if only the text is replaced."""
        return self.kind in ("register", "special", "symbol", "negated")


@dataclass(slots=True)
class Subject:
    """`parts` by what they are: out, in1, in2, in3, base (of the address), size, ignored (of
    asynchronous copies: bytes to read, predicate of copies that read nothing)."""

    opcode: str
    guard: str = ""
    negated: bool = False
    passes: bool = True
    """Whether the lanes behind the instruction are those that ran it: it is no branch or exit."""
    parts: dict[str, Part] = field(default_factory=dict)
    offset: str = ""
    """Bytes to add to the base, "" for none."""
    bytes: int | None = None
    space: str = ""
    """State space of the access; of a copy, that of the address; "generic", "" for no access."""
    overwritten: frozenset[str] = frozenset()
    """Which of the parts, and "guard", the instruction itself writes."""
    stride: int | None = None
    """Bytes from one lane's base to the next one's, where that is known."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why there is no such part, by helper."""

    def key(self) -> tuple[object, ...]:
        """What code for this instruction depends on, apart from the texts that `holes` names."""
        parts = tuple(
            [
                (name, part.kind, part.declared, part.taken, "" if part.varies else part.text)
                for name, part in self.parts.items()
            ]
        )
        guard = bool(self.guard), self.negated, self.passes
        rest = bool(self.offset), self.bytes, self.space, self.overwritten, self.stride
        return (*parts, *guard, *rest, *self.missing.items())

    def texts(self) -> dict[str, str]:
        """What stands in this instruction in place of each of the holes."""
        texts = {name: part.text for name, part in self.parts.items()}
        return {**texts, "guard": self.guard, "offset": self.offset}

    def with_holes(self, hole: str) -> Subject:
        """The subject with `hole % name` in place of each text that varies."""
        parts = {
            name: replace(part, text=hole % name) if part.varies else part
            for name, part in self.parts.items()
        }
        return replace(
            self,
            parts=parts,
            guard=hole % "guard" if self.guard else "",
            offset=hole % "offset" if self.offset else "",
        )
