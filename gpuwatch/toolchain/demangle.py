"""Readable names of C++ functions, by the C++ library's own demangler: no program is run."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterable

_EAST_CONST = re.compile(r"((?:(?:unsigned|signed|long|short) )*[\w:]+) const(?=[*&])")
_UNNAMED = re.compile(r"\(anonymous namespace\)::|_INTERNAL_\w+::")
"""How names without linkage are told apart: C++'s own way, and nvcc's."""
_LOCAL = re.compile(r"__nv_static_\d+__\w+?_(_Z\w+)$")
"""nvcc's name of a static kernel in relocatable device code."""
_TIGHT = re.compile(r"(?<=[\w>])(?=[*&])")


def demangle(names: Iterable[str]) -> dict[str, str]:
    """Each name with its readable form, written as in the source: `f(const float *, int)`.

    A name that is not mangled stands for itself; so does every name where the C++ library
    (libstdc++) is not installed.
    """
    return {name: _readable(name) for name in names}


@functools.cache
def _readable(name: str) -> str:
    local = _LOCAL.match(name)
    mangled = local[1] if local else name
    if not mangled.startswith("_Z"):
        return name
    library = _cxx_library()
    if library is None:
        return name
    status = ctypes.c_int()
    address = library.__cxa_demangle(mangled.encode(), None, None, ctypes.byref(status))
    if not address:
        return name
    raw = ctypes.string_at(address).decode()
    ctypes.CDLL(None).free(ctypes.c_void_p(address))
    return _as_written(raw)


@functools.cache
def _cxx_library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return None
    library.__cxa_demangle.restype = ctypes.c_void_p
    library.__cxa_demangle.argtypes = [ctypes.c_char_p] + [ctypes.c_void_p] * 3
    return library


def _as_written(raw: str) -> str:
    """`void f<int>(float const*)` becomes `f<int>(const float *)`."""
    text = _UNNAMED.sub("", raw.removeprefix("void "))
    return _TIGHT.sub(" ", _EAST_CONST.sub(r"const \1", text))
