"""The names of one function's registers, labels and variables within a Program."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gpuwatch.ptx.model import (
    Address,
    Group,
    Guard,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)


@dataclass(slots=True)
class Names:
    """`suffix` sets a function's names apart; it is "" for the kernel."""

    suffix: str
    known: dict[str, str] = field(default_factory=dict)
    """What the function declares, to the names in the program."""
    scalars: dict[str, str] = field(default_factory=dict)
    """`.param` variables that are registers there."""
    pointers: dict[str, str] = field(default_factory=dict)
    """Arrays of the caller, to the registers that hold their addresses."""

    def declare(self, name: str) -> str:
        self.known[name] = name + self.suffix
        return self.known[name]

    def mapped(self, instruction: Instruction) -> Instruction:
        """The instruction with the program's names."""
        if not self.suffix and not self.scalars:
            return instruction
        guard = instruction.guard
        if guard is not None:
            guard = Guard(self._renamed(guard.register), guard.negated)
        operands = tuple([self._operand(operand) for operand in instruction.operands])
        return replace(instruction, guard=guard, operands=operands)

    def _renamed(self, name: str) -> str:
        if name in self.known:
            return self.known[name]
        base, dot, component = name.partition(".")
        return f"{self.known[base]}.{component}" if dot and base in self.known else name

    def _register(self, register: Register) -> Register:
        return Register(self._renamed(register.name))

    def _operand(self, operand: Operand) -> Operand:
        match operand:
            case Register():
                return self._register(operand)
            case Symbol(name, offset):
                held = self.scalars.get(name) or self.pointers.get(name)
                return Register(held) if held else Symbol(self._renamed(name), offset)
            case Address(Register() as base, offset):
                return Address(self._register(base), offset)
            case Address(Symbol(name, more), offset):
                if name in self.pointers:
                    return Address(Register(self.pointers[name]), more + offset)
                return Address(Symbol(self._renamed(name), more), offset)
            case Vector(items, predicate):
                found = self._register(predicate) if predicate else None
                return Vector(tuple(map(self._operand, items)), found)
            case Group(items):
                return Group(tuple(map(self._operand, items)))
            case Pair(first, second):
                return Pair(self._register(first), self._register(second))
            case Negated(register):
                return Negated(self._register(register))
        return operand
