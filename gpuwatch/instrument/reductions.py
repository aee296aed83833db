"""Saves that combine with what a slot holds: reductions of each field, and histograms.

Buffers begin as zeros, so the least and greatest are kept as unsigned keys in which zero is less
than any value's: a greatest value as itself (signed: with its sign bit turned over; f32: as the
integer that sorts like it), a least one as the complement of that. A NaN has the key 0 and counts
for nothing, as in `min.f32` and `max.f32`. `gpuwatch.trace.decode` turns keys back.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.instrument.code import Code
from gpuwatch.instrument.layout import field_offsets
from gpuwatch.instrument.values import BITS
from gpuwatch.probe.model import Field, Map

SIGN = {32: "0x80000000", 64: "0x8000000000000000"}


def blocks_commute(map_: Map) -> bool:
    """Whether a map ends up the same in whatever order blocks run: each has slots of its own, or
    what they save is combined exactly."""
    if map_.level in ("thread", "warp", "block") or map_.type == "hist":
        return True
    sums = any((one.type, one.reduction) == ("f32", "sum") for one in map_.fields)
    return map_.type == "reduce" and not sums


def are_constant(map_: Map, fields: Sequence[str]) -> bool:
    """Whether `fields` are the same for all lanes, so that one of them can save for all."""
    return all(
        value.removeprefix("-").isdigit() and (field.type, field.reduction) != ("f32", "sum")
        for field, value in zip(map_.fields, fields, strict=True)
    )


def multiplied(code: Code, map_: Map, fields: Sequence[str], lanes: str) -> list[str]:
    """Constant fields as so many lanes (u32) would save them."""
    wide = code.compute("u64", "cvt.u64.u32", lanes)
    result = []
    for field, value in zip(map_.fields, fields, strict=True):
        bits = _bits(field)
        factor = wide if bits == 64 else lanes
        if field.reduction == "sum":
            value = code.compute(f"u{bits}", f"mul.lo.u{bits}", factor, value)
        result.append(value)
    return result


def reduce(code: Code, map_: Map, fields: Sequence[str], base: str) -> None:
    """Combine `fields`, in the types of the map's, with the record at `base`."""
    for field, offset, value in zip(map_.fields, field_offsets(map_), fields, strict=True):
        target = f"[{base}+{offset}]" if offset else f"[{base}]"
        if field.reduction == "sum":
            type_ = "f32" if field.type == "f32" else f"u{_bits(field)}"
            code.emit(f"red.global.add.{type_} \t{target}, {value}")
        else:
            code.emit(f"red.global.max.u{_bits(field)} \t{target}, {_key(code, field, value)}")


def _bits(field: Field) -> int:
    return max(BITS[field.type], 32)


def _key(code: Code, field: Field, value: str) -> str:
    if field.type == "f32":
        return _key_of_float(code, value, least=field.reduction == "min")
    bits = _bits(field)
    signed = field.type.startswith("s")
    unsigned = f"u{bits}"
    if signed:
        value = code.compute(unsigned, f"xor.b{bits}", value, SIGN[bits])
    if field.reduction == "min":
        value = code.compute(unsigned, f"not.b{bits}", value)
    return value


def _key_of_float(code: Code, value: str, *, least: bool) -> str:
    """Negative numbers sort by the complement of their bits, others above them."""
    number = code.compute("f32", "mov.f32", value)
    bits = code.compute("u32", "mov.b32", number)
    sign = code.compute("u32", "shr.s32", bits, "31")
    flipped = code.compute("u32", "or.b32", sign, SIGN[32])
    key = code.compute("u32", "xor.b32", bits, flipped)
    if least:
        key = code.compute("u32", "not.b32", key)
    nan = code.compute("pred", "setp.nan.f32", number, number)
    return code.compute("u32", "selp.b32", "0", key, nan)


def count(code: Code, map_: Map, value: str, base: str) -> None:
    """Count `value`, of the type of the map's field, in its bucket behind `base`."""
    bucket = _BUCKETS[map_.scale](code, map_, *_whole(code, map_.fields[0].type, value))
    place = code.compute("u64", "mad.wide.u32", bucket, str(map_.size), base)
    code.emit(f"red.global.add.u64 \t[{place}], 1")


def _whole(code: Code, type_: str, value: str) -> tuple[str, str]:
    """A whole-number type and the value in a register of it; an f32 is rounded down."""
    if type_ == "f32":
        return "s64", code.compute("s64", "cvt.rmi.s64.f32", value)
    return type_, code.compute(type_, f"mov.{type_}", value)


def _log2(code: Code, map_: Map, type_: str, value: str) -> str:
    """Bits that the value needs; 0 for one below 0."""
    bits = BITS[type_]
    if type_.startswith("s"):
        value = code.compute(type_, f"max.{type_}", value, "0")
    zeros = code.compute("u32", f"clz.b{bits}", value)
    bucket = code.compute("u32", "sub.u32", str(bits), zeros)
    if map_.cap > bits:
        return bucket
    return code.compute("u32", "min.u32", bucket, str(map_.cap - 1))


def _linear(code: Code, map_: Map, type_: str, value: str) -> str:
    """(value - low) // step, within the buckets; the difference may need all bits."""
    bits = BITS[type_]
    unsigned, last = f"u{bits}", map_.cap - 1
    if map_.low or type_.startswith("s"):
        value = code.compute(type_, f"max.{type_}", value, str(map_.low))
        value = code.compute(unsigned, f"sub.{unsigned}", value, str(map_.low))
    step = map_.step
    if step & (step - 1):
        value = code.compute(unsigned, f"div.{unsigned}", value, str(step))
    elif step > 1:
        value = code.compute(unsigned, f"shr.{unsigned}", value, str(step.bit_length() - 1))
    value = code.compute(unsigned, f"min.{unsigned}", value, str(last))
    return value if bits == 32 else code.compute("u32", "cvt.u32.u64", value)


_BUCKETS = {"log2": _log2, "linear": _linear}
