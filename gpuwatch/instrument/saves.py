"""Writing one record: the count of saves in its slot, the bound, the fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpuwatch.instrument import indices
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.layout import FIELD_BYTES, field_offsets
from gpuwatch.instrument.values import Value, convert
from gpuwatch.probe.model import Map

SLOTS: dict[str, Callable[[Code], str]] = {
    "thread": indices.global_thread,
    "warp": indices.warp,
    "block": indices.block,
    "kernel": lambda code: code.once("zero", "u64", "mov.u64", "0"),
}
"""Slot index of each map level that follows from where the thread stands."""


def buffer_address(code: Code, variable: str, index: int) -> str:
    """u64: device address of a buffer, read from the pointer variable."""
    return code.once(f"buffer {index}", "u64", "ld.global.u64", f"[{variable}+{8 * index}]")


def operands(code: Code, map_: Map, values: Sequence[Value]) -> list[str]:
    """The values in the types of the map's fields, so that only the stores are left to do."""
    return [
        convert(code, value, "u32" if field.type == "pred" else field.type)
        for value, field in zip(values, map_.fields, strict=True)
    ]


def save(
    code: Code, map_: Map, number: int, fields: Sequence[str], slot: str, variable: str, once: bool
) -> None:
    """Store a record of map `number`, whose buffers are 2 * number and 2 * number + 1.

    `once` says that no other save goes to this slot: then the count is stored, not added to.
    """
    counts = buffer_address(code, variable, 2 * number + 1)
    count = code.compute("u64", "mad.lo.u64", slot, "4", counts)
    records = buffer_address(code, variable, 2 * number)
    base = code.compute("u64", "mad.lo.u64", slot, str(map_.slot_bytes), records)
    if once:
        code.emit(f"st.global.u32 \t[{count}], 1")
        _store(code, map_, fields, base)
        return
    index = code.compute("u32", "atom.global.add.u32", f"[{count}]", "1")
    room = code.compute("pred", "setp.lt.u32", index, str(map_.cap))
    with code.skipped_unless(room):
        wide = code.compute("u64", "cvt.u64.u32", index)
        place = code.compute("u64", "mad.lo.u64", wide, str(map_.size), base)
        _store(code, map_, fields, place)


def _store(code: Code, map_: Map, fields: Sequence[str], base: str) -> None:
    for offset, type_, values in _chunks(code, map_, fields):
        target = f"[{base}+{offset}]" if offset else f"[{base}]"
        if len(values) == 1:
            code.emit(f"st.global.{type_} \t{target}, {values[0]}")
        else:
            code.emit(f"st.global.v2.{type_} \t{target}, {{{', '.join(values)}}}")


def _chunks(
    code: Code, map_: Map, fields: Sequence[str]
) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """The stores of a record, (offset, type, values), none wider than its alignment."""
    words = list(_words(code, map_, fields))
    while words:
        offset, type_, value = words.pop(0)
        size = FIELD_BYTES[type_]
        aligned = map_.size % (2 * size) == 0 and offset % (2 * size) == 0
        if aligned and words and words[0][:2] == (offset + size, type_):
            yield offset, type_, (value, words.pop(0)[2])
        else:
            yield offset, type_, (value,)


def _words(code: Code, map_: Map, fields: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    for field, offset, value in zip(map_.fields, field_offsets(map_), fields, strict=True):
        if FIELD_BYTES[field.type] == 4:
            yield offset, "f32" if field.type == "f32" else "u32", value
        elif map_.size % 8 == 0:
            yield offset, "u64", value
        else:
            low = code.compute("u32", "cvt.u32.u64", value)
            high = code.compute("u64", "shr.u64", value, "32")
            yield offset, "u32", low
            yield offset + 4, "u32", code.compute("u32", "cvt.u32.u64", high)
