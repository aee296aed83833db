"""Reading of the instruction that a probe is about.

Sources are the operands that are neither the destination nor an address, in the order of the
text: the value stored by a `st` is `in1`, as is the value added by an `atom.add`. Of vectors it
is the first element. The address of a copy is the one in global memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuwatch.instrument.registers import Declared
from gpuwatch.instrument.subject import SOURCES, Part, Subject
from gpuwatch.ptx import isa
from gpuwatch.ptx.access import PLAIN
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

_NEED_ADDRESS = frozenset({"addr", "sectors", "bank_conflicts"})
_NEED_SIZE = frozenset({"bytes", "sectors", "bank_conflicts"})
_NEED_OUT = frozenset({"out", "arrived"})
_NEED_SOURCES = frozenset(SOURCES)
_NAMES_AS_VALUES = frozenset({"mov", "cvta"})
"""Opcodes whose source may be the name of a variable."""
_NO_ACCESS = "it accesses no memory"
_NO_SIZE = "the PTX does not say how many bytes it moves"


@dataclass(frozen=True, slots=True)
class _Opcode:
    """What all instructions with the same tokens have in common."""

    name: str
    passes: bool
    plain: bool
    size: int | None
    space: str
    written: str
    """The type of the destination, which comes first; "" when none is named."""
    read: str
    """The type of the sources, which comes last."""

    @staticmethod
    def of(instruction: Instruction) -> _Opcode:
        tokens = instruction.tokens
        types = [token for token in tokens if token in TYPE_BITS] or [""]
        plain = tokens[0] in PLAIN
        access = isa.memory_access(instruction) if plain else None
        return _Opcode(
            ".".join(tokens),
            not isa.ends_block(instruction),
            access is not None,
            access.bytes if access else None,
            access.space if access else "",
            types[0],
            types[-1],
        )


class SubjectReader:
    """Reads of instructions only what `needed` helpers ask for, as their operands are read late."""

    def __init__(self, declared: Declared, strides: Mapping[str, int | None]) -> None:
        """`strides` are what registers change by from lane to lane, as far as known."""
        self._declared = declared
        self._strides = strides
        self._opcodes: dict[tuple[str, ...], _Opcode] = {}

    def read(self, instruction: Instruction, needed: frozenset[str], behind: bool) -> Subject:
        """`behind` says that a probe runs after the instruction too."""
        opcode = self._opcodes.get(instruction.tokens)
        if opcode is None:
            opcode = self._opcodes[instruction.tokens] = _Opcode.of(instruction)
        subject = Subject(opcode.name, passes=opcode.passes)
        guard = instruction.guard
        if guard:
            subject.guard, subject.negated = guard.register, guard.negated
        if needed:
            if not needed.isdisjoint(_NEED_ADDRESS):
                self._address(instruction, opcode, subject)
            if not needed.isdisjoint(_NEED_SIZE):
                self._size(instruction, opcode, subject)
            if not needed.isdisjoint(_NEED_OUT):
                self._out(instruction, opcode, subject)
            if not needed.isdisjoint(_NEED_SOURCES):
                self._sources(instruction, needed, opcode, subject)
        if behind and (guard or subject.parts):
            subject.overwritten = frozenset(_overwritten(instruction, subject.parts))
        return subject

    def _address(self, instruction: Instruction, opcode: _Opcode, subject: Subject) -> None:
        operand: Address | Group
        if opcode.plain:
            subject.space = opcode.space
            operand = next(one for one in instruction.operands if isinstance(one, Address))
        else:
            access = isa.memory_access(instruction)
            if access is None or not access.addresses:
                subject.missing["addr"] = _NO_ACCESS
                return
            copies_out = access.kind == "copy" and access.destination == "global"
            subject.space = access.destination if copies_out else access.space
            operand = access.addresses[0 if copies_out or len(access.addresses) == 1 else 1]
        if isinstance(operand, Group):
            subject.missing["addr"] = "its address comes from a tensor map"
        elif subject.space == "param":
            subject.missing["addr"] = "parameters have no address"
        else:
            subject.parts["base"] = self._part(operand.base, "u64")
            fixed = not isinstance(operand.base, Register)
            subject.stride = 0 if fixed else self._strides.get(subject.parts["base"].text)
            subject.offset = str(operand.offset) if operand.offset else ""

    def _size(self, instruction: Instruction, opcode: _Opcode, subject: Subject) -> None:
        subject.bytes = opcode.size
        if not opcode.plain:
            access = isa.memory_access(instruction)
            if access is None:
                subject.missing["bytes"] = _NO_ACCESS
                return
            subject.bytes = access.bytes
            if access.kind == "copy":
                self._copied(instruction, subject)
        if subject.bytes is None and "size" not in subject.parts:
            subject.missing["bytes"] = _NO_SIZE

    def _copied(self, instruction: Instruction, subject: Subject) -> None:
        """The operand of a copy that says how much it reads of its source."""
        tokens = instruction.tokens
        if "tensor" in tokens:
            return
        if "bulk" in tokens:
            subject.parts["size"] = self._part(instruction.operands[2], "u32")
            return
        hinted = "L2::cache_hint" in tokens
        for operand in instruction.operands[3 : len(instruction.operands) - hinted]:
            part = self._part(operand, "u32")
            subject.parts["ignored" if part.declared == "pred" else "size"] = part

    def _out(self, instruction: Instruction, opcode: _Opcode, subject: Subject) -> None:
        if not _has_destination(instruction):
            subject.missing["out"] = "it writes no register"
            return
        part = self._part(_first(instruction.operands[0]), opcode.written)
        if part.text == isa.SINK:
            subject.missing["out"] = "it drops its result"
        else:
            subject.parts["out"] = part

    def _sources(
        self, instruction: Instruction, needed: frozenset[str], opcode: _Opcode, subject: Subject
    ) -> None:
        operands = instruction.operands[_has_destination(instruction) :]
        values = [each for each in operands if not isinstance(each, Address | Group)]
        for number, name in enumerate(SOURCES):
            if name not in needed:
                continue
            if number >= len(values):
                subject.missing[name] = f"it has {len(values)} values to read"
                continue
            part = self._part(_first(values[number]), opcode.read)
            if part.kind == "symbol" and instruction.opcode not in _NAMES_AS_VALUES:
                subject.missing[name] = f"{part.text} is no value"
            else:
                subject.parts[name] = part

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


def _has_destination(instruction: Instruction) -> bool:
    """Whether the first operand is written, if only to be dropped."""
    sink = instruction.operands[:1] == (Register(isa.SINK),)
    return sink or bool(isa.written(instruction))


def _first(operand: Operand) -> Operand:
    match operand:
        case Vector(items) | Group(items) if items:
            return _first(items[0])
        case Pair(first, _):
            return first
    return operand


def _overwritten(instruction: Instruction, parts: dict[str, Part]) -> Iterator[str]:
    """Which of the parts, and "guard", the instruction writes itself."""
    targets = isa.written(instruction)
    if instruction.guard and instruction.guard.register in targets:
        yield "guard"
    for name, part in parts.items():
        if name != "out" and part.text in targets:
            yield name
