"""The instruction that a probe is about: what the helpers can read of it.

Sources are the operands that are neither the destination nor an address, in the order of the
text: the value stored by a `st` is `in1`, as is the value added by an `atom.add`. Of vectors it
is the first element. The address of a copy is the one in global memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from gpuwatch.instrument.registers import Declared
from gpuwatch.ptx import isa
from gpuwatch.ptx.model import (
    Address,
    Group,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)
from gpuwatch.ptx.types import TYPE_BITS

SOURCES = ("in1", "in2", "in3")
HELPERS = frozenset({"addr", "bytes", "out", *SOURCES})
"""Helpers that speak of the instruction."""

_NAMES_AS_VALUES = frozenset({"mov", "cvta"})
"""Opcodes whose source may be the name of a variable."""
_NO_ACCESS = "it accesses no memory"
_SIZES_BY_OPCODE = frozenset({"ld", "ldu", "st", "atom", "red"})
"""Opcodes whose access width follows from their tokens."""

Kind = Literal["register", "special", "integer", "float", "symbol", "negated"]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    overwritten: frozenset[str] = frozenset()
    """Which of the parts, and "guard", the instruction itself writes."""
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
        rest = bool(self.offset), self.bytes, self.overwritten
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


class SubjectReader:
    """Reads of instructions only what `needed` helpers ask for, as their operands are read late."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._sizes: dict[tuple[str, ...], int | None] = {}
        self._opcodes: dict[tuple[str, ...], str] = {}

    def read(self, instruction: Instruction, needed: frozenset[str], behind: bool) -> Subject:
        """`behind` says that a probe runs after the instruction too."""
        tokens = instruction.tokens
        if tokens not in self._opcodes:
            self._opcodes[tokens] = ".".join(tokens)
        guard = instruction.guard
        parts: dict[str, Part] = {}
        missing: dict[str, str] = {}
        offset = 0
        if "addr" in needed:
            offset = self._address(instruction, parts, missing)
        size = self._bytes(instruction, parts, missing) if "bytes" in needed else None
        if "out" in needed:
            self._out(instruction, parts, missing)
        if not needed.isdisjoint(SOURCES):
            self._sources(instruction, needed, parts, missing)
        overwritten: frozenset[str] = frozenset()
        if behind and (guard or parts):
            overwritten = _overwritten(instruction, parts)
        return Subject(
            self._opcodes[tokens],
            guard.register if guard else "",
            guard.negated if guard else False,
            not isa.ends_block(instruction),
            parts,
            str(offset) if offset else "",
            size,
            overwritten,
            missing,
        )

    def _address(
        self, instruction: Instruction, parts: dict[str, Part], missing: dict[str, str]
    ) -> int:
        """Adds the base; the offset."""
        access = isa.memory_access(instruction)
        if access is None or not access.addresses:
            missing["addr"] = _NO_ACCESS
            return 0
        copies_out = access.kind == "copy" and access.destination == "global"
        operand = access.addresses[0 if copies_out or len(access.addresses) == 1 else 1]
        if isinstance(operand, Group):
            missing["addr"] = "its address comes from a tensor map"
            return 0
        if access.space == "param":
            missing["addr"] = "parameters have no address"
            return 0
        parts["base"] = self._part(operand.base, "u64")
        return operand.offset

    def _bytes(
        self, instruction: Instruction, parts: dict[str, Part], missing: dict[str, str]
    ) -> int | None:
        tokens = instruction.tokens
        if tokens in self._sizes:
            return self._sizes[tokens]
        access = isa.memory_access(instruction)
        if access is None:
            missing["bytes"] = _NO_ACCESS
            return None
        if tokens[0] in _SIZES_BY_OPCODE and access.bytes is not None:
            self._sizes[tokens] = access.bytes
        elif access.kind == "copy":
            self._copied(instruction, parts)
        if access.bytes is None and "size" not in parts:
            missing["bytes"] = "the PTX does not say how many bytes it moves"
        return access.bytes

    def _copied(self, instruction: Instruction, parts: dict[str, Part]) -> None:
        """The operand of a copy that says how much it reads of its source."""
        tokens = instruction.tokens
        if "tensor" in tokens:
            return
        if "bulk" in tokens:
            parts["size"] = self._part(instruction.operands[2], "u32")
            return
        hinted = "L2::cache_hint" in tokens
        for operand in instruction.operands[3 : len(instruction.operands) - hinted]:
            part = self._part(operand, "u32")
            parts["ignored" if part.declared == "pred" else "size"] = part

    def _out(
        self, instruction: Instruction, parts: dict[str, Part], missing: dict[str, str]
    ) -> None:
        targets = isa.written(instruction)
        if not targets:
            missing["out"] = "it writes no register"
            return
        part = self._part(_first(instruction.operands[0]), _taken(instruction.tokens, first=True))
        if part.text == isa.SINK:
            missing["out"] = "it drops its first result"
        else:
            parts["out"] = part

    def _sources(
        self,
        instruction: Instruction,
        needed: frozenset[str],
        parts: dict[str, Part],
        missing: dict[str, str],
    ) -> None:
        operands = instruction.operands[bool(isa.written(instruction)) :]
        values = [each for each in operands if not isinstance(each, Address | Group)]
        taken = _taken(instruction.tokens, first=False)
        for number, name in enumerate(SOURCES):
            if name not in needed:
                continue
            if number >= len(values):
                missing[name] = f"it has {len(values)} values to read"
                continue
            part = self._part(_first(values[number]), taken)
            if part.kind == "symbol" and instruction.opcode not in _NAMES_AS_VALUES:
                missing[name] = f"{part.text} is no value"
            else:
                parts[name] = part

    def _part(self, operand: Operand, taken: str) -> Part:
        match operand:
            case Register(name):
                declared = self._declared.type_of(name)
                return Part(name, "register" if declared else "special", declared, taken)
            case Negated(Register(name)):
                return Part(name, "negated", self._declared.type_of(name), taken)
            case Immediate(text, value, is_float):
                if is_float and text[:2] not in ("0d", "0D"):
                    return Part(text, "float", taken=taken)
                return Part(text, "integer", taken=taken, value=int(value))
            case Symbol(name, offset):
                return Part(f"{name}+{offset}" if offset else name, "symbol", taken=taken)
        raise AssertionError(operand)


def _first(operand: Operand) -> Operand:
    match operand:
        case Vector(items) | Group(items) if items:
            return _first(items[0])
        case Pair(first, _):
            return first
    return operand


def _taken(tokens: tuple[str, ...], *, first: bool) -> str:
    """The type of the destination, which comes first, or of the sources, which comes last."""
    types = [token for token in tokens if token in TYPE_BITS]
    return (types[0] if first else types[-1]) if types else ""


def _overwritten(instruction: Instruction, parts: dict[str, Part]) -> frozenset[str]:
    targets = isa.written(instruction)
    return frozenset(_hit(instruction, parts, targets)) if targets else frozenset()


def _hit(
    instruction: Instruction, parts: dict[str, Part], targets: tuple[str, ...]
) -> Iterator[str]:
    if instruction.guard and instruction.guard.register in targets:
        yield "guard"
    for name, part in parts.items():
        if name != "out" and part.text in targets:
            yield name
