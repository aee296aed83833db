"""Which places of a function a probe's position means.

Opcodes match by tokens: `ld.global` is every instruction whose first token is `ld` and that has
the token `global` behind it, so `ld.volatile.global.v4.f32` too; `shared` is also
`shared::cta`. Bookkeeping of asynchronous copies (`cp.async.commit_group`, `cp.async.wait_all`)
counts only where the position names it.

`basic_block` is the first instruction of each basic block, `branch` each conditional branch, for
all lanes that come to it.

A line is all code that the compiler gives that line of the main source file (the file of the
kernel's first `.loc`), code inlined into it included. A run of it ends where other lines' code
begins, at a label and behind a branch. A probe before the line runs as control enters a run, one
behind it as control leaves it: behind its last instruction, or in front of that if it is a branch
or an exit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpuwatch.instrument.source_lines import SourceLines
from gpuwatch.probe.language import BLOCKS, BRANCHES, SEPARATOR
from gpuwatch.ptx import isa, loops
from gpuwatch.ptx.access import PLAIN, SPACES
from gpuwatch.ptx.model import Directive, Function, Instruction, Label, Loc, Statement

_BOOKKEEPING = frozenset({"commit_group", "wait_group", "wait_all", "mbarrier"})
_LABEL = "label:"
_LINE = "line:"


@dataclass(frozen=True, slots=True)
class Place:
    """In front of statement `index` of the body (its end, if there is none), or behind it."""

    index: int
    behind: bool = False
    about: bool = False
    """Whether the probe is about the instruction: its guard holds for the probe as well, and
    helpers speak of it."""


@dataclass(slots=True)
class Found:
    """The places of one position in one function."""

    places: list[Place] = field(default_factory=list)
    unreached: int = 0
    """Instructions behind which no lane ever comes."""
    generic: frozenset[str] = frozenset()
    """Opcodes that the position does not mean, but that may access memory of its state space."""


def label_of(position: str) -> str:
    """The label that a position names; "" for positions of other kinds."""
    if position.startswith(_LABEL):
        return position[len(_LABEL) :]
    return position if position[0] in "$%" else ""


def line_of(position: str) -> int:
    """The source line that a position names, 0 for positions of other kinds."""
    return int(position[len(_LINE) :]) if position.startswith(_LINE) else 0


def find(position: str, before: bool, function: Function, file: int) -> Found:
    """The places of a position other than "kernel"; `file` is the index of the main source."""
    body = function.body or []
    if label := label_of(position):
        return Found([Place(index) for index in _behind_labels(body, label)])
    if position == BLOCKS:
        return Found([Place(index) for index in loops.block_starts(body)])
    if position == BRANCHES:
        return Found([Place(index, about=True) for index in _conditional(body)])
    if line := line_of(position):
        return Found([_edge(body, run, before) for run in _runs(body, line, file)])
    hits = Matches(position)
    indices = [
        index for index, one in enumerate(body) if type(one) is Instruction and hits[one.tokens]
    ]
    generic = frozenset(".".join(tokens) for tokens in hits if hits.perhaps(tokens))
    if before:
        return Found([Place(index, about=True) for index in indices], 0, generic)
    passed = [index for index in indices if isa.falls_through(_instruction(body, index))]
    places = [Place(index, behind=True, about=True) for index in passed]
    return Found(places, len(indices) - len(passed), generic)


class Matches(dict[tuple[str, ...], bool]):
    """Whether opcodes, given by their tokens, match a position; each is looked at once."""

    def __init__(self, position: str) -> None:
        super().__init__()
        self._wanted = [one.split(".") for one in SEPARATOR.split(position)]

    def __missing__(self, tokens: tuple[str, ...]) -> bool:
        matched = self[tokens] = any(_matches(wanted, tokens) for wanted in self._wanted)
        return matched

    def perhaps(self, tokens: tuple[str, ...]) -> bool:
        """Whether the opcode, which does not match, would if it named its state space: without
        one an address may lie in any."""
        return (
            not self[tokens]
            and _is_generic(tokens)
            and any(
                _matches(wanted, (tokens[0], space, *tokens[1:]))
                for wanted in self._wanted
                for space in SPACES.intersection(wanted)
            )
        )


def _is_generic(tokens: tuple[str, ...]) -> bool:
    return tokens[0] in PLAIN and SPACES.isdisjoint([token.partition("::")[0] for token in tokens])


def _matches(wanted: Sequence[str], tokens: tuple[str, ...]) -> bool:
    if wanted[0] != tokens[0]:
        return False
    if tokens[0] == "cp" and not _BOOKKEEPING.intersection(tokens) <= set(wanted):
        return False
    left = iter(tokens[1:])
    return all(any(_same(one, token) for token in left) for one in wanted[1:])


def _same(wanted: str, token: str) -> bool:
    return wanted == token or (token.startswith(wanted) and token[len(wanted) :][:2] == "::")


def _instruction(body: Sequence[Statement], index: int) -> Instruction:
    one = body[index]
    assert isinstance(one, Instruction)
    return one


def _conditional(body: Sequence[Statement]) -> Iterator[int]:
    for index, one in enumerate(body):
        if type(one) is Instruction and one.guard is not None and one.tokens[0] == "bra":
            yield index


def _behind_labels(body: Sequence[Statement], name: str) -> Iterator[int]:
    """What follows each label of the name; `.loc` and `.pragma` stay with the label."""
    for index, one in enumerate(body):
        if isinstance(one, Label) and one.name == name:
            index += 1
            while index < len(body) and isinstance(body[index], Loc | Directive):
                index += 1
            yield index


def _runs(body: Sequence[Statement], line: int, file: int) -> Iterator[tuple[int, int]]:
    """First and last index of each run of a line."""
    lines = SourceLines(file)
    inside, first, last = False, -1, -1
    for index, one in enumerate(body):
        ends = False
        if isinstance(one, Loc):
            lines.see(one)
            inside = line in lines.lines
        elif isinstance(one, Instruction) and inside:
            first = index if first < 0 else first
            last = index
            ends = isa.ends_block(one)
        elif isinstance(one, Instruction | Label):
            ends = True
        if ends and first >= 0:
            yield first, last
            first = -1
    if first >= 0:
        yield first, last


def _edge(body: Sequence[Statement], run: tuple[int, int], before: bool) -> Place:
    first, last = run
    if before:
        return Place(first)
    return Place(last, behind=not isa.ends_block(_instruction(body, last)))
