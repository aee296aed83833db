"""Module variables at given addresses, and which of them a kernel needs.

What counts as used: whatever the kernel names, and what is named by a function, an alias or an
initial value that counts. So a function counts if it may be called within the module or its
address taken, and functions in the tables of virtual calls do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from gpuwatch.errors import UserError
from gpuwatch.ptx import isa
from gpuwatch.ptx.constants import ConstantReader
from gpuwatch.ptx.lexer import Cursor
from gpuwatch.ptx.model import (
    Directive,
    Function,
    Instruction,
    Module,
    Scope,
    Symbol,
    Variable,
)
from gpuwatch.ptx.types import OPAQUE_TYPES

_NAME = re.compile(r"(?<![\w$%])[%$A-Za-z_][\w$]*")
_COMMENT = re.compile(r"//[^\n]*\n|/\*[\s\S]*?\*/", re.ASCII)
_REGISTERS = "%gpv"
_ADDRESS_MASK = (1 << 64) - 1


def place_variables(module: Module, entry: str, addresses: Mapping[str, int]) -> str:
    """The module's text, in which kernel `entry` and the functions that it reaches use absolute
    addresses in place of variables.

    `addresses` are generic ones, which are those of the global window, by name; names that are no
    `.global` variables of the module mean nothing. The address comes in a new register, on the
    line of the instruction that uses it, so lines keep their numbers; all else stays as it is,
    and the variables stay declared. Raises UserError when there is no such kernel, when addresses
    have no 64 bits, and for what is not PTX.
    """
    if module.address_size != 64:
        raise UserError(f"{module.source} has addresses of {module.address_size} bits, not of 64")
    placed = {
        variable.name: addresses[variable.name]
        for variable in module.variables
        if variable.name in addresses and _has_address(variable)
    }
    prefix = _free_prefix(module.text)
    edits: list[_Edit] = []
    for function in _Use(module, entry).functions:
        edits += _Placing(module, placed, prefix).edits(function)
    return _edited(module.text, edits)


def global_variables(module: Module, entry: str) -> tuple[str, ...]:
    """Names of the module's `.global` variables that kernel `entry` uses, in the module's order;
    textures, surfaces and samplers are none. Raises UserError as `place_variables` does."""
    return _named(_Use(module, entry).variables, _has_address)


def constant_variables(module: Module, entry: str) -> tuple[str, ...]:
    """The same for `.const` variables."""
    return _named(_Use(module, entry).variables, lambda one: one.space == "const")


def unplaceable(module: Module, entry: str) -> tuple[str, ...]:
    """Names of what kernel `entry` uses and no address can stand for: the module's textures,
    surfaces and samplers, and `.global` variables that a body declares for itself."""
    use = _Use(module, entry)
    own = [
        one.name
        for function in use.functions
        for one in function.body or ()
        if isinstance(one, Variable) and one.space == "global"
    ]
    handles = _named(use.variables, lambda one: one.type in OPAQUE_TYPES)
    return tuple(dict.fromkeys((*handles, *own)))


def _has_address(variable: Variable) -> bool:
    return variable.space == "global" and variable.type not in OPAQUE_TYPES


def _named(variables: Collection[Variable], fits: Callable[[Variable], bool]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.name for one in variables if fits(one)))


class _Use:
    """The functions and module variables that a kernel uses, in the order of the module."""

    def __init__(self, module: Module, entry: str) -> None:
        kernel = next((one for one in module.entries() if one.name == entry), None)
        if kernel is None:
            raise UserError(f"{module.source} has no kernel {entry}")
        self._named: dict[str, list[Function | Variable | Directive]] = {}
        for one in _nameable(module):
            name = one.words[0] if isinstance(one, Directive) else one.name
            self._named.setdefault(name, []).append(one)
        seen = self._reached(kernel)
        self.functions = [one for one in module.functions if one is kernel or one.name in seen]
        self.variables = [one for one in module.variables if one.name in seen]

    def _reached(self, kernel: Function) -> set[str]:
        seen: set[str] = set()
        waiting: list[Function | Variable | Directive] = [kernel]
        while waiting:
            for name in _names_in(waiting.pop()):
                if name not in seen and name in self._named:
                    seen.add(name)
                    waiting += self._named[name]
        return seen


def _nameable(module: Module) -> Iterator[Function | Variable | Directive]:
    """What an instruction or an initial value may name."""
    for one in module.statements:
        match one:
            case Variable() | Function() | Directive(name="alias", words=(_, _)):
                yield one


def _names_in(one: Function | Variable | Directive) -> Iterator[str]:
    match one:
        case Variable():
            yield from _NAME.findall(one.initial)
        case Directive():
            yield one.words[1]
        case Function():
            for statement in one.body or ():
                match statement:
                    case Directive(name="calltargets"):
                        yield from statement.words
                    case Variable():
                        yield from _NAME.findall(statement.initial)
            for _, names in _outer_names(one):
                yield from names


def _outer_names(function: Function) -> Iterator[tuple[Instruction, set[str]]]:
    """Each instruction that names something which the function does not declare, and the names.

    As for ptxas a declaration holds from its place on, for a register too: then the operand is
    none of a name. Labels hide nothing, branches name nothing else.
    """
    scopes = [{one.name for one in (*function.parameters, *function.results)}]
    for statement in function.body or ():
        match statement:
            case Scope(opens=True):
                scopes.append(set())
            case Scope():
                scopes.pop()
            case Variable(name=name):
                scopes[-1].add(name)
            case Instruction() if not isa.is_branch(statement):
                leaves = isa.leaves(statement.operands)
                names = {leaf.name for leaf in leaves if isinstance(leaf, Symbol)}
                names = names.difference(*scopes) if names else names
                if names:
                    yield statement, names


@dataclass(frozen=True, slots=True)
class _Edit:
    """`text` in place of what stands at `start`..`end` of the module's text."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class _Placing:
    """Registers with addresses for one function."""

    module: Module
    addresses: Mapping[str, int]
    prefix: str
    count: int = 0
    found: list[_Edit] = field(default_factory=list)

    def edits(self, function: Function) -> list[_Edit]:
        """What to change, in the order of the text."""
        for instruction, names in _outer_names(function):
            placed = names & self.addresses.keys()
            if placed:
                self._rewrite(instruction, placed)
        if self.count:
            start = function.body_start
            declared = f" .reg .b64 {self.prefix}<{self.count}>;"
            self.found.insert(0, _Edit(start, start, declared))
        return self.found

    def _rewrite(self, instruction: Instruction, placed: set[str]) -> None:
        held: dict[int, str] = {}
        """Registers by their address."""
        replaced = []
        for start, end, address in self._places(instruction, placed):
            register = held.get(address)
            if register is None:
                register = held[address] = f"{self.prefix}{self.count}"
                self.count += 1
            comments = "".join(_COMMENT.findall(self.module.text, start, end))
            replaced.append(_Edit(start, end, register + comments))
        moves = "".join(f"mov.u64 {register}, {at:#x}; " for at, register in held.items())
        self.found += [_Edit(instruction.start, instruction.start, moves), *replaced]

    def _places(self, instruction: Instruction, placed: set[str]) -> Iterator[tuple[int, int, int]]:
        """Start, end and address of each operand `name+offset` of a name in `placed`."""
        cursor = Cursor(self.module.text, self.module.source, instruction.start)
        if cursor.take("@"):
            cursor.take("!")
            cursor.next()
        cursor.next()  # the opcode, which may read like a name
        reader = ConstantReader(cursor)
        while cursor.position < instruction.end:
            token = cursor.next()
            if token.kind == "word" and token.text in placed:
                address = self.addresses[token.text] + reader.offset()
                yield token.start, cursor.position, address & _ADDRESS_MASK


def _edited(text: str, edits: list[_Edit]) -> str:
    parts: list[str] = []
    position = 0
    for edit in edits:
        parts += (text[position : edit.start], edit.text)
        position = edit.end
    return "".join((*parts, text[position:]))


def _free_prefix(text: str) -> str:
    """The beginning of register names that occur nowhere in `text`."""
    prefix, number = _REGISTERS, 1
    while prefix in text:
        number += 1
        prefix = f"{_REGISTERS}{number}_"
    return prefix
