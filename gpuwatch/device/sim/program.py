"""A kernel's body as the code generator wants it: flat, scopes resolved, cut into blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from gpuwatch.errors import Location, UserError
from gpuwatch.ptx.model import (
    Address,
    Function,
    Group,
    Instruction,
    Label,
    Module,
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
)
from gpuwatch.ptx.types import type_bytes

NO_DESTINATION = frozenset(
    (
        *("st", "red", "membar", "fence", "prefetch", "prefetchu", "discard", "applypriority"),
        *("bra", "bar", "barrier", "ret", "exit", "trap", "brkpt", "nanosleep", "pmevent"),
    )
)
BLOCK_ENDS = frozenset(["bra", "ret", "exit", "bar", "barrier", "trap"])
CLOCKS = frozenset(["%clock", "%clock64", "%clock_hi", "%globaltimer"])
"""Registers that show how far the cycles have come; a block is cut behind each read of one."""
_NUMBERED = re.compile(r"(.*?)(\d+)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions `first` up to `end`; `successors` are block indices, `count` for the exit.

    A `joined` block only goes on where the one before it, its only predecessor, was cut.
    """

    first: int
    end: int
    successors: tuple[int, ...]
    joined: bool = False


@dataclass(slots=True)
class Program:
    """Registers have unique names. Offsets and sizes are bytes; `parameters` maps names to
    offsets in the parameter block."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    """Label to the index of the instruction behind it."""
    shared: dict[str, int] = field(default_factory=dict)
    shared_bytes: int = 0
    local: dict[str, int] = field(default_factory=dict)
    local_bytes: int = 0
    parameters: dict[str, int] = field(default_factory=dict)
    parameter_bytes: int = 0
    blocks: list[Block] = field(default_factory=list)
    live_in: list[frozenset[str]] = field(default_factory=list)
    live_out: list[frozenset[str]] = field(default_factory=list)


@dataclass(slots=True)
class _Names:
    """One `{ }` scope: plain registers by name, numbered ones by prefix."""

    plain: dict[str, tuple[str, str]] = field(default_factory=dict)
    numbered: dict[str, tuple[str, str, int]] = field(default_factory=dict)


def build_program(module: Module, function: Function) -> Program:
    """The body of `function` with the module's shared variables laid out first."""
    program = Program(function.name)
    _lay_out_parameters(program, function)
    flattener = _Flattener(program, module)
    for variable in module.variables:
        flattener.place(variable)
    for statement in function.body or ():
        flattener.add(statement)
    if not program.instructions:
        program.instructions.append(Instruction(0, 0, None, ("ret",), ()))
    program.shared_bytes = _align(program.shared_bytes, 16)
    for name in flattener.dynamic:
        program.shared[name] = program.shared_bytes
    program.blocks = _cut(program)
    _find_live(program)
    return program


def location(module: Module, instruction: Instruction) -> Location:
    """The place of `instruction` in the PTX text."""
    return Location.in_text(module.source, module.text, instruction.start)


def registers_of(operand: Operand) -> list[str]:
    """Names of the registers in an operand, special ones included."""
    if isinstance(operand, Register):
        return [operand.name]
    if isinstance(operand, Negated):
        return [operand.register.name]
    if isinstance(operand, Address):
        return registers_of(operand.base)
    if isinstance(operand, Pair):
        return [operand.first.name, operand.second.name]
    if isinstance(operand, Vector | Group):
        return [name for item in operand.items for name in registers_of(item)]
    return []


def written(instruction: Instruction) -> list[str]:
    if instruction.opcode in NO_DESTINATION or not instruction.operands:
        return []
    return registers_of(instruction.operands[0])


def read(instruction: Instruction) -> list[str]:
    skip = 0 if instruction.opcode in NO_DESTINATION else 1
    names = [name for operand in instruction.operands[skip:] for name in registers_of(operand)]
    return [*names, instruction.guard.register] if instruction.guard else names


def _align(offset: int, unit: int) -> int:
    return -(-offset // unit) * unit


def _lay_out_parameters(program: Program, function: Function) -> None:
    offset = 0
    for parameter in function.parameters:
        size = type_bytes(parameter.type)
        offset = _align(offset, max(parameter.align, size))
        program.parameters[parameter.name] = offset
        offset += size * max(1, parameter.count)
    program.parameter_bytes = offset


class _Flattener:
    """Appends statements to a Program, giving registers of inner scopes names of their own."""

    def __init__(self, program: Program, module: Module) -> None:
        self._program = program
        self._module = module
        self._scopes = [_Names()]
        self._scope_count = 0
        self.dynamic: list[str] = []

    def add(self, statement: Statement) -> None:
        if isinstance(statement, Instruction):
            self._program.instructions.append(self._renamed(statement))
        elif isinstance(statement, Label):
            self._program.labels[statement.name] = len(self._program.instructions)
        elif isinstance(statement, RegisterDeclaration):
            self._declare(statement)
        elif isinstance(statement, Variable):
            self.place(statement)
        elif isinstance(statement, Scope):
            self._scope(statement)

    def place(self, variable: Variable) -> None:
        """Gives a shared or local variable its offset; other spaces belong to the arena."""
        program = self._program
        size = type_bytes(variable.type) * max(1, variable.count)
        align = max(variable.align, type_bytes(variable.type))
        if variable.space == "shared" and variable.linkage == "extern":
            self.dynamic.append(variable.name)
        elif variable.space == "shared":
            program.shared[variable.name] = _align(program.shared_bytes, align)
            program.shared_bytes = program.shared[variable.name] + size
        elif variable.space == "local":
            program.local[variable.name] = _align(program.local_bytes, align)
            program.local_bytes = program.local[variable.name] + size

    def _scope(self, scope: Scope) -> None:
        if scope.opens:
            self._scope_count += 1
            self._scopes.append(_Names())
        else:
            self._scopes.pop()

    def _declare(self, declaration: RegisterDeclaration) -> None:
        suffix = f"@{self._scope_count}" if len(self._scopes) > 1 else ""
        scope = self._scopes[-1]
        for name, count in declaration.names:
            if count:
                scope.numbered[name] = (suffix, declaration.type, count)
            else:
                scope.plain[name] = (name + suffix, declaration.type)

    def _resolve(self, name: str) -> str:
        match = _NUMBERED.match(name)
        for scope in reversed(self._scopes):
            if name in scope.plain:
                unique, kind = scope.plain[name]
            elif match and match[1] in scope.numbered:
                suffix, kind, count = scope.numbered[match[1]]
                if int(match[2]) >= count:
                    continue
                unique = name + suffix
            else:
                continue
            self._program.registers[unique] = kind
            return unique
        return name

    def _renamed(self, instruction: Instruction) -> Instruction:
        guard = instruction.guard
        if guard is not None:
            guard = replace(guard, register=self._resolve(guard.register))
        operands = tuple(self._operand(operand) for operand in instruction.operands)
        return Instruction(
            instruction.start,
            instruction.end,
            guard,
            instruction.tokens,
            operands,
            instruction.line,
            instruction.file,
        )

    def _register(self, register: Register) -> Register:
        return Register(self._resolve(register.name))

    def _operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Register):
            return self._register(operand)
        if isinstance(operand, Symbol):
            name = self._resolve(operand.name)
            return Register(name) if name in self._program.registers else operand
        if isinstance(operand, Negated):
            return Negated(self._register(operand.register))
        if isinstance(operand, Pair):
            return Pair(self._register(operand.first), self._register(operand.second))
        if isinstance(operand, Address) and isinstance(operand.base, Register):
            return Address(self._register(operand.base), operand.offset)
        if isinstance(operand, Vector | Group):
            return type(operand)(tuple(self._operand(item) for item in operand.items))
        return operand


def _target(program: Program, instruction: Instruction) -> int:
    operand = instruction.operands[0]
    assert isinstance(operand, Symbol)
    if operand.name not in program.labels:
        raise UserError(f"no label '{operand.name}' in {program.name}")
    return program.labels[operand.name]


def _reads_clock(instruction: Instruction) -> bool:
    return instruction.opcode == "mov" and not CLOCKS.isdisjoint(read(instruction))


def _cut(program: Program) -> list[Block]:
    code = program.instructions
    leaders = {0, *program.labels.values()}
    leaders.update(k + 1 for k, i in enumerate(code) if i.opcode in BLOCK_ENDS)
    joined = {k + 1 for k, i in enumerate(code) if _reads_clock(i)} - leaders
    leaders |= joined
    starts = sorted(k for k in leaders if k < len(code))
    index = {start: k for k, start in enumerate(starts)} | {len(code): len(starts)}
    blocks = []
    for first, end in zip(starts, [*starts[1:], len(code)], strict=True):
        last = code[end - 1]
        following = [index[end]]
        if last.opcode == "bra":
            taken = index[_target(program, last)]
            following = [taken, index[end]] if last.guard else [taken]
        elif last.opcode in ("ret", "exit", "trap"):
            following = [len(starts), index[end]] if last.guard else [len(starts)]
        blocks.append(Block(first, end, tuple(following), first in joined))
    return blocks


def _use_and_definition(program: Program, block: Block) -> tuple[set[str], set[str]]:
    used: set[str] = set()
    defined: set[str] = set()
    for instruction in program.instructions[block.first : block.end]:
        reads = read(instruction)
        if instruction.guard:
            reads += written(instruction)
        used.update(r for r in reads if r in program.registers and r not in defined)
        defined.update(r for r in written(instruction) if r in program.registers)
    return used, defined


def _find_live(program: Program) -> None:
    """Backward data flow to the fixed point."""
    sets = [_use_and_definition(program, block) for block in program.blocks]
    live_in: list[frozenset[str]] = [frozenset()] * (len(sets) + 1)
    live_out: list[frozenset[str]] = [frozenset()] * len(sets)
    changed = True
    while changed:
        changed = False
        for k in range(len(sets) - 1, -1, -1):
            used, defined = sets[k]
            out = frozenset().union(*(live_in[s] for s in program.blocks[k].successors))
            before = used | (out - defined)
            changed |= before != live_in[k]
            live_in[k], live_out[k] = frozenset(before), out
    program.live_in, program.live_out = live_in[:-1], live_out
