"""Sums kept in registers: what a probe in a loop saves to a map that sums up goes to memory once,
where the thread ends, and not at each save.

Each lane adds to registers of its own: 32 bits wide for what is below 2^6 at each save (numbers
of lanes, bytes of one access), so that 2^26 saves of one lane to one slot fit surely, else 64. As
a lane ends, the sums of all that end with it are added up and one of them adds them to the map.
Only so many registers are given away, to the saves in the deepest loops; the others save at once.

What a save adds is often known but for how often it runs. Then executions are counted instead,
once for all places that run equally often, and multiplied in the end. Where a block has a head
(`gpuwatch.ptx.convergence`) that is all, as the lanes that run it are those that leave the head's
blocks: there the counts go to memory. Elsewhere each block counts by itself whether a lane leads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpuwatch.instrument.layout import FIELD_BYTES
from gpuwatch.instrument.positions import Found
from gpuwatch.instrument.scene import Shared, Step
from gpuwatch.instrument.shares import NOTHING, Place, Share, same_in_all_lanes, share_of
from gpuwatch.instrument.subject import Subject
from gpuwatch.probe.language import BLOCKS, BRANCHES, KERNEL
from gpuwatch.probe.model import (
    Binary,
    Constant,
    Expression,
    Helper,
    Map,
    Probe,
    Save,
    Unary,
)
from gpuwatch.probe.values import TESTS
from gpuwatch.probe.walk import saves as saves_of
from gpuwatch.ptx.convergence import ONCE, Convergence, Departure
from gpuwatch.ptx.loops import loop_depths
from gpuwatch.ptx.model import Instruction, Statement

MOST_WORDS = 12
"""Registers of 32 bits for sums: with more, kernels that fill an SM would lose residents."""
MOST_DEPARTURES = 4
"""Places at which the lanes of a head may leave its blocks: what was counted goes to memory at
each, which takes code."""
_SMALL = frozenset({"leads", "taken", "splits", "sectors", "bank_conflicts", "active", "bytes"})
"""Helpers whose values are below 2^6, but for the bytes of a bulk copy."""
_SMALL_CONSTANT = 32

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """What a register (of type u32 or u64; "" for a 1) stands for in the sum of a field. Where
    lanes have a head it holds the same in all, and each adds its share; else lanes are added."""

    register: str
    type: str
    share: Share


@dataclass(slots=True)
class Slot:
    """What is added to one slot of a map: by head (None for lanes that have none), the terms of
    each field, by register. `site` stands for the slot, "" where slots are not of sites."""

    probe: Probe
    number: int
    map: Map
    site: str
    terms: dict[int | None, list[dict[str, Term]]] = field(default_factory=dict)

    def add(self, head: int | None, place: int, term: Term) -> None:
        fields = self.terms.setdefault(head, [{} for _ in self.map.fields])
        share = fields[place].get(term.register, Term("", "", NOTHING)).share
        both = Share(share.together + term.share.together, share.each + term.share.each)
        fields[place][term.register] = Term(term.register, term.type, both)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """How a field is summed up at one place: a register by its key (None for a 1), what it adds
    (see `Step`), what it stands for, and the head whose lanes hold it alike."""

    field: int
    key: Key | None
    adds: str
    type: str
    share: Share
    head: int | None = None


@dataclass(slots=True)
class _Candidate:
    """A slot that may be gathered: its places (probe, statement), in how many loops the deepest
    of them is, the words of the registers that it takes, and whether all lanes have a head."""

    places: list[tuple[int, int]] = field(default_factory=list)
    depth: int = 0
    words: dict[Key, int] = field(default_factory=dict)
    headed: bool = True


@dataclass(slots=True)
class Gathering:
    """What is gathered in one kernel. `chosen` are places: number of the probe, statement."""

    shared: Shared
    body: Sequence[Statement]
    convergence: Convergence | None = None
    strides: Mapping[str, int | None] = field(default_factory=dict)
    bulk: frozenset[int] = frozenset()
    """Probes, by number, that run at bulk copies among others."""
    chosen: frozenset[tuple[int, int]] = frozenset()
    registers: dict[Key, tuple[str, str]] = field(default_factory=dict)
    """Name and type, u32 or u64."""
    slots: dict[Key, Slot] = field(default_factory=dict)
    words: int = 0
    depths: Sequence[int] = ()
    below: str = ""
    """The register with the mask of the lanes below each, where loops ask for it: to read the
    special register takes long, and ptxas would do so in each round."""

    def head_of_loop(self, index: int) -> int | None:
        """The head of a statement that is in a loop; a head itself is in none."""
        return self.convergence.head(index) if self.convergence and self.depths[index] else None

    def choose(self, found: Mapping[int, Found]) -> None:
        """Chooses the slots whose saves are gathered as registers allow: those that are saved to
        in the deepest loops first, then those at most places. One that is saved to at a single
        place outside of loops has no use for it, unless its lanes have a head."""
        self.bulk = frozenset(n for n, one in found.items() if _copies_in_bulk(self.body, one))
        self.depths = loop_depths(self.body)
        candidates = self._candidates(found)
        chosen: set[tuple[int, int]] = set()
        words: dict[Key, int] = {}
        for one in sorted(candidates, key=lambda one: (-one.depth, -len(one.places))):
            both = words | one.words
            if sum(both.values()) <= MOST_WORDS and (
                one.depth or len(one.places) > 1 or one.headed
            ):
                words = both
                chosen.update(one.places)
                if one.depth and any(key[0] == "leads" for key in one.words):
                    self.below = f"{self.shared.names.registers}b"
        self.chosen = frozenset(chosen)

    def _candidates(self, found: Mapping[int, Found]) -> Iterable[_Candidate]:
        candidates: dict[Key, _Candidate] = defaultdict(_Candidate)
        for number, index in self._places(found):
            for map_ in gathered_maps(self.shared, self.shared.program.probes[number]):
                key = _estimate(number, map_, self.body[index], index)
                slot = candidates[key]
                slot.places.append((number, index))
                slot.depth = max(slot.depth, self.depths[index])
                for one in self._wanted(number, map_, index, None, key):
                    slot.headed &= one.head is not None
                    if one.key is not None:
                        slot.words[one.key] = _words(one.type)
        return candidates.values()

    def _places(self, found: Mapping[int, Found]) -> Iterator[tuple[int, int]]:
        for number, one in found.items():
            for place in one.places:
                if place.index < len(self.body):
                    yield number, place.index

    def at(
        self, number: int, index: int, site: str, line_slot: str, subject: Subject | None
    ) -> dict[str, tuple[Step, ...]]:
        """What to do for each field, by map, for a probe at a statement; fewer maps where
        registers run out."""
        if (number, index) not in self.chosen:
            return {}
        probe = self.shared.program.probes[number]
        found = {}
        for map_ in gathered_maps(self.shared, probe):
            slot = {"site": site, "line": line_slot}.get(map_.level, "")
            key = (number, map_.name, slot)
            wanted = self._wanted(number, map_, index, subject, key)
            if self._fits(wanted):
                entry = Slot(probe, self.shared.maps[map_.name][0], map_, slot)
                entry = self.slots.setdefault(key, entry)
                steps = [self._step(entry, one) for one in wanted]
                found[map_.name] = tuple(step for step in steps if step)
        return found

    def _fits(self, wanted: Sequence[_Wanted]) -> bool:
        new = {one.key: _words(one.type) for one in wanted if one.key is not None}
        more = sum(words for key, words in new.items() if key not in self.registers)
        if self.words + more > MOST_WORDS:
            return False
        self.words += more
        return True

    def _step(self, slot: Slot, one: _Wanted) -> Step | None:
        if one.key is None:
            if one.share != NOTHING:
                slot.add(one.head, one.field, Term("", "", one.share))
            return None
        fresh = one.key not in self.registers
        if fresh:
            name = f"{self.shared.names.registers}g{len(self.registers)}"
            self.registers[one.key] = name, one.type
        name, type_ = self.registers[one.key]
        if fresh or one.adds != "value":
            slot.add(one.head, one.field, Term(name, type_, one.share))
        if fresh or one.adds == "value":
            return Step(one.adds, name, type_, one.field)
        return None

    def _wanted(
        self, number: int, map_: Map, index: int, subject: Subject | None, slot: Key
    ) -> list[_Wanted]:
        probe = self.shared.program.probes[number]
        types = types_of(probe, map_, bulk=number in self.bulk)
        plain = self._plain(probe, map_, index)
        guessed = subject is None and number not in self.bulk
        alike = probe.position == BRANCHES and self._alike(index)
        place = Place(subject, alike, guessed)
        found: list[_Wanted] = []
        for number_, type_ in enumerate(types):
            value = plain.values[number_] if plain else None
            counted = self._counted(value, place, index, number_) if value else None
            if counted is None:
                head = self._head(index) if value and same_in_all_lanes(value, place) else None
                key = ("value", *slot, number_, head)
                counted = [_Wanted(number_, key, "value", type_, Share(0, 1), head)]
            found += counted
        return found

    def _counted(
        self, value: Expression, place: Place, index: int, number: int
    ) -> list[_Wanted] | None:
        """By counting executions, if that will do."""
        assert self.convergence
        runs = self.convergence.executions(index)
        if runs is None:
            return None
        share, stays = share_of(value, place), self.convergence.stays.get(index)
        if value == Helper("taken") and stays is not None:
            return [
                self._run(index, number, runs, "one", Share(0, 1)),
                self._run(index, number, stays, "stays", Share(0, -1)),
            ]
        if share is None:
            return None
        if share.together and self._head(index) is None:
            block = self.convergence.block_at[index]
            share = Share(0, share.together)
            return [_Wanted(number, ("leads", block), "leads", "u32", share)]
        if share == NOTHING:
            return [_Wanted(number, None, "", "", NOTHING, self._head(index))]
        return [self._run(index, number, runs, "one", share)]

    def _run(self, index: int, number: int, runs: int, adds: str, share: Share) -> _Wanted:
        """By what is run so often; what is run once by every thread, or once where lanes have a
        head, needs no register."""
        head = self._head(index)
        assert self.convergence
        if head is None:
            key = None if runs == ONCE else ("runs", runs)
            return _Wanted(number, key, adds, "u32", share)
        once = runs == self.convergence.executions(head)
        return _Wanted(number, None if once else ("runs", runs, head), adds, "u32", share, head)

    def _plain(self, probe: Probe, map_: Map, index: int) -> Save | None:
        """The only save to a map, if each lane that runs the instruction does it once."""
        statement = self.body[index]
        held = isinstance(statement, Instruction) and statement.guard is not None
        if (
            self.convergence is None
            or probe.level != "thread"
            or map_.level == "thread"
            or probe.sample != 1
            or not probe.before
            or (held and probe.position not in (BLOCKS, BRANCHES))
        ):
            return None
        everywhere = [one for one in saves_of(probe.body) if one.map == map_.name]
        plain = [one for one in probe.body if isinstance(one, Save) and one.map == map_.name]
        return plain[0] if len(plain) == len(everywhere) == 1 else None

    def _alike(self, index: int) -> bool:
        statement = self.body[index]
        guard = statement.guard if isinstance(statement, Instruction) else None
        return guard is not None and self.strides.get(guard.register) == 0

    def _head(self, index: int) -> int | None:
        assert self.convergence
        head = self.convergence.head(index)
        if head is None or not 0 < len(self.convergence.departures[head]) <= MOST_DEPARTURES:
            return None
        return head

    def departures(self) -> Iterator[tuple[int, Departure]]:
        """The places at which lanes leave a head's blocks, each with the head."""
        if self.convergence is not None:
            for head, departures in self.convergence.departures.items():
                if 0 < len(departures) <= MOST_DEPARTURES:
                    yield from ((head, one) for one in departures)

    def declarations(self) -> list[str]:
        below = [(self.below, "u32")] if self.below else []
        return [
            f"\t.reg .b{type_[1:]} \t{name};" for name, type_ in (*below, *self.registers.values())
        ]

    def clear(self) -> list[str]:
        """The sums' beginning, at the kernel's entry."""
        name = self.below
        below = (f"mov.u32 \t{name}, %laneid", f"shl.b32 \t{name}, 1, {name}",
                 f"sub.u32 \t{name}, {name}, 1")  # fmt: skip
        return [f"\t{line};" for line in below if name] + [
            f"\tmov.{type_} \t{register}, 0;" for register, type_ in self.registers.values()
        ]


def gathered_maps(shared: Shared, probe: Probe) -> Iterator[Map]:
    """Maps that a probe's saves to may be put off."""
    if probe.position == KERNEL:
        return
    for name in dict.fromkeys(save.map for save in saves_of(probe.body)):
        map_ = shared.maps[name][1]
        if map_.level != "sm" and map_.type == "reduce" and map_.adds_up:
            yield map_


def types_of(probe: Probe, map_: Map, *, bulk: bool) -> tuple[str, ...]:
    """u32 or u64 for the sum of each field; `bulk` says that the probe runs at bulk copies."""
    wide = [False] * len(map_.fields)
    for save in saves_of(probe.body):
        if save.map == map_.name:
            wide = [w or not is_small(v, bulk) for w, v in zip(wide, save.values, strict=True)]
    return tuple("u64" if each else "u32" for each in wide)


def is_small(value: Expression, bulk: bool) -> bool:
    """Whether a value is surely below 2^6 and not negative."""
    match value:
        case Constant(number):
            return isinstance(number, int) and 0 <= number <= _SMALL_CONSTANT
        case Helper(name):
            return name in _SMALL and not (bulk and name == "bytes")
        case Binary(op):
            return op in TESTS
        case Unary(op):
            return op == "not"
    return False


def _words(type_: str) -> int:
    return FIELD_BYTES[type_] // 4


def _copies_in_bulk(body: Sequence[Statement], found: Found) -> bool:
    """Whether a bulk copy, whose bytes are an operand, is among the places."""
    at = [body[place.index] for place in found.places if place.index < len(body)]
    return any(isinstance(one, Instruction) and "bulk" in one.tokens for one in at)


def _estimate(number: int, map_: Map, statement: Statement, index: int) -> Key:
    """Key of the slot that a place saves to, as far as it can be told before lines are known."""
    line = getattr(statement, "file", 0), getattr(statement, "line", 0)
    slot = {"site": index, "line": line if line[1] else index}.get(map_.level, 0)
    return number, map_.name, slot
