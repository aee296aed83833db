"""Which probe registers may be read before anything was written to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpuwatch.probe.language import KERNEL, SEPARATOR, SPECIAL_REGISTER
from gpuwatch.probe.model import (
    Action,
    Assign,
    Binary,
    Expression,
    Helper,
    If,
    Probe,
    Program,
    Ptx,
    Read,
    Save,
    Unary,
)
from gpuwatch.probe.walk import words
from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Instruction

_CLOCKS = frozenset({"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo"})


def exposed(program: Program) -> set[str]:
    """Names of the registers that a thread may read unwritten.

    A write under a guard, or in one branch of an `if` only, may not happen; nor may anything at
    an instruction, but for what a probe in front of it does for the one behind it. A probe that
    runs for a sample writes for probes of the same sample only.
    """
    entry = _Walk()
    for probe in program.probes:
        if probe.position == KERNEL and probe.before:
            entry.probe(probe)
    ends = [one for one in program.probes if one.position == KERNEL and not one.before]
    found = set(entry.found)
    for group in (*groups(program), ends):
        walk = entry.copy()
        walk.group(group)
        found |= walk.found
    return found


def groups(program: Program) -> Iterator[list[Probe]]:
    """The probes of each position but the kernel's, those in front of the place first."""
    positions = dict.fromkeys(probe.position for probe in program.probes)
    for position in positions:
        if position != KERNEL:
            group = [probe for probe in program.probes if probe.position == position]
            yield sorted(group, key=lambda probe: not probe.before)


@dataclass(frozen=True, slots=True)
class Flow:
    """Registers that come into a group of probes unwritten, and those that it may write."""

    inward: frozenset[str]
    outward: frozenset[str]


def flow(group: Sequence[Probe]) -> Flow:
    """What a group of probes that run in order at one place shares with others."""
    walk = _Walk()
    walk.group(group)
    inward = {name for name in walk.found if not SPECIAL_REGISTER.fullmatch(name)}
    outward = walk.written.union(walk.guarded, *walk.sampled.values())
    return Flow(frozenset(inward), frozenset(outward))


def kept_by_lane(program: Program) -> list[str]:
    """Registers that warp-level probes write at instructions and read behind the kernel. Each
    lane has its own, and only the lanes that run an instruction change theirs there."""
    warps = [probe for probe in program.probes if probe.level == "warp"]
    inside = [probe for probe in warps if probe.position != KERNEL]
    ends = [probe for probe in warps if probe.position == KERNEL and not probe.before]
    return sorted(flow(inside).outward & flow(ends).inward)


def helpers_of(actions: Iterable[Action]) -> set[str]:
    """Names of all helpers that actions use, in PTX texts too."""
    walk = _Walk()
    walk.actions(actions)
    return walk.helpers


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
            isa.registers_of(first.operands[1:])
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
    read without one. `helpers` are those met."""

    written: set[str] = field(default_factory=set)
    guarded: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)
    sampled: dict[tuple[int, str], set[str]] = field(default_factory=dict)
    """What is surely written for the warps or blocks of a sample."""

    def copy(self) -> _Walk:
        sampled = {key: set(names) for key, names in self.sampled.items()}
        return _Walk(set(self.written), set(self.guarded), set(self.found), set(), sampled)

    def group(self, probes: Iterable[Probe]) -> None:
        """Probes at one place, those in front of it first."""
        first = self.copy()
        for probe in probes:
            if not probe.before and _parts_lanes(probe.position):
                self.guarded |= self.written - first.written
                self.written, self.sampled = set(first.written), first.copy().sampled
            self.probe(probe)

    def probe(self, probe: Probe) -> None:
        if probe.sample == 1:
            self.actions(probe.body)
            return
        key = probe.sample, probe.sample_unit
        everywhere = set(self.written)
        self.written |= self.sampled.get(key, set())
        self.actions(probe.body)
        self.sampled[key] = self.written - everywhere
        self.written = everywhere

    def actions(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Assign(target, value):
                    self._expression(value)
                    self.written.add(target)
                case If():
                    self._branch(action)
                case Save(_, values):
                    for value in values:
                        self._expression(value)
                case Ptx(_, instructions):
                    for instruction in instructions:
                        self._instruction(instruction)

    def _branch(self, action: If) -> None:
        self._expression(action.test)
        before = set(self.written)
        self.actions(action.then)
        then, self.written = self.written, set(before)
        self.actions(action.otherwise)
        self.guarded |= (then ^ self.written) - before
        self.written &= then

    def _instruction(self, instruction: Instruction) -> None:
        """Probe texts only compute: an instruction writes its first operand and reads the rest."""
        self._read(isa.registers_of(instruction.operands[1:]))
        self.helpers.update(words(instruction.operands))
        targets = isa.registers_of(instruction.operands[:1])
        if instruction.guard is None:
            self.written.update(targets)
        else:
            self._read([instruction.guard.register])
            self.guarded.update(targets)

    def _expression(self, expression: Expression) -> None:
        match expression:
            case Read(register):
                self._read([register])
            case Unary(_, value):
                self._expression(value)
            case Binary(_, left, right):
                self._expression(left)
                self._expression(right)
            case Helper(name, arguments):
                self.helpers.add(name)
                for argument in arguments:
                    self._expression(argument)

    def _read(self, names: Iterable[str]) -> None:
        self.found.update(name for name in names if name not in self.written)


def _parts_lanes(position: str) -> bool:
    """Whether the lanes behind an instruction of the position may be others than in front."""
    return any(one.split(".")[0] in isa.ENDS for one in SEPARATOR.split(position))
