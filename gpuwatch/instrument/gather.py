"""Sums kept in registers: what a probe in a loop saves to a map that sums up goes to memory once,
where the thread ends, and not at each save.

Each lane adds to registers of its own, a set for each slot that it may save to: 32 bits wide for
what is below 2^6 at each save (numbers of lanes, bytes of one access), so that 2^26 saves of one
lane to one slot fit surely, else 64. As a lane ends, the sums of all that end with it are added
up and one of them adds them to the map. Only so many registers are given away, to the saves in
the deepest loops; the others save at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpuwatch.instrument import indices, saves, slots
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.layout import COUNT_BYTES, FIELD_BYTES, field_offsets
from gpuwatch.instrument.positions import Found
from gpuwatch.instrument.scene import Scene, Shared, Sums
from gpuwatch.instrument.values import Value, convert
from gpuwatch.probe.language import KERNEL
from gpuwatch.probe.model import (
    Binary,
    Constant,
    Expression,
    Helper,
    Map,
    Probe,
    Unary,
)
from gpuwatch.probe.values import TESTS
from gpuwatch.probe.walk import saves as saves_of
from gpuwatch.ptx.loops import loop_depths
from gpuwatch.ptx.model import Instruction, Statement

MOST_WORDS = 12
"""Registers of 32 bits for sums: with more, kernels that fill an SM would lose residents."""
_SMALL = frozenset({"leads", "taken", "splits", "sectors", "bank_conflicts", "active", "bytes"})
"""Helpers whose values are below 2^6, but for the bytes of a bulk copy."""
_SMALL_CONSTANT = 32
_HALF = 0xFFFF


@dataclass(slots=True)
class Gathering:
    """What is gathered in one kernel. `chosen` are places: number of the probe, statement."""

    shared: Shared
    bulk: frozenset[int] = frozenset()
    """Probes, by number, that run at bulk copies among others."""
    chosen: frozenset[tuple[int, int]] = frozenset()
    sums: dict[tuple[object, ...], Sums] = field(default_factory=dict)
    words: int = 0

    @staticmethod
    def of(shared: Shared, body: Sequence[Statement], found: Mapping[int, Found]) -> Gathering:
        """Chooses the slots whose saves are gathered as registers allow: those that are saved to
        in the deepest loops first, then those at most places. One that is saved to at a single
        place outside of loops has no use for it."""
        bulk = frozenset(number for number, one in found.items() if _copies_in_bulk(body, one))
        gathering = Gathering(shared, bulk)
        depths = loop_depths(body)
        places: dict[tuple[object, ...], list[tuple[int, int]]] = defaultdict(list)
        deepest: dict[tuple[object, ...], int] = defaultdict(int)
        for number, one in found.items():
            for name in gathered_maps(shared, shared.program.probes[number]):
                map_ = shared.maps[name][1]
                for place in one.places:
                    if place.index < len(body):
                        key = _estimate(number, map_, body[place.index], place.index)
                        places[key].append((number, place.index))
                        deepest[key] = max(deepest[key], depths[place.index])
        chosen: set[tuple[int, int]] = set()
        left = MOST_WORDS
        for key in sorted(places, key=lambda key: (-deepest[key], -len(places[key]))):
            words = gathering._words(key)
            if words <= left and (deepest[key] or len(places[key]) > 1):
                left -= words
                chosen.update(places[key])
        gathering.chosen = frozenset(chosen)
        return gathering

    def at(self, number: int, index: int, site: str, line_slot: str) -> dict[str, Sums]:
        """The sums, by map, for a probe at a statement; fewer where registers run out."""
        if (number, index) not in self.chosen:
            return {}
        probe = self.shared.program.probes[number]
        found = {}
        for name in gathered_maps(self.shared, probe):
            sums = self._of(number, probe, name, site, line_slot)
            if sums:
                found[name] = sums
        return found

    def _of(self, number: int, probe: Probe, name: str, site: str, line_slot: str) -> Sums | None:
        place, map_ = self.shared.maps[name]
        slot = {"site": site, "line": line_slot}.get(map_.level, "")
        key = (number, name, slot)
        if key not in self.sums:
            types = types_of(probe, map_, bulk=number in self.bulk)
            words = sum(2 if one == "u64" else 1 for one in types)
            if self.words + words > MOST_WORDS:
                return None
            self.words += words
            stem = f"{self.shared.names.registers}g{len(self.sums)}"
            self.sums[key] = Sums(stem, probe, place, map_, types, slot)
        return self.sums[key]

    def _words(self, key: tuple[object, ...]) -> int:
        number, name, _ = key
        assert isinstance(number, int) and isinstance(name, str)
        probe, map_ = self.shared.program.probes[number], self.shared.maps[name][1]
        types = types_of(probe, map_, bulk=number in self.bulk)
        return sum(2 if one == "u64" else 1 for one in types)

    def declarations(self) -> list[str]:
        return [
            f"\t.reg .b{type_[1:]} \t{name};"
            for one in self.sums.values()
            for name, type_ in one.registers()
        ]

    def clear(self) -> list[str]:
        """The sums' beginning, at the kernel's entry."""
        return [
            f"\tmov.{type_} \t{name}, 0;"
            for one in self.sums.values()
            for name, type_ in one.registers()
        ]

    def flush(self, code: Code) -> None:
        """Adds the lane's sums to the maps, where the lane ends."""
        for one in self.sums.values():
            scene = Scene(self.shared, one.probe, one.slot, one.slot)
            shared_slot = one.map.level != "thread"
            terms = [
                _sum_of_lanes(code, name)
                if shared_slot and type_ == "u32" and self.shared.has_redux
                else _own(code, name, type_)
                for name, type_ in one.registers()
            ]
            _add(code, scene, one.map, one.number, terms)


@dataclass(frozen=True, slots=True)
class _Term:
    """What a lane adds to a field (u64), if the predicate holds."""

    value: str
    holds: str


def gathered_maps(shared: Shared, probe: Probe) -> Iterator[str]:
    """Maps that a probe's saves to may be put off."""
    if probe.position == KERNEL:
        return
    for name in dict.fromkeys(save.map for save in saves_of(probe.body)):
        map_ = shared.maps[name][1]
        if map_.level != "sm" and map_.type == "reduce" and map_.adds_up:
            yield name


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


def accumulate(code: Code, sums: Sums, values: Sequence[Value]) -> None:
    """Adds what is saved to the lane's sums."""
    for (name, type_), value in zip(sums.registers(), values, strict=True):
        if value.type == "pred" and value.constant is None:
            code.emit(f"@{value.text} add.{type_} \t{name}, {name}, 1")
        elif value.constant != 0:
            code.emit(f"add.{type_} \t{name}, {name}, {convert(code, value, type_)}")


def saves_together(scene: Scene, map_: Map, values: Sequence[Expression]) -> bool:
    """Whether one lane can save for all that came with it."""
    bulk = scene.subject is None or scene.subject.bytes is None
    return (
        scene.probe.level == "thread"
        and map_.level not in ("thread", "sm")
        and map_.type == "reduce"
        and map_.adds_up
        and all(is_small(value, bulk) for value in values)
        and scene.shared.has_redux
    )


def save_together(
    code: Code, scene: Scene, map_: Map, number: int, values: Sequence[Value]
) -> None:
    """Adds small values of all lanes to one slot, which one of them does."""
    terms = [_Term(_total(code, value), indices.leads(code)) for value in values]
    _add(code, scene, map_, number, terms)


def _total(code: Code, value: Value) -> str:
    """u64: sum of a small value over the lanes that are here."""
    if value.constant is not None:
        return code.compute("u64", "mul.wide.u32", indices.active_count(code), value.text)
    mask = indices.active(code)
    if value.type == "pred":
        ballot = code.compute("u32", "vote.sync.ballot.b32", value.text, mask)
        total = code.compute("u32", "popc.b32", ballot)
    else:
        total = code.compute("u32", "redux.sync.add.u32", convert(code, value, "u32"), mask)
    return code.compute("u64", "cvt.u64.u32", total)


def _copies_in_bulk(body: Sequence[Statement], found: Found) -> bool:
    """Whether a bulk copy, whose bytes are an operand, is among the places."""
    at = [body[place.index] for place in found.places if place.index < len(body)]
    return any(isinstance(one, Instruction) and "bulk" in one.tokens for one in at)


def _estimate(number: int, map_: Map, statement: Statement, index: int) -> tuple[object, ...]:
    """Key of the slot that a place saves to, as far as it can be told before lines are known."""
    line = getattr(statement, "file", 0), getattr(statement, "line", 0)
    slot = {"site": index, "line": line if line[1] else index}.get(map_.level, 0)
    return number, map_.name, slot


def _own(code: Code, name: str, type_: str) -> _Term:
    value = name if type_ == "u64" else code.compute("u64", "cvt.u64.u32", name)
    return _Term(value, code.compute("pred", "setp.ne.u64", value, "0"))


def _sum_of_lanes(code: Code, name: str) -> _Term:
    """Of a u32 of all lanes that are here, added by one: by halves, whose sums do not overflow."""
    mask = indices.active(code)
    low = code.compute("u32", "and.b32", name, str(_HALF))
    high = code.compute("u32", "shr.u32", name, "16")
    low = code.compute("u32", "redux.sync.add.u32", low, mask)
    high = code.compute("u32", "redux.sync.add.u32", high, mask)
    wide = code.compute("u64", "cvt.u64.u32", low)
    total = code.compute("u64", "mad.wide.u32", high, str(_HALF + 1), wide)
    some = code.compute("pred", "setp.ne.and.u64", total, "0", indices.leads(code))
    return _Term(total, some)


def _add(code: Code, scene: Scene, map_: Map, number: int, terms: Sequence[_Term]) -> None:
    """Adds to the slot's record, and notes that something was saved in it."""
    slot = slots.slot(code, scene, map_)
    base = saves.indexed(
        code, saves.records_address(code, scene.shared, map_, number), slot, map_.size
    )
    for field_, offset, term in zip(map_.fields, field_offsets(map_), terms, strict=True):
        value, bits = term.value, 8 * FIELD_BYTES[field_.type]
        if bits == 32:
            value = code.compute("u32", "cvt.u32.u64", value)
        code.emit(f"@{term.holds} red.global.add.u{bits} \t[{base}+{offset}], {value}")
    if map_.copies > 1:  # a record that is not all zeros says it
        return
    counts = saves.buffer_address(code, scene.shared, 2 * number + 1)
    count = saves.indexed(code, counts, slot, COUNT_BYTES)
    for holds in dict.fromkeys(term.holds for term in terms):
        code.emit(f"@{holds} st.global.u32 \t[{count}], 1")
