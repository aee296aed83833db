"""Control and data flow of a function: basic blocks, and which registers are live where."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Directive, Function, Instruction, Label, Scope

MOST_BLOCKS = 1000
"""Functions of more are left alone where the time grows with the square."""


@dataclass(slots=True)
class Code:
    """Instructions in order, and what their labels mean."""

    instructions: Sequence[Instruction]
    labels: Mapping[str, int] = field(default_factory=dict)
    """Label to the index of the instruction behind it, `len(instructions)` at the end."""
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Label of each `.branchtargets` list to the labels in it."""

    @staticmethod
    def of(function: Function) -> Code:
        """The body as it stands. Names of inner scopes are taken to be the function's own: of a
        body that shadows names, take `scopes.flatten`."""
        instructions: list[Instruction] = []
        labels: dict[str, int] = {}
        targets: dict[str, tuple[str, ...]] = {}
        last = ""
        for statement in function.body or ():
            if isinstance(statement, Instruction):
                instructions.append(statement)
            elif isinstance(statement, Label):
                last = statement.name
                labels[last] = len(instructions)
            elif isinstance(statement, Directive) and statement.name == "branchtargets":
                targets[last] = statement.words
        return Code(instructions, labels, targets)

    @staticmethod
    def without_scopes(function: Function) -> Code | None:
        """The body as it stands; None where names may be shadowed in scopes."""
        shadows = any(isinstance(one, Scope) for one in function.body or ())
        return None if shadows else Code.of(function)


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions `first` up to `end` (exclusive). `successors` are indices of blocks; the
    number of blocks stands for the exit."""

    first: int
    end: int
    successors: tuple[int, ...]


def basic_blocks(
    code: Code, cut_after: Collection[str] = (), cut_at: Collection[int] = ()
) -> list[Block]:
    """Cuts `code` at labels, behind branches, exits and the opcodes of `cut_after`, and in front
    of the instructions of `cut_at`.

    Raises KeyError with the label that a branch names when there is none.
    """
    instructions = code.instructions
    count = len(instructions)
    leaders = {0, *code.labels.values(), *cut_at}
    leaders.update(
        k + 1
        for k, each in enumerate(instructions)
        if isa.ends_block(each) or each.tokens[0] in cut_after
    )
    starts = sorted(k for k in leaders if k < count)
    block_at = {start: k for k, start in enumerate(starts)}
    block_at[count] = len(starts)
    blocks = []
    for first, end in pairwise([*starts, count]):
        following = _successors(code, instructions[end - 1], end)
        numbers = dict.fromkeys(len(starts) if at is None else block_at[at] for at in following)
        blocks.append(Block(first, end, tuple(numbers)))
    return blocks


def _successors(code: Code, last: Instruction, following: int) -> Iterator[int | None]:
    """Where control goes behind `last`, as instruction indices; None for the exit."""
    if isa.is_branch(last):
        name = isa.branch_targets(last)
        for label in code.targets.get(name, (name,)):
            yield code.labels[label]
    elif isa.is_exit(last):
        yield None
    if isa.falls_through(last):
        yield following


class Liveness:
    """Registers that are live at the borders of blocks: those whose value may yet be read.

    A write under a guard keeps the old value in the other lanes, so it ends no life.
    """

    def __init__(
        self, code: Code, blocks: Sequence[Block], only: Collection[str] | None = None
    ) -> None:
        """`only` are the registers of interest; without it all, special ones included."""
        self._code = code
        self._blocks = blocks
        self._only = only
        self._names: list[str] = []
        self._bits: dict[str, int] = {}
        self._effects = [self._effect(block.first, block.end) for block in blocks]
        self._live_in = self._solve()

    def live_in(self, block: int) -> frozenset[str]:
        """Registers live at the start of a block."""
        return self._decode(self._live_in[block])

    def _mask(self, names: tuple[str, ...]) -> int:
        mask = 0
        for name in names:
            bit = self._bits.get(name)
            if bit is None:
                bit = self._bits[name] = self._new_bit(name)
            mask |= bit
        return mask

    def _new_bit(self, name: str) -> int:
        if self._only is not None and name not in self._only:
            return 0
        self._names.append(name)
        return 1 << (len(self._names) - 1)

    def _effect(self, first: int, end: int) -> tuple[int, int]:
        """Registers read before they are written, and registers surely written."""
        used = defined = 0
        for instruction in self._code.instructions[first:end]:
            used |= self._mask(isa.read(instruction)) & ~defined
            if instruction.guard is None:
                defined |= self._mask(isa.written(instruction))
        return used, defined

    def _out(self, block: int) -> int:
        out = 0
        for successor in self._blocks[block].successors:
            if successor < len(self._blocks):
                out |= self._live_in[successor]
        return out

    def _solve(self) -> list[int]:
        """Backward data flow to the fixed point."""
        self._live_in = [used for used, _ in self._effects]
        before: list[list[int]] = [[] for _ in self._blocks]
        for number, block in enumerate(self._blocks):
            for successor in block.successors:
                if successor < len(self._blocks):
                    before[successor].append(number)
        waiting = list(range(len(self._blocks)))
        while waiting:
            number = waiting.pop()
            used, defined = self._effects[number]
            live = used | self._out(number) & ~defined
            if live != self._live_in[number]:
                self._live_in[number] = live
                waiting.extend(before[number])
        return self._live_in

    def _decode(self, mask: int) -> frozenset[str]:
        found = []
        while mask:
            low = mask & -mask
            found.append(self._names[low.bit_length() - 1])
            mask ^= low
        return frozenset(found)


def liveness(code: Code, blocks: Sequence[Block], only: Collection[str] | None = None) -> Liveness:
    """Solves liveness of `code` over `blocks`; `only` are the registers of interest."""
    return Liveness(code, blocks, only)
