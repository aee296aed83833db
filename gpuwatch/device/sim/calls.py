"""Puts a function's body into a Program, with calls as jumps and parameters as registers.

A scalar `.param` variable becomes a register, an array local memory whose address is passed.
Arguments and results travel in registers that belong to their place and width alone
(`%in0:b32`), so a caller need not know which function an indirect call reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwatch.device.sim.names import Names
from gpuwatch.device.sim.program import (
    ASSERT,
    BARRIER,
    CALL,
    PRINT,
    REDUCED,
    RETURN,
    RETURN_POINT,
    CallSite,
    Program,
    align_up,
    entry_label,
    meets,
    place_variable,
)
from gpuwatch.ptx.model import (
    Address,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Operand,
    Parameter,
    Register,
    Symbol,
    Variable,
    Vector,
)
from gpuwatch.ptx.scopes import Flat
from gpuwatch.ptx.types import TYPE_BITS, type_bytes

_BUILTINS = {"vprintf": PRINT, "__assertfail": ASSERT}
_ZERO = Immediate("0", 0)


def is_builtin(name: str) -> bool:
    """Whether the simulator itself does what a function of this name does."""
    return name in _BUILTINS


def _is_scalar(variable: Variable | Parameter) -> bool:
    whole = not variable.dims if isinstance(variable, Variable) else variable.count == 0
    return whole and variable.type in TYPE_BITS


def _kind(variable: Variable | Parameter) -> str:
    """How an argument travels: a width like "b32", or "p" for the address of an array."""
    return f"b{TYPE_BITS[variable.type]}" if _is_scalar(variable) else "p"


def _register_type(kind: str) -> str:
    return "b64" if kind == "p" else kind


class Lowering:
    """Appends functions to a program, one after the other."""

    def __init__(
        self,
        program: Program,
        functions: Mapping[str, Function],
        indirect: Mapping[str, Function],
    ) -> None:
        """`functions` are those with a body; `indirect` may be called through a register."""
        self._program = program
        self._functions = functions
        self._indirect = indirect

    def add(self, function: Function, flat: Flat, number: int, *, recursive: bool) -> None:
        """Appends a function. `number` sets its names apart; the kernel's stay."""
        self._function = function
        self._flat = flat
        self._name = "" if function.kind == "entry" else function.name
        self._names = Names(f"@f{number}" if self._name else "")
        self._origin = Instruction(function.start, function.body_start, None, ("ret",), ())
        program = self._program
        if self._name:
            program.functions.append(self._name)
            program.suffixes[self._name] = self._names.suffix
        program.labels[entry_label(self._name)] = len(program.instructions)
        names = self._names
        for label in flat.labels:
            names.declare(label)
        for label, targets in flat.targets.items():
            program.targets[names.declare(label)] = tuple(names.known.get(t, t) for t in targets)
        for name, kind in flat.registers.items():
            program.registers[names.declare(name)] = kind
        self._place(flat.variables, recursive=recursive)
        if self._name:
            self._take_arguments()
        self._body()
        if self._name:
            self._give_results()

    def _place(self, variables: Sequence[Variable], *, recursive: bool) -> None:
        program = self._program
        size = 0
        for variable in variables:
            unique = self._names.declare(variable.name)
            if variable.space == "param" and _is_scalar(variable):
                self._names.scalars[variable.name] = unique
                program.registers[unique] = _kind(variable)
            elif recursive and variable.space in ("local", "param"):
                program.framed[unique] = align_up(size, max(variable.align, 1))
                size = program.framed[unique] + type_bytes(variable.type) * max(1, variable.count)
            else:
                place_variable(program, replace(variable, name=unique))
        if recursive:
            program.frames[self._name] = align_up(size, 16)

    def _take_arguments(self) -> None:
        formals = [(p, f"%in{k}:") for k, p in enumerate(self._function.parameters)]
        formals += [(r, f"%out{k}:") for k, r in enumerate(self._function.results)
                    if not _is_scalar(r)]  # fmt: skip
        for formal, mailbox in formals:
            self._formal(formal)
            self._move(_kind(formal), self._formal_register(formal), mailbox)
        for result in self._function.results:
            if _is_scalar(result):
                self._formal(result)
        self._move("b32", self._return_register, RETURN_POINT)

    def _formal(self, formal: Parameter) -> None:
        names = self._names
        table = names.scalars if _is_scalar(formal) else names.pointers
        table[formal.name] = names.declare(formal.name)
        self._program.registers[table[formal.name]] = _register_type(_kind(formal))

    def _formal_register(self, formal: Parameter) -> Register:
        return Register(formal.name + self._names.suffix)

    @property
    def _return_register(self) -> Register:
        return Register(RETURN_POINT + self._names.suffix)

    def _move(self, kind: str, target: Register, mailbox: str) -> None:
        """Takes a value out of a mailbox."""
        wide = _register_type(kind)
        name = mailbox if mailbox == RETURN_POINT else mailbox + kind
        self._program.registers[target.name] = self._program.registers[name] = wide
        self._emit(("mov", wide), target, Register(name))

    def _send(self, kind: str, mailbox: str, value: Operand) -> None:
        wide = _register_type(kind)
        self._program.registers[mailbox + kind] = wide
        self._emit(("mov", wide), Register(mailbox + kind), value)

    def _give_results(self) -> None:
        program = self._program
        program.labels[self._epilogue] = len(program.instructions)
        for k, result in enumerate(self._function.results):
            if _is_scalar(result):
                register = Register(self._names.scalars[result.name])
                self._send(_kind(result), f"%out{k}:", register)
        self._emit((RETURN,), Symbol(self._name), self._return_register)

    @property
    def _epilogue(self) -> str:
        return f"$leave:{self._name}"

    def _body(self) -> None:
        program, flat = self._program, self._flat
        labels: dict[int, list[str]] = {}
        for label, index in flat.labels.items():
            labels.setdefault(index, []).append(self._names.known[label])
        for index, instruction in enumerate(flat.instructions):
            for label in labels.pop(index, ()):
                program.labels[label] = len(program.instructions)
            self._add(instruction)
        for rest in labels.values():
            program.labels.update(dict.fromkeys(rest, len(program.instructions)))

    def _add(self, instruction: Instruction) -> None:
        self._origin = instruction
        opcode = instruction.opcode
        barrier = opcode in ("bar", "barrier") and "cluster" not in instruction.tokens
        special = opcode in ("call", "brx") or barrier or meets(instruction)
        if special and instruction.guard is not None:
            self._around(instruction)
        elif opcode == "call":
            self._call(self._names.mapped(instruction))
        elif barrier and "warp" not in instruction.tokens:
            self._barrier(self._names.mapped(instruction))
        elif opcode == "ret" and self._name:
            guard = self._names.mapped(instruction).guard
            self._emit(("bra",), Symbol(self._epilogue), guard=guard)
        else:
            self._program.instructions.append(self._memory(self._names.mapped(instruction)))

    def _around(self, instruction: Instruction) -> None:
        """A guarded instruction that lanes must reach or not: a branch around it."""
        guard = self._names.mapped(instruction).guard
        assert guard is not None
        skip = f"$skip:{len(self._program.instructions)}"
        self._emit(("bra",), Symbol(skip), guard=Guard(guard.register, not guard.negated))
        self._add(replace(instruction, guard=None))
        self._program.labels[skip] = len(self._program.instructions)

    def _barrier(self, instruction: Instruction) -> None:
        """bar.sync, bar.arrive and bar.red in one form: number, count (0 for all), predicate."""
        tokens, operands = instruction.tokens, list(instruction.operands)
        kind = next((t for t in ("sync", "arrive", "red") if t in tokens), tokens[-1])
        result = operands.pop(0) if kind == "red" else None
        given = [operands.pop()] if kind == "red" else []
        number = operands.pop(0) if operands else _ZERO
        count = operands.pop(0) if operands else _ZERO
        self._emit((BARRIER, kind), number, count, *given)
        if result is not None:
            how = next(t for t in tokens if t in ("popc", "and", "or"))
            self._emit((REDUCED, how, tokens[-1]), result, number)

    def _call(self, instruction: Instruction) -> None:
        operands = list(instruction.operands)
        results = operands.pop(0) if isinstance(operands[0], Group) else Group(())
        target = operands.pop(0)
        given = operands.pop(0) if operands and isinstance(operands[0], Group) else Group(())
        assert isinstance(results, Group) and isinstance(given, Group)
        if isinstance(target, Symbol) and target.name in _BUILTINS:
            self._emit((_BUILTINS[target.name],), *results.items, *given.items)
            return
        callees = self._callees(target, results.items, given.items)
        if not callees:
            self._program.instructions.append(instruction)
            return
        back = f"$back:{len(self._program.calls)}"
        self._program.calls.append(CallSite(back, self._name, tuple(callees)))
        some = next(iter(callees.values()))
        for k, (formal, value) in enumerate(zip(some.parameters, given.items, strict=True)):
            self._send(_kind(formal), f"%in{k}:", value)
        for k, (result, place) in enumerate(zip(some.results, results.items, strict=True)):
            if not _is_scalar(result):
                self._send("p", f"%out{k}:", place)
        indirect = [] if isinstance(target, Symbol) else [target]
        self._emit((CALL,), Symbol(back), *indirect)
        self._program.labels[back] = len(self._program.instructions)
        for k, (result, place) in enumerate(zip(some.results, results.items, strict=True)):
            if _is_scalar(result):
                mailbox = Register(f"%out{k}:{_kind(result)}")
                self._program.registers[mailbox.name] = _kind(result)
                self._emit(("mov", _kind(result)), place, mailbox)

    def _callees(
        self, target: Operand, results: Sequence[Operand], given: Sequence[Operand]
    ) -> dict[str, Function]:
        """Functions that the call may mean: of equally many arguments of the same kinds."""
        if isinstance(target, Symbol):
            f = self._functions.get(target.name)
            alike = f and (len(f.parameters), len(f.results)) == (len(given), len(results))
            return {target.name: f} if f and alike else {}
        return {
            name: f
            for name, f in self._indirect.items()
            if self._fits(f.parameters, given) and self._fits(f.results, results)
        }

    def _fits(self, formals: Sequence[Parameter], given: Sequence[Operand]) -> bool:
        kinds = [
            f"b{TYPE_BITS[self._program.registers[g.name]]}" if isinstance(g, Register) else "p"
            for g in given
        ]
        return kinds == [_kind(formal) for formal in formals]

    def _memory(self, instruction: Instruction) -> Instruction:
        """`.param` accesses within call sequences and functions as moves and local accesses."""
        tokens = instruction.tokens
        space = next((t for t in tokens if t.split("::")[0] == "param"), None)
        if space is None or tokens[0] not in ("ld", "st"):
            return instruction
        place = instruction.operands[tokens[0] == "ld"]
        assert isinstance(place, Address)
        if isinstance(place.base, Symbol):
            return self._named_parameter(instruction, place.base, space)
        return self._as_local(instruction, space) if self._name else instruction

    def _named_parameter(self, instruction: Instruction, symbol: Symbol, space: str) -> Instruction:
        if symbol.name in self._program.parameters and not self._name:
            return instruction
        if symbol.name not in self._program.registers:
            return self._as_local(instruction, space)
        if any(isinstance(operand, Vector) for operand in instruction.operands):
            return instruction
        return _of_register(instruction, symbol.name, self._program.registers[symbol.name])

    @staticmethod
    def _as_local(instruction: Instruction, space: str) -> Instruction:
        tokens = tuple("local" if t == space else t for t in instruction.tokens)
        return replace(instruction, tokens=tokens)

    def _emit(
        self, tokens: tuple[str, ...], *operands: Operand, guard: Guard | None = None
    ) -> None:
        origin = self._origin
        self._program.instructions.append(
            Instruction(origin.start, origin.end, guard, tokens, operands, origin.line, origin.file)
        )


def _of_register(instruction: Instruction, name: str, held: str) -> Instruction:
    """A load from or a store to a parameter that is a register of type `held`: all of it, or some
    of its bytes."""
    tokens, register = instruction.tokens, Register(name)
    loads = tokens[0] == "ld"
    place, other = instruction.operands if not loads else reversed(instruction.operands)
    assert isinstance(place, Address)
    bits, held_bits = TYPE_BITS[tokens[-1]], TYPE_BITS[held]
    operands: tuple[Operand, ...] = (other, register) if loads else (register, other)
    if bits > held_bits:
        return instruction
    if bits == held_bits:
        return replace(instruction, tokens=("mov", tokens[-1]), operands=operands)
    first, count = (Immediate(str(n), n) for n in (8 * place.offset, bits))
    wide = max(held_bits, 32)
    if loads:
        kind = "s" if tokens[-1].startswith("s") else "u"
        new, operands = ("bfe", f"{kind}{wide}"), (other, register, first, count)
    else:
        new, operands = ("bfi", f"b{wide}"), (register, other, register, first, count)
    return replace(instruction, tokens=new, operands=operands)
