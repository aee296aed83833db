"""Writing one record: the count of saves in its slot, the bound, the fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpuwatch.instrument import indices, reductions, slots
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.layout import COUNT_BYTES, FIELD_BYTES, OFFSET_BYTES, field_offsets
from gpuwatch.instrument.scene import Scene, Shared
from gpuwatch.instrument.values import Value, convert
from gpuwatch.probe.model import Map


def buffer_address(code: Code, shared: Shared, index: int) -> str:
    """u64: device address of a buffer, read from the pointer variable."""
    place = f"[{shared.variable}+{8 * index}]"
    return code.once(f"buffer {index}", "u64", f"ld.{shared.pointer_space}.u64", place)


_WIDEST = 16
"""Bytes that one instruction stores."""
COPY_SIZE = "\1copy%d\1"
"""Stands for the bytes of a copy of a map, by its number, until all sites are known."""


def records_address(code: Code, shared: Shared, map_: Map, number: int) -> str:
    """u64: device address of a map's records, of this SM's copy where there are several."""
    buffer = buffer_address(code, shared, 2 * number)
    if map_.copies == 1:
        return buffer
    key = f"copy of {number}"
    if key not in code.memo:
        sm = indices.special(code, "%smid")
        copy = code.compute("u32", "and.b32", sm, str(map_.copies - 1))
        code.memo[key] = code.compute("u64", "mad.wide.u32", copy, COPY_SIZE % number, buffer)
    return code.memo[key]


def operands(code: Code, map_: Map, values: Sequence[Value]) -> list[str]:
    """The values in the types of the map's fields, so that only the stores are left to do."""
    return [
        _truth(code, value) if field.type == "pred" else convert(code, value, field.type)
        for value, field in zip(values, map_.fields, strict=True)
    ]


def _truth(code: Code, value: Value) -> str:
    """u32: 1 for whatever is not 0."""
    return convert(code, Value(convert(code, value, "pred"), "pred"), "u32")


def save(
    code: Code, scene: Scene, map_: Map, number: int, fields: Sequence[str], *, once: bool
) -> None:
    """Save to map `number` what `operands` gave. `once` says that no other save goes to this
    slot: then the count is stored, not added to."""
    shared = scene.probe.level == "thread" and map_.level != "thread"
    if map_.type == "reduce" and shared and reductions.are_constant(map_, fields):
        # All lanes save the same to one slot: the first does it for all.
        lanes = indices.active_count(code)
        with code.skipped_unless(indices.leads(code)):
            together = reductions.multiplied(code, map_, fields, lanes)
            _save_in_slot(code, scene, map_, number, together, once=once)
        return
    _save_in_slot(code, scene, map_, number, fields, once=once)


def _save_in_slot(
    code: Code, scene: Scene, map_: Map, number: int, fields: Sequence[str], *, once: bool
) -> None:
    """Find the slot; a save on an SM that has none is counted as dropped."""
    shared = scene.shared
    slot = slots.slot(code, scene, map_)
    if map_.level != "sm":
        _save(code, scene, map_, number, fields, slot, once=once)
        return
    buffer = buffer_address(code, shared, scene.shared.buffers.sm_count)
    known = code.once("SMs", "u64", "ld.global.u64", f"[{buffer}]")
    inside = code.compute("pred", "setp.lt.u64", slot, known)
    beyond, end = code.names.label(), code.names.label()
    code.emit(f"@!{inside} bra \t{beyond}")
    with code.region():
        _save(code, scene, map_, number, fields, slot, once=once)
    code.emit(f"bra \t{end}")
    code.label(beyond)
    with code.region():
        counts = buffer_address(code, shared, 2 * number + 1)
        last = code.compute("u64", "mad.lo.u64", known, str(COUNT_BYTES), counts)
        code.emit(f"red.global.add.u32 \t[{last}], 1")
    code.label(end)


def _save(
    code: Code,
    scene: Scene,
    map_: Map,
    number: int,
    fields: Sequence[str],
    slot: str,
    *,
    once: bool,
) -> None:
    shared = scene.shared
    count = ""
    if map_.name not in shared.marks:
        count = indexed(code, buffer_address(code, shared, 2 * number + 1), slot, COUNT_BYTES)
    records = records_address(code, shared, map_, number)
    if map_.dynamic:
        offsets = buffer_address(code, shared, scene.shared.buffers.offsets[number])
        _append(code, map_, fields, count, records, indexed(code, offsets, slot, OFFSET_BYTES))
        return
    base = indexed(code, records, slot, map_.slot_bytes)
    if map_.type == "array" and not once:
        index = _count(code, count)
        room = code.compute("pred", "setp.lt.u32", index, str(map_.cap))
        with code.skipped_unless(room):
            place = code.compute("u64", "mad.wide.u32", index, str(map_.size), base)
            _store(code, map_, fields, place)
        return
    if count:
        code.emit(f"st.global.u32 \t[{count}], 1")
    if map_.type == "array":
        _store(code, map_, fields, base)
    elif map_.type == "reduce":
        reductions.reduce(code, map_, fields, base)
    else:
        reductions.count(code, map_, fields[0], base)


def _append(
    code: Code, map_: Map, fields: Sequence[str], count: str, records: str, offset: str
) -> None:
    """Save behind what the slot holds, up to where the next slot's records begin."""
    index = _count(code, count)
    first = code.compute("u64", "ld.global.u64", f"[{offset}]")
    end = code.compute("u64", "ld.global.u64", f"[{offset}+{OFFSET_BYTES}]")
    wide = code.compute("u64", "cvt.u64.u32", index)
    position = code.compute("u64", "add.u64", first, wide)
    room = code.compute("pred", "setp.lt.u64", position, end)
    with code.skipped_unless(room):
        _store(code, map_, fields, indexed(code, records, position, map_.size))


def _count(code: Code, count: str) -> str:
    """u32: how many saves the slot had before this one. Counting stops at 2^31, so that no number
    of saves brings a full slot back to its beginning."""
    index = code.compute("u32", "atom.global.add.u32", f"[{count}]", "1")
    endless = code.compute("pred", "setp.lt.s32", index, "0")
    code.emit(f"@{endless} red.global.add.u32 \t[{count}], -1")
    return index


def indexed(code: Code, base: str, index: str, size: int) -> str:
    """u64: base + index * size."""
    if index == "0":
        return base
    if index in code.narrow:
        return code.compute("u64", "mad.wide.u32", code.narrow[index], str(size), base)
    return code.compute("u64", "mad.lo.u64", index, str(size), base)


def _store(code: Code, map_: Map, fields: Sequence[str], base: str) -> None:
    words = list(_words(code, map_, fields))
    while words:
        offset = words[0].offset
        size, together = _together(words, map_.size)
        del words[: len(together)]
        values = [part for word in together for part in _parts(code, word, size)]
        if len(values) > 1 and any(word.mixes for word in together):
            values = [code.compute(f"u{8 * size}", f"mov.b{8 * size}", one) for one in values]
        target = f"[{base}+{offset}]" if offset else f"[{base}]"
        if len(values) == 1:
            code.emit(f"st.global.b{8 * size} \t{target}, {values[0]}")
        else:
            vector = f"st.global.v{len(values)}.b{8 * size}"
            code.emit(f"{vector} \t{target}, {{{', '.join(values)}}}")


class _Word(NamedTuple):
    """A value in a record: 4 or 8 bytes."""

    offset: int
    size: int
    value: str
    mixes: bool = False
    """Whether ptxas takes it only beside values of its own type, as an f32 is, and a literal."""


def _words(code: Code, map_: Map, fields: Sequence[str]) -> Iterator[_Word]:
    """The values to store, none wider than its alignment."""
    for field, offset, value in zip(map_.fields, field_offsets(map_), fields, strict=True):
        mixes = field.type == "f32" or value[0] != "%"
        word = _Word(offset, FIELD_BYTES[field.type], value, mixes)
        if word.size == 4 or map_.size % 8 == 0:
            yield word
        else:
            for place, half in enumerate(_parts(code, word, 4)):
                yield _Word(offset + 4 * place, 4, half)


def _together(words: Sequence[_Word], record: int) -> tuple[int, Sequence[_Word]]:
    """The first words that one instruction can store in a record of so many bytes, and the size
    of its elements."""
    first = words[0].offset
    for width in (_WIDEST, _WIDEST // 2):
        if record % width or first % width:
            continue
        end = first
        for count, word in enumerate(words, 1):
            if word.offset != end or (end := end + word.size) > first + width:
                break
            if end == first + width:
                return min(one.size for one in words[:count]), words[:count]
    return words[0].size, words[:1]


def _parts(code: Code, word: _Word, size: int) -> tuple[str, ...]:
    """The value, or its two halves where they are to be of `size` 4."""
    if word.size == size:
        return (word.value,)
    low, high = code.temporaries.new("u32"), code.temporaries.new("u32")
    code.emit(f"mov.b64 \t{{{low}, {high}}}, {word.value}")
    return low, high
