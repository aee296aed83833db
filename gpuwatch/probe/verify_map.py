"""What a map must keep to."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwatch.errors import UserError
from gpuwatch.probe.language import (
    BUCKET_BYTES,
    INTEGER_RANGE,
    LEVELS,
    MAP_TYPES,
    REDUCTIONS,
    SCALES,
    TYPE_BYTES,
    near,
    record_bytes,
)
from gpuwatch.probe.model import Map

MAX_RECORD_BYTES = 1 << 16
MAX_SLOT_BYTES = 1 << 30

Rule = tuple[bool, str, str]
"""Whether it is kept; else what the map has, and what to do about it."""


def verify_map(map_: Map) -> None:
    """Raises UserError, at the map, for the first rule that it breaks."""
    for kept, message, hint in _rules(map_):
        if not kept:
            raise UserError(f"map {map_.name} has {message}", hint=hint, at=map_.at)


def _rules(map_: Map) -> Iterator[Rule]:
    yield map_.level in LEVELS, f"unknown level {map_.level}", near(map_.level, LEVELS)
    yield map_.type in MAP_TYPES, f"unknown type {map_.type}", near(map_.type, MAP_TYPES)
    yield bool(map_.fields), "no fields", "name what a record holds: start: gl.u64"
    known = all(field.type in TYPE_BYTES for field in map_.fields)
    yield known, "a field of unknown type", near("", TYPE_BYTES)
    yield from _hist_rules(map_) if map_.type == "hist" else _record_rules(map_)
    yield map_.cap >= 1, f"room for {map_.cap} records", "give it cap=1 or more"
    yield (
        map_.slot_bytes <= MAX_SLOT_BYTES,
        f"slots of {map_.slot_bytes} bytes",
        f"size times cap is at most {MAX_SLOT_BYTES}",
    )
    yield (
        not map_.dynamic or map_.type == "array",
        f'cap="dynamic" and type {map_.type}',
        'only maps of type "array" grow',
    )
    yield from _reduction_rules(map_)


def _record_rules(map_: Map) -> Iterator[Rule]:
    need = record_bytes(map_.fields)
    yield (
        map_.size >= need,
        f"records of {map_.size} bytes, its fields take {need}",
        f"give it size={-(-need // 4) * 4} or more",
    )
    yield (
        map_.size % 4 == 0,
        f"records of {map_.size} bytes, which is no multiple of 4",
        f"give it size={-(-map_.size // 4) * 4}",
    )
    yield (
        map_.size <= MAX_RECORD_BYTES,
        f"records of {map_.size} bytes",
        f"a record has at most {MAX_RECORD_BYTES} bytes",
    )


def _reduction_rules(map_: Map) -> Iterator[Rule]:
    reduces = map_.type == "reduce"
    yield (
        all(field.reduction in REDUCTIONS for field in map_.fields),
        "a field that is combined in an unknown way",
        f"fields are combined by {', '.join(REDUCTIONS)}",
    )
    plain = all(field.reduction == "sum" for field in map_.fields)
    yield reduces or plain, "fields to combine", 'give it type="reduce"'
    if reduces:
        yield map_.cap == 1, f"cap={map_.cap}, but one record a slot", "drop cap"
        # An atomic instruction needs its operand aligned to its size.
        wide = any(TYPE_BYTES[field.type] == 8 for field in map_.fields)
        yield (
            map_.size % 8 == 0 or not wide,
            f"records of {map_.size} bytes, which is no multiple of its u64 fields",
            f"give it size={-(-map_.size // 8) * 8}",
        )


def _hist_rules(map_: Map) -> Iterator[Rule]:
    yield len(map_.fields) == 1, f"{len(map_.fields)} fields", "a histogram counts one value"
    type_ = map_.fields[0].type
    yield type_ != "pred", "a predicate to count", "use a number"
    yield map_.size == BUCKET_BYTES, f"size={map_.size}", "drop size: a bucket has 8 bytes"
    yield map_.scale in SCALES, f"unknown scale {map_.scale}", near(map_.scale, SCALES)
    yield map_.cap >= 2, f"{map_.cap} buckets", "give it cap=2 or more"
    plain = (map_.low, map_.step) == (0, 1)
    yield map_.scale == "linear" or plain, "low or step", 'give it scale="linear"'
    yield map_.step >= 1, f"step={map_.step}", "give it step=1 or more"
    least, most = INTEGER_RANGE["s64" if type_ == "f32" else type_]
    yield least <= map_.low <= most, f"low={map_.low}, outside {type_}", f"from {least} to {most}"
