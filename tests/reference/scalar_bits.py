"""Bit fields, permutations, small dot products and SIMD video, for the reference interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Form(Protocol):
    @property
    def tokens(self) -> tuple[str, ...]: ...
    @property
    def kind(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def is_signed(self) -> bool: ...
    def has(self, token: str) -> bool: ...
    def number(self, bits: int) -> int: ...


def signed(bits: int, width: int) -> int:
    return bits - (bits >> (width - 1) << width)


def _field(kind: str, value: int, width: int, index: int) -> int:
    bits = value >> (width * index) & (1 << width) - 1
    return signed(bits, width) if kind.startswith("s") else bits


def extract(form: Form, a: int, position: int, length: int) -> int:
    position, length, last = position & 255, length & 255, form.width - 1
    fill = a >> min(position + length - 1, last) & 1 if form.is_signed and length else 0
    bits = [
        a >> (position + i) & 1 if i < length and position + i <= last else fill
        for i in range(form.width)
    ]
    return sum(bit << i for i, bit in enumerate(bits))


def insert(form: Form, a: int, b: int, position: int, length: int) -> int:
    position, length = position & 255, length & 255
    for i in range(min(length, form.width - position)):
        place = 1 << (position + i)
        b = b | place if a >> i & 1 else b & ~place
    return b


def find(form: Form, a: int) -> int:
    x = ~a & (1 << form.width) - 1 if form.is_signed and form.number(a) < 0 else a
    place = x.bit_length() - 1
    if form.has("shiftamt") and place >= 0:
        return form.width - 1 - place
    return place


def permute(form: Form, a: int, b: int, choice: int) -> int:
    source = (b << 32 | a).to_bytes(8, "little")
    low = choice & 3
    places = {
        "f4e": [low, low + 1, low + 2, low + 3],
        "b4e": [low, low - 1, low - 2, low - 3],
        "rc8": [low] * 4,
        "ecl": [max(k, low) for k in range(4)],
        "ecr": [min(k, low) for k in range(4)],
        "rc16": [0, 1, 0, 1] if low % 2 == 0 else [2, 3, 2, 3],
    }
    if form.tokens[-1] in places:
        return sum(source[p % 8] << (8 * k) for k, p in enumerate(places[form.tokens[-1]]))
    result = 0
    for k in range(4):
        nibble = choice >> (4 * k) & 15
        byte = source[nibble & 7]
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << (8 * k)
    return result


def table3(form: Form, a: int, b: int, c: int, table: int) -> int:
    rows = ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1 for i in range(form.width))
    return sum((table >> row & 1) << i for i, row in enumerate(rows))


def dot(form: Form, a: int, b: int, total: int) -> int:
    count = 4 if form.tokens[0] == "dp4a" else 2
    first = 2 if form.has("hi") else 0
    kinds = form.tokens[-2:]
    for k in range(count):
        total += _field(kinds[0], a, 32 // count, k) * _field(kinds[1], b, 8, first + k)
    return total


def bit_mask(form: Form, start: int, width: int) -> int:
    if form.has("wrap"):
        start, width = start & 31, width & 31
    return sum(1 << k for k in range(32) if start <= k < start + width)


def extend(form: Form, a: int, width: int) -> int:
    width = width & 31 if form.has("wrap") else min(width, 32)
    if width == 0:
        return 0
    low = a & (1 << width) - 1
    return signed(low, width) if form.is_signed else low


def nth_set(_: Form, mask: int, base: int, offset: int) -> int:
    offset = signed(offset, 32)
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else -1
    step = 1 if offset > 0 else -1
    inside = range(base, 32) if step > 0 else range(min(base, 31), -1, -1)
    if base > 31:
        return -1
    found = [place for place in inside if mask >> place & 1]
    return found[abs(offset) - 1] if abs(offset) <= len(found) else -1


_CONDITIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


def _average(x: int, y: int) -> int:
    """Half the sum, a half away from zero."""
    total = x + y
    return (total + 1) // 2 if total >= 0 else -((-total + 1) // 2)


_SIMD: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda x, y: x + y,
    "vsub": lambda x, y: x - y,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
    "vavrg": _average,
}


def video(form: Form, a: int, b: int, c: int) -> int:
    name, count = form.tokens[0][:-1], int(form.tokens[0][-1])
    kinds = [t for t in form.tokens if t in ("u32", "s32")]
    width = 32 // count
    results = []
    for k in range(count):
        x, y = _field(kinds[-2], a, width, k), _field(kinds[-1], b, width, k)
        if name == "vset":
            condition = next(t for t in form.tokens if t in _CONDITIONS)
            results.append(int(_CONDITIONS[condition](x, y)))
            continue
        value = _SIMD[name](x, y)
        if form.has("sat"):
            least = -(1 << (width - 1)) if kinds[0] == "s32" else 0
            value = max(least, min(value, least + (1 << width) - 1))
        results.append(value)
    if form.has("add"):
        return c + sum(results)
    return sum((value & (1 << width) - 1) << (width * k) for k, value in enumerate(results))


OPCODES: dict[str, Callable[..., int]] = {
    "bfe": extract,
    "bfi": insert,
    "bfind": find,
    "popc": lambda _, a: a.bit_count(),
    "clz": lambda form, a: form.width - a.bit_length(),
    "brev": lambda form, a: int(f"{a:0{form.width}b}"[::-1], 2),
    "prmt": permute,
    "lop3": table3,
    "dp4a": dot,
    "dp2a": dot,
    "bmsk": bit_mask,
    "szext": extend,
    "fns": nth_set,
    **{f"{name}{count}": video for name in (*_SIMD, "vset") for count in (2, 4)},
}
