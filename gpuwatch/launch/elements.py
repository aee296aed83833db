"""Element types of given arguments, and how values of them become bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Element:
    """A scalar type; `kind` is "i" (signed), "u" or "f"; `size` is in bytes."""

    name: str
    kind: str
    size: int
    dtype: str
    """numpy's name; bf16 has none of its own and is rounded from f32."""

    @property
    def range(self) -> tuple[int, int]:
        """The integers that fit, signed and unsigned alike: -1 means all bits set."""
        bits = 8 * self.size
        return -(1 << (bits - 1)), (1 << bits) - 1

    def encode(self, values: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.uint8]:
        """The values' bytes."""
        if self.name == "bf16":
            return _bfloat16(values.astype(np.float32)).view(np.uint8)
        return np.ascontiguousarray(values.astype(self.dtype)).view(np.uint8)

    def pack(self, value: int | float) -> bytes:
        """One value's bytes; an integer must be within `range`."""
        if self.kind == "f":
            return self.encode(np.array([value], np.float64)).tobytes()
        return (int(value) & ((1 << (8 * self.size)) - 1)).to_bytes(self.size, "little")


def _bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper halves, rounded to nearest, ties to even; a NaN stays one."""
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


ELEMENTS = {
    element.name: element
    for element in (
        *(Element(f"i{8 * size}", "i", size, f"int{8 * size}") for size in (1, 2, 4, 8)),
        *(Element(f"u{8 * size}", "u", size, f"uint{8 * size}") for size in (1, 2, 4, 8)),
        Element("f16", "f", 2, "float16"),
        Element("bf16", "f", 2, ""),
        Element("f32", "f", 4, "float32"),
        Element("f64", "f", 8, "float64"),
    )
}

C_TYPES = {
    "float": "f32", "double": "f64", "half": "f16", "__half": "f16", "__nv_bfloat16": "bf16",
    "bool": "u8", "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16",
    "unsigned short": "u16", "int": "i32", "unsigned int": "u32", "unsigned": "u32",
    "long": "i64", "unsigned long": "u64", "long long": "i64", "unsigned long long": "u64",
    "float2": "f32", "float3": "f32", "float4": "f32", "double2": "f64", "__half2": "f16",
    "__nv_bfloat162": "bf16", "int2": "i32", "int4": "i32", "uint2": "u32", "uint4": "u32",
}  # fmt: skip
"""Element types by the names that a demangled signature has; vectors by what they hold."""

PTX_TYPES = {
    **{f"{kind}{bits}": f"{new}{bits}" for kind, new in (("s", "i"), ("u", "u"), ("b", "u"))
       for bits in (8, 16, 32, 64)},
    "f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64",
}  # fmt: skip
"""Element types by PTX type."""
