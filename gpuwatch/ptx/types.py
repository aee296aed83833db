"""The fundamental types of PTX and their sizes (PTX ISA 9.0, "Types")."""

from __future__ import annotations

TYPE_BITS = {
    "pred": 1,
    "b8": 8, "u8": 8, "s8": 8, "e4m3": 8, "e5m2": 8,
    "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "e4m3x2": 16, "e5m2x2": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "tf32": 32,
    "u16x2": 32, "s16x2": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64, "f32x2": 64,
    "b128": 128,
}  # fmt: skip
"""Bits of each type by its name without dot."""

OPAQUE_TYPES = frozenset({"texref", "samplerref", "surfref"})
"""Handles of 64 bits."""

ALL_TYPES = frozenset(TYPE_BITS) | OPAQUE_TYPES


def type_bits(name: str) -> int:
    """Bits of a type, of vector types ("v4.f32") as a whole; raises KeyError for no type."""
    vector, _, element = name.rpartition(".")
    bits = 64 if element in OPAQUE_TYPES else TYPE_BITS[element]
    return bits * int(vector[1:]) if vector else bits


def type_bytes(name: str) -> int:
    """Bytes that a value of the type takes in memory; a predicate counts as one."""
    return (type_bits(name) + 7) // 8
