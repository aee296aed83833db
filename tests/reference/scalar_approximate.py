"""Approximate functions, which PTX leaves open: what the simulated device's README chooses.

`ex2`, `lg2`, `sin`, `cos` and `tanh` are the host's mathematical library; `rcp`, `sqrt` and `div`
are the exact operations, `rsqrt` one behind the other.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
from collections.abc import Callable
from functools import cache

import binary_float as bf

_F32, _F64 = bf.FORMATS["f32"], bf.FORMATS["f64"]
_LOW_WORD = 0xFFFFFFFF


@cache
def _function(name: str) -> Callable[[float], float]:
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    function = getattr(library, name)
    function.argtypes, function.restype = [ctypes.c_float], ctypes.c_float
    return function  # type: ignore[no-any-return]


def by_library(name: str, f: bf.Format, bits: int) -> int:
    """A function of the mathematical library, of f32."""
    assert f == _F32, "only f32 is computed by the library"
    (given,) = struct.unpack("<f", bits.to_bytes(4, "little"))
    result = int.from_bytes(struct.pack("<f", _function(name)(given)), "little")
    return f.nan if bf.is_nan(f, result) else result


def inverse_root(f: bf.Format, bits: int, mode: str) -> int:
    return bf.div(f, f.one, bf.sqrt(f, bits, mode), mode)


def gross(f: bf.Format, bits: int) -> int:
    """Approximate results in f64 have no low word."""
    return bits & ~_LOW_WORD if f == _F64 else bits
