"""Scopes resolved: every register, variable and label of a body under a name of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gpuwatch.ptx import isa
from gpuwatch.ptx.flow import Code
from gpuwatch.ptx.model import (
    Address,
    Directive,
    Function,
    Group,
    Guard,
    Instruction,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    RegisterDeclaration,
    Scope,
    Statement,
    Symbol,
    Variable,
    Vector,
    numbered,
)


@dataclass(slots=True)
class Flat(Code):
    """Code without scopes. What an inner scope declares is called `name@n` after the scope's
    number, so names are unique; those of the function's own level stay as they are."""

    registers: dict[str, str] = field(default_factory=dict)
    """Types of the declared registers that the code names."""
    variables: list[Variable] = field(default_factory=list)
    """Variables that the body declares, in order, `.param` ones of call sequences included."""


def flatten(function: Function) -> Flat:
    """Resolves the scopes of a function's body.

    Operands equal those of the body but for the names. A name that nothing in the function
    declares (special registers, module variables, functions) stays.
    """
    return _Flattener(function.body or []).flat


@dataclass(slots=True)
class _Names:
    """What one scope declares."""

    suffix: str
    known: dict[str, str] = field(default_factory=dict)
    """Name to unique name."""
    types: dict[str, str] = field(default_factory=dict)
    """Types of the plain registers."""
    families: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Type and count of each family of numbered registers."""

    def find(self, name: str) -> str | None:
        """The unique name of what `name` is in this scope."""
        unique = self.known.get(name)
        if unique is None and self.families:
            family, index = numbered(name)
            kind, count = self.families.get(family, ("", 0))
            if index < count:
                unique = self.known[name] = name + self.suffix
                self.types[name] = kind
        return unique


class _Flattener:
    def __init__(self, body: list[Statement]) -> None:
        self._instructions: list[Instruction] = []
        self._labels: dict[str, int] = {}
        self._targets: dict[str, tuple[str, ...]] = {}
        self.flat = Flat(self._instructions, self._labels, self._targets)
        self._labels_of = _labels_by_scope(body)
        self._scopes: list[_Names] = []
        self._count = 0
        self._label = ""
        self._open()
        for statement in body:
            self._add(statement)

    def _open(self) -> None:
        suffix = f"@{self._count}" if self._count else ""
        names = _Names(suffix)
        for label in self._labels_of[self._count]:
            names.known[label] = label + suffix
        self._scopes.append(names)
        self._count += 1

    def _add(self, statement: Statement) -> None:
        match statement:
            case Instruction():
                self._instructions.append(self._instruction(statement))
            case Label(name=name):
                self._label = self._unique(name)
                self._labels[self._label] = len(self._instructions)
            case RegisterDeclaration():
                self._declare(statement)
            case Variable():
                self._variable(statement)
            case Scope(opens=True):
                self._open()
            case Scope():
                self._scopes.pop()
            case Directive(name="branchtargets"):
                self._targets[self._label] = tuple(map(self._unique, statement.words))

    def _declare(self, declaration: RegisterDeclaration) -> None:
        scope = self._scopes[-1]
        for name, count in declaration.names:
            if count:
                scope.families[name] = (declaration.type, count)
            else:
                scope.known[name] = name + scope.suffix
                scope.types[name] = declaration.type

    def _variable(self, variable: Variable) -> None:
        scope = self._scopes[-1]
        unique = scope.known[variable.name] = variable.name + scope.suffix
        scope.types.pop(variable.name, None)
        self.flat.variables.append(replace(variable, name=unique) if scope.suffix else variable)

    def _unique(self, name: str) -> str:
        """The unique name of what `name` means here."""
        for scope in reversed(self._scopes):
            unique = scope.find(name)
            if unique is not None:
                kind = scope.types.get(name)
                if kind is not None:
                    self.flat.registers[unique] = kind
                return unique
        return name

    def _instruction(self, instruction: Instruction) -> Instruction:
        if len(self._scopes) == 1:
            for name in isa.registers_of(instruction.operands):
                self._unique(name)
            if instruction.guard is not None:
                self._unique(instruction.guard.register)
            return instruction
        guard = instruction.guard
        if guard is not None:
            guard = Guard(self._unique(guard.register), guard.negated)
        return replace(instruction, guard=guard, operands=self._operands(instruction.operands))

    def _operands(self, operands: Iterable[Operand]) -> tuple[Operand, ...]:
        return tuple([self._operand(operand) for operand in operands])

    def _operand(self, operand: Operand) -> Operand:
        match operand:
            case Register():
                return self._register(operand)
            case Symbol(name, offset):
                return Symbol(self._unique(name), offset)
            case Address(Register() as base):
                return replace(operand, base=self._register(base))
            case Address(Symbol(name, offset)):
                return replace(operand, base=Symbol(self._unique(name), offset))
            case Vector(items, predicate):
                found = self._register(predicate) if predicate else None
                return Vector(self._operands(items), found)
            case Group(items):
                return Group(self._operands(items))
            case Pair(first, second):
                return Pair(self._register(first), self._register(second))
            case Negated(register):
                return Negated(self._register(register))
        return operand

    def _register(self, register: Register) -> Register:
        name, dot, component = register.name.partition(".")
        if not dot or self._unique(name) == name:
            return Register(self._unique(register.name))
        return Register(f"{self._unique(name)}.{component}")


def _labels_by_scope(body: list[Statement]) -> list[list[str]]:
    """The labels of each scope in the order in which the scopes open; 0 is the function itself.

    Unlike other names, a label may be used before its place.
    """
    found: list[list[str]] = [[]]
    inside = [0]
    for statement in body:
        if isinstance(statement, Label):
            found[inside[-1]].append(statement.name)
        elif isinstance(statement, Scope):
            if statement.opens:
                inside.append(len(found))
                found.append([])
            else:
                inside.pop()
    return found
