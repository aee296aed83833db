"""Which blocks of a kernel the same lanes run together, and which ones equally often.

A block is a *head* where all lanes of a warp that ever come to it do so once and together: the
first block, and one whose only way in is a branch out of blocks that a head's lanes run. A block
*has* a head if all ways to it come from blocks that have it, by branches that all lanes take
alike. Those are the lanes that then run it: none is missing, and none can join, for whoever runs
the block has come from the head. It is nowhere taken for granted that lanes meet again: a block
at which the two ways of a branch join that parts lanes has no head.

How often a thread runs each block follows from how often it takes a few of the branches, as what
goes into a block comes out of it. Two blocks of which that gives the same are run equally often.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from gpuwatch.ptx import flow, isa
from gpuwatch.ptx.model import Function, Instruction

ENTRY = 0
ONCE = 1
"""The executions of what every thread runs once."""
_DIGIT = 32
"""Bits for the factor of each branch in a sum of them."""
_NONE = -1
_UNKNOWN = -2


class Way(Enum):
    """Where lanes that leave a head's blocks for good are still together."""

    BEFORE = "in front of the instruction"
    BEHIND = "behind it"
    TAKEN = "in front of it, where its guard holds"


class Departure(NamedTuple):
    statement: int
    """The instruction's index in the body."""
    way: Way


class _Edge(NamedTuple):
    source: int
    target: int
    alike: bool
    """Whether all lanes that run the source together come here together."""
    sole: bool
    """Whether those that do come here do so together."""
    meets: bool
    """Whether lanes wait for others on the way."""


@dataclass(slots=True)
class Convergence:
    """What holds at a kernel's statements, given by their index. Blocks go by number, heads by
    their first instruction."""

    block_at: Mapping[int, int]
    heads: Sequence[int]
    runs: Sequence[int]
    departures: Mapping[int, list[Departure]] = field(default_factory=dict)
    """Of each head the places at which its lanes leave its blocks, one of them once each."""
    stays: Mapping[int, int] = field(default_factory=dict)
    """Of branches that go back, how often a thread goes on behind them, as in `runs`."""

    @property
    def starts(self) -> Iterator[int]:
        """The first instruction of each block."""
        last = _NONE
        for index, block in self.block_at.items():
            if block != last:
                yield index
            last = block

    def head(self, index: int) -> int | None:
        """The head of the block that an instruction is in, by its own first instruction."""
        block = self.block_at.get(index, _NONE)
        return None if block == _NONE or self.heads[block] == _NONE else self.heads[block]

    def executions(self, index: int) -> int | None:
        """A number that instructions which each thread runs equally often have in common."""
        block = self.block_at.get(index, _NONE)
        return None if block == _NONE else self.runs[block]


def converge(
    function: Function, strides: Mapping[str, int | None], parted: Collection[int] = ()
) -> Convergence | None:
    """`strides` are those of `affine.lane_strides`; at the statements `parted` lanes may part that
    ran together. None where names are shadowed in scopes, and for very large kernels."""
    code = flow.Code.without_scopes(function)
    if code is None or not code.instructions:
        return None
    body = function.body or ()
    indices = [index for index, one in enumerate(body) if type(one) is Instruction]
    apart = {bisect_left(indices, index) for index in parted}
    opcodes = {one.tokens[0] for one in code.instructions if _parts(one)}
    cuts = apart | {number + 1 for number in apart if number + 1 < len(indices)}
    blocks = flow.basic_blocks(code, opcodes, cuts)
    if len(blocks) > flow.MOST_BLOCKS:
        return None
    return _Solver(code, blocks, strides, apart, indices).solve()


def _parts(one: Instruction) -> bool:
    """Whether other lanes may run together behind an instruction than in front of it."""
    return one.tokens[0] in ("call", "bar", "barrier") or not {"sync", "aligned"}.isdisjoint(
        one.tokens
    )


class _Solver:
    def __init__(
        self,
        code: flow.Code,
        blocks: Sequence[flow.Block],
        strides: Mapping[str, int | None],
        apart: Set[int],
        indices: Sequence[int],
    ) -> None:
        self._code = code
        self._blocks = blocks
        self._strides = strides
        self._apart = apart
        self._indices = indices
        self._reached = _reached(blocks)
        self._edges = [edge for number in self._reached for edge in self._leaving(number)]
        self._into: list[list[int]] = [[] for _ in range(len(blocks) + 1)]
        for place, edge in enumerate(self._edges):
            self._into[edge.target].append(place)

    def solve(self) -> Convergence:
        heads = self._heads()
        block_at = {
            self._indices[place]: number
            for number in self._reached
            for place in range(self._blocks[number].first, self._blocks[number].end)
        }
        firsts = [
            _NONE if head == _NONE else self._indices[self._blocks[head].first] for head in heads
        ]
        departures: dict[int, list[Departure]] = {first: [] for first in firsts if first != _NONE}
        for number in self._reached:
            if firsts[number] != _NONE:
                departures[firsts[number]] += self._departures(number, heads)
        taken = self._taken()
        runs = [
            sum(taken[place] for place in self._into[number]) + (number == ENTRY)
            for number in range(len(self._blocks))
        ]
        stays = {
            self._indices[self._blocks[edge.source].end - 1]: taken[place]
            for place, edge in enumerate(self._edges)
            if edge.target == edge.source + 1 and self._goes_back(edge.source)
        }
        return Convergence(block_at, firsts, runs, departures, stays)

    def _goes_back(self, number: int) -> bool:
        following = self._blocks[number].successors
        return isa.is_branch(self._last(number)) and len(following) == 2 and following[0] <= number

    def _last(self, number: int) -> Instruction:
        return self._code.instructions[self._blocks[number].end - 1]

    def _leaving(self, number: int) -> Iterator[_Edge]:
        block, last = self._blocks[number], self._last(number)
        guard = last.guard if isa.ends_block(last) or _parts(last) else None
        alike = guard is None or self._strides.get(guard.register) == 0
        broken = (
            last.tokens[0] in ("brx", "call")
            or self._is_apart(number)
            or not (alike or len(block.successors) > 1)
        )
        for target in block.successors:
            whole = not broken and not self._is_apart(target)
            yield _Edge(number, target, alike and whole, whole, _parts(last))

    def _is_apart(self, number: int) -> bool:
        return number < len(self._blocks) and self._blocks[number].first in self._apart

    def _heads(self) -> list[int]:
        """From all unknown down to what all ways to a block agree on."""
        count = len(self._blocks)
        if self._into[ENTRY] or 0 in self._apart:
            return [_NONE] * count
        heads = [_UNKNOWN] * count
        heads[ENTRY] = ENTRY
        for _ in range(2 * count + 2):
            changed = False
            for number in self._reached[1:]:
                head = self._head(number, heads)
                changed |= head != heads[number]
                heads[number] = head
            if not changed:
                return [_NONE if head == _UNKNOWN else head for head in heads]
        return [_NONE] * count

    def _head(self, number: int, heads: Sequence[int]) -> int:
        into = [self._edges[place] for place in self._into[number]]
        known = [edge for edge in into if heads[edge.source] != _UNKNOWN]
        if not known:
            return _UNKNOWN
        whole = [not edge.meets or heads[edge.source] == ENTRY for edge in known]
        found = {heads[edge.source] for edge in known}
        if len(found) == 1 and _NONE not in found and all(whole):
            if all(edge.alike for edge in known):
                return found.pop()
            if len(into) == 1 and into[0].sole:
                return number
        return _NONE

    def _departures(self, number: int, heads: Sequence[int]) -> Iterator[Departure]:
        block, last = self._blocks[number], self._last(number)
        index = self._indices[block.end - 1]
        leaves = [
            target == len(heads) or heads[target] != heads[number] for target in block.successors
        ]
        if not any(leaves):
            return
        if not isa.ends_block(last):
            yield Departure(index, Way.BEFORE if _parts(last) else Way.BEHIND)
        elif all(leaves):
            yield Departure(index, Way.BEFORE)
        else:
            yield Departure(index, Way.TAKEN if leaves[0] else Way.BEHIND)

    def _taken(self) -> dict[int, int]:
        """Of each edge how often a thread takes it: a sum of the unknown numbers of times that it
        takes some of them, written as one number with a digit for each of these."""
        exit_ = len(self._blocks)
        tree: dict[int, int] = {}
        order = [ENTRY]
        near: dict[int, list[int]] = {number: [] for number in (*self._reached, exit_)}
        for place, edge in enumerate(self._edges):
            near[edge.source].append(place)
            near[edge.target].append(place)
        for number in order:
            for place in near[number]:
                edge = self._edges[place]
                other = edge.source + edge.target - number
                if other != ENTRY and other not in tree and edge.source != edge.target:
                    tree[other] = place
                    order.append(other)
        taken: dict[int, int] = {}
        inside = set(tree.values())
        free = [place for place in range(len(self._edges)) if place not in inside]
        taken.update((place, ONCE << _DIGIT * (k + 1)) for k, place in enumerate(free))
        for number in reversed(order[1:]):
            own = tree[number]
            total = -ONCE if number == exit_ else 0
            for place in near[number]:
                edge = self._edges[place]
                if place != own and edge.source != edge.target:
                    total += taken[place] if edge.target == number else -taken[place]
            taken[own] = -total if self._edges[own].target == number else total
        return taken


def _reached(blocks: Sequence[flow.Block]) -> list[int]:
    """Blocks that control can come to, in the order of the text."""
    found, waiting = {ENTRY}, [ENTRY]
    while waiting:
        for one in blocks[waiting.pop()].successors:
            if one < len(blocks) and one not in found:
                found.add(one)
                waiting.append(one)
    return sorted(found)
