"""A PTX module as the reference interpreter sees it: functions with names of their own in every
scope, variables with their sizes and first contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from reference_contents import first_bytes
from scalar_opcodes import WIDTHS

from gpuwatch.ptx import parse
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
    Parameter,
    Register,
    RegisterDeclaration,
    Scope,
    Statement,
    Symbol,
    Variable,
    Vector,
)


@dataclass
class Code:
    """A function: its instructions, its labels and lists of targets as indices of instructions,
    the widths of its registers, its variables. `number` is its place in the module."""

    name: str
    number: int
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    targets: dict[str, list[str]] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)


@dataclass
class Program:
    """`functions` are those with a body; `variables` those of the module."""

    functions: dict[str, Code]
    entries: list[str]
    variables: list[Variable]

    def first_contents(self, symbols: Mapping[str, int]) -> dict[str, bytes]:
        """The bytes of each global and constant variable before a launch; `symbols` are the
        addresses of variables and functions."""
        return {
            variable.name: first_bytes(
                variable.initial, WIDTHS[variable.type.rpartition(".")[2]] // 8, symbols
            ).ljust(size_of(variable), b"\0")
            for variable in self.variables
            if variable.space in ("global", "const")
        }


def read_program(text: str) -> Program:
    module = parse(text)
    with_body = [function for function in module.functions if function.has_body]
    functions = {f.name: _Reader(f, number).code for number, f in enumerate(with_body)}
    return Program(functions, [f.name for f in module.entries()], module.variables)


def size_of(item: Variable | Parameter) -> int:
    """Bytes of a variable or parameter."""
    vector, _, element = item.type.rpartition(".")
    return WIDTHS[element] // 8 * int(vector[1:] or 1) * max(1, item.count)


def laid_out(items: list[Variable] | tuple[Parameter, ...], start: int = 0) -> dict[str, int]:
    """An offset for each, in order, behind `start`; the key "" is the end."""
    places = {}
    for item in items:
        start = aligned(start, max(item.align, size_of(item) // max(1, item.count)))
        places[item.name] = start
        start += size_of(item)
    return {**places, "": start}


def aligned(offset: int, unit: int) -> int:
    return -(-offset // unit) * unit


@dataclass
class _Scope:
    """`names` are those that it declares, each with the name that nothing else has."""

    suffix: str
    names: dict[str, str] = field(default_factory=dict)


class _Reader:
    """Reads a function's statements, scope by scope."""

    def __init__(self, function: Function, number: int) -> None:
        self.code = Code(function.name, number, function.parameters, function.results)
        body = function.body or []
        self._scopes: list[_Scope] = []
        self._labels = _labels_by_scope(body)
        self._opened = 0
        self._label = ""
        self._open()
        for statement in body:
            self._add(statement)

    def _open(self) -> None:
        self._scopes.append(_Scope(f"@{self._opened}" if self._opened else ""))
        for label in self._labels[self._opened]:
            self._declare(label)
        self._opened += 1

    def _declare(self, name: str) -> str:
        scope = self._scopes[-1]
        return scope.names.setdefault(name, name + scope.suffix)

    def _own(self, name: str) -> str:
        """The name of its own of what `name` means here; parts like `%tid.x` stay."""
        head, dot, part = name.partition(".")
        known = (scope.names[head] for scope in reversed(self._scopes) if head in scope.names)
        return next(known, head) + dot + part

    def _add(self, statement: Statement) -> None:
        code = self.code
        match statement:
            case Instruction(guard=guard, operands=operands):
                guarded = guard and Guard(self._own(guard.register), guard.negated)
                mine = tuple(map(self._operand, operands))
                code.instructions.append(replace(statement, guard=guarded, operands=mine))
            case Label(name=name):
                self._label = self._own(name)
                code.labels[self._label] = len(code.instructions)
            case RegisterDeclaration(type=kind, names=names):
                for name, count in names:
                    for k in range(count) if count else [""]:
                        code.widths[self._declare(f"{name}{k}")] = WIDTHS[kind]
            case Variable(name=name):
                code.variables.append(replace(statement, name=self._declare(name)))
            case Scope(opens=True):
                self._open()
            case Scope():
                self._scopes.pop()
            case Directive(name="branchtargets", words=words):
                code.targets[self._label] = [self._own(word) for word in words]

    def _operand(self, operand: Operand) -> Operand:
        match operand:
            case Register(name):
                return Register(self._own(name))
            case Symbol(name, offset):
                return Symbol(self._own(name), offset)
            case Address(base):
                return replace(operand, base=self._operand(base))  # type: ignore[arg-type]
            case Vector(items, predicate):
                found = Register(self._own(predicate.name)) if predicate else None
                return Vector(tuple(map(self._operand, items)), found)
            case Group(items):
                return Group(tuple(map(self._operand, items)))
            case Pair(first, second):
                return Pair(Register(self._own(first.name)), Register(self._own(second.name)))
            case Negated(register):
                return Negated(Register(self._own(register.name)))
        return operand


def _labels_by_scope(body: list[Statement]) -> list[list[str]]:
    """The labels of each scope, in the order in which scopes open: a branch may come before its
    label."""
    found: list[list[str]] = [[]]
    inside = [0]
    for statement in _of_interest(body):
        if isinstance(statement, Label):
            found[inside[-1]].append(statement.name)
        elif statement.opens:
            inside.append(len(found))
            found.append([])
        else:
            inside.pop()
    return found


def _of_interest(body: list[Statement]) -> Iterator[Label | Scope]:
    return (one for one in body if isinstance(one, Label | Scope))
