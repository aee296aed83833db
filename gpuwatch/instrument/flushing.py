"""From registers to maps: sums of all lanes that are here, added to a slot by one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.instrument import indices, saves, slots
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.gather import Gathering, Term, is_small
from gpuwatch.instrument.layout import COUNT_BYTES, FIELD_BYTES, field_offsets
from gpuwatch.instrument.scene import Scene, Step
from gpuwatch.instrument.values import Value, convert
from gpuwatch.probe.model import Expression, Map

_HALF = 0xFFFF


@dataclass(frozen=True, slots=True)
class _Sum:
    """What a lane adds to a field (u64), if the predicate holds; `leads` where that is in the
    lowest lane only."""

    value: str
    holds: str
    leads: bool = True


def depart(code: Code, gathering: Gathering, head: int) -> None:
    """Where the lanes of a head leave its blocks: adds what they have counted to the maps."""
    for slot in gathering.slots.values():
        fields = slot.terms.get(head)
        if fields:
            scene = Scene(gathering.shared, slot.probe, slot.site, slot.site)
            sums = [_of_group(code, list(terms.values())) for terms in fields]
            _add(code, scene, slot.map, slot.number, sums)


def finish(code: Code, gathering: Gathering) -> None:
    """Where a lane ends: adds its sums to the maps."""
    for slot in gathering.slots.values():
        fields = slot.terms.get(None)
        if fields:
            scene = Scene(gathering.shared, slot.probe, slot.site, slot.site)
            shared = slot.map.level != "thread" and gathering.shared.has_redux
            sums = [_of_lanes(code, list(terms.values()), shared) for terms in fields]
            _add(code, scene, slot.map, slot.number, sums)


def _of_group(code: Code, terms: Sequence[Term]) -> _Sum | None:
    """Of registers that hold the same in all lanes that are here."""
    total = ""
    for term in sorted(terms, key=lambda term: -term.share.each):
        share = _share(code, term)
        if not term.register:
            one = code.once(f"wide {share}", "u64", "cvt.u64.u32", share)
        else:
            one = code.compute("u64", "mul.wide.u32", term.register, share)
        total = _plus(code, total, one, term)
    added = [term for term in terms if term.share.each >= 0]
    if len(added) == len(terms) and any(not term.register for term in terms):  # it is no zero
        return _Sum(total, indices.leads(code))
    return _led(code, total) if total else None


def _plus(code: Code, total: str, one: str, term: Term) -> str:
    """u64: the total with one more term, which is taken off if it is a negative share."""
    if not total:
        return one if term.share.each >= 0 else code.compute("u64", "neg.s64", one)
    return code.compute("u64", "add.u64" if term.share.each >= 0 else "sub.u64", total, one)


def _share(code: Code, term: Term) -> str:
    """u32: what one execution adds for all lanes that are here."""
    together, each = term.share.together, abs(term.share.each)
    if not each:
        return str(together)
    lanes = indices.active_count(code)
    if (together, each) == (0, 1):
        return lanes
    return code.once(f"share {together} {each}", "u32", "mad.lo.u32", lanes, str(each),
                     str(together))  # fmt: skip


def _of_lanes(code: Code, terms: Sequence[Term], shared: bool) -> _Sum | None:
    """Of registers of each lane; added by one for all if there is an instruction for it."""
    if not terms:
        return None
    together = shared and all(term.type != "u64" for term in terms)
    total = ""
    for term in sorted(terms, key=lambda term: -term.share.each):
        one = _total(code, term, together)
        if abs(term.share.each) != 1:
            one = code.compute("u64", "mul.lo.u64", one, str(abs(term.share.each)))
        total = _plus(code, total, one, term)
    if together:
        return _led(code, total)
    return _Sum(total, code.compute("pred", "setp.ne.u64", total, "0"), leads=False)


def _total(code: Code, term: Term, together: bool) -> str:
    """u64: a register's value, or with `together` that of all lanes that are here."""
    if not term.register:
        one = indices.active_count(code) if together else "1"
        return code.once(f"wide {one}", "u64", "cvt.u64.u32", one)
    if together:
        return _sum_of_lanes(code, term.register)
    if term.type == "u64":
        return term.register
    return code.once(f"wide {term.register}", "u64", "cvt.u64.u32", term.register)


def _led(code: Code, total: str) -> _Sum:
    holds = code.compute("pred", "setp.ne.and.u64", total, "0", indices.leads(code))
    return _Sum(total, holds)


def _sum_of_lanes(code: Code, name: str) -> str:
    """u64: a u32 of all lanes that are here, by halves, whose sums do not overflow."""
    key = f"sum of {name}"
    if key not in code.memo:
        mask = indices.active(code)
        low = code.compute("u32", "and.b32", name, str(_HALF))
        high = code.compute("u32", "shr.u32", name, "16")
        low = code.compute("u32", "redux.sync.add.u32", low, mask)
        high = code.compute("u32", "redux.sync.add.u32", high, mask)
        wide = code.compute("u64", "cvt.u64.u32", low)
        code.memo[key] = code.compute("u64", "mad.wide.u32", high, str(_HALF + 1), wide)
    return code.memo[key]


def count(code: Code, step: Step) -> None:
    """Adds an execution to a register, if the step is to count any."""
    if step.adds == "one":
        code.emit(f"add.{step.type} \t{step.register}, {step.register}, 1")
    elif step.adds == "leads":
        leads = indices.leads(code)
        code.emit(f"@{leads} add.{step.type} \t{step.register}, {step.register}, 1")


def accumulate(code: Code, step: Step, value: Value) -> None:
    """Adds a value to a lane's register."""
    name, type_ = step.register, step.type
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
    terms = [_Sum(_of_small(code, value), indices.leads(code)) for value in values]
    _add(code, scene, map_, number, terms)


def _of_small(code: Code, value: Value) -> str:
    """u64: sum of a small value over the lanes that are here."""
    if value.constant is not None:
        return code.compute("u64", "mul.wide.u32", indices.active_count(code), value.text)
    mask = indices.active(code)
    if value.text == indices.leads(code):
        return code.once("wide 1", "u64", "cvt.u64.u32", "1")
    if value.type == "pred":
        ballot = code.compute("u32", "vote.sync.ballot.b32", value.text, mask)
        total = code.compute("u32", "popc.b32", ballot)
    else:
        total = code.compute("u32", "redux.sync.add.u32", convert(code, value, "u32"), mask)
    return code.compute("u64", "cvt.u64.u32", total)


def _in_leader(code: Code, address: str) -> str:
    """u64: the address, in the lane that leads. To add something to a place that is the same in
    all lanes, ptxas first finds out which of them do; so to others it is made another place."""
    lower = indices.lower_lanes(code)
    key = f"leader's {address} over {lower}"
    if key not in code.memo:
        others = code.compute("u64", "cvt.u64.u32", lower)
        code.memo[key] = code.compute("u64", "add.u64", address, others)
    return code.memo[key]


def _add(code: Code, scene: Scene, map_: Map, number: int, sums: Sequence[_Sum | None]) -> None:
    """Adds to the slot's record, and notes that something was saved in it."""
    slot = slots.slot(code, scene, map_)
    records = saves.records_address(code, scene.shared, map_, number)
    if all(term is None or term.leads for term in sums):
        records = _in_leader(code, records)
    base = saves.indexed(code, records, slot, map_.size)
    for field_, offset, term in zip(map_.fields, field_offsets(map_), sums, strict=True):
        if term is None:
            continue
        value, bits = term.value, 8 * FIELD_BYTES[field_.type]
        if bits == 32:
            value = code.compute("u32", "cvt.u32.u64", value)
        code.emit(f"@{term.holds} red.global.add.u{bits} \t[{base}+{offset}], {value}")
    if map_.copies > 1:  # a record that is not all zeros says it
        return
    counts = saves.buffer_address(code, scene.shared, 2 * number + 1)
    count = saves.indexed(code, counts, slot, COUNT_BYTES)
    for holds in dict.fromkeys(term.holds for term in sums if term is not None):
        code.emit(f"@{holds} st.global.u32 \t[{count}], 1")
