"""Which probe registers may be read before anything was written to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from gpuwatch.probe.model import (
    Action,
    Assign,
    Binary,
    Expression,
    Helper,
    If,
    Probe,
    Ptx,
    Read,
    Save,
    Unary,
)
from gpuwatch.ptx.model import Address, Group, Instruction, Negated, Operand, Pair, Register, Vector

_CLOCKS = frozenset({"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo"})


def exposed(probes: Iterable[Probe]) -> set[str]:
    """Names of the registers that a thread running `probes` in order may read unwritten.

    A write under a guard, or in one branch of an `if` only, may not happen.
    """
    walk = _Walk()
    for probe in probes:
        walk.actions(probe.body)
    return walk.found


def set_in_some_lanes(before: Iterable[Probe], after: Iterable[Probe]) -> list[str]:
    """Names of the registers that `before` writes under a guard only and `after` reads."""
    walk = _Walk()
    for probe in before:
        walk.actions(probe.body)
    perhaps = walk.guarded - walk.written
    walk.found = set()
    for probe in after:
        walk.actions(probe.body)
    return sorted(perhaps & walk.found)


def written(actions: Iterable[Action]) -> set[str]:
    """Names of the registers that `actions` surely write."""
    walk = _Walk()
    walk.actions(actions)
    return walk.written


def leading_clock(body: tuple[Action, ...]) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    """`body` in two: its first step if that reads a clock, whatever happens; and the rest."""
    match body:
        case (Assign(_, Helper("clock" | "time")), *_):
            return body[:1], body[1:]
        case (Ptx(_, (first, *_)) as run, *_) if first.guard is None and _CLOCKS.intersection(
            registers(first.operands[1:])
        ):
            head = replace(
                run, text=run.text[: first.end], instructions=(first,), places=run.places[:1]
            )
            later = tuple(_moved(one, first.end) for one in run.instructions[1:])
            tail = Ptx(run.text[first.end :], later, (), run.at, run.places[1:])
            return (head,), (tail, *body[1:])
    return (), body


def _moved(instruction: Instruction, offset: int) -> Instruction:
    return replace(instruction, start=instruction.start - offset, end=instruction.end - offset)


@dataclass(slots=True)
class _Walk:
    """`written` surely has a value here, `guarded` in some lanes perhaps; `found` may have been
    read without one."""

    written: set[str] = field(default_factory=set)
    guarded: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)

    def actions(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Assign(target, value):
                    self._read(_reads(value))
                    self.written.add(target)
                case If():
                    self._branch(action)
                case Save(_, values):
                    for value in values:
                        self._read(_reads(value))
                case Ptx(_, instructions):
                    for instruction in instructions:
                        self._instruction(instruction)

    def _branch(self, action: If) -> None:
        self._read(_reads(action.test))
        before = set(self.written)
        self.actions(action.then)
        then, self.written = self.written, set(before)
        self.actions(action.otherwise)
        self.guarded |= (then ^ self.written) - before
        self.written &= then

    def _instruction(self, instruction: Instruction) -> None:
        """Probe texts only compute: an instruction writes its first operand and reads the rest."""
        self._read(registers(instruction.operands[1:]))
        targets = registers(instruction.operands[:1])
        if instruction.guard is None:
            self.written.update(targets)
        else:
            self._read([instruction.guard.register])
            self.guarded.update(targets)

    def _read(self, names: Iterable[str]) -> None:
        self.found.update(name for name in names if name not in self.written)


def _reads(expression: Expression) -> Iterator[str]:
    match expression:
        case Read(register):
            yield register
        case Unary(_, value):
            yield from _reads(value)
        case Binary(_, left, right):
            yield from _reads(left)
            yield from _reads(right)
        case Helper(_, arguments):
            for argument in arguments:
                yield from _reads(argument)


def registers(operands: Iterable[Operand]) -> Iterator[str]:
    """Names of all registers in operands."""
    for operand in operands:
        match operand:
            case Register(name) | Negated(Register(name)) | Address(Register(name)):
                yield name
            case Vector(items) | Group(items):
                yield from registers(items)
            case Pair(first, second):
                yield from (first.name, second.name)
