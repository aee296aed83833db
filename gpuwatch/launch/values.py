"""The text of a given argument, read into bytes and buffers.

A scalar is an arithmetic expression: `1024`, `M*N`, `1.5`, `0x10`, `true`; a type before it
(`f16:1.5`) overrides the parameter's own. A pointer is a buffer, `TYPE[COUNT]` or
`TYPE[COUNT]:FILL` with TYPE one of i8 .. i64, u8 .. u64, f16, bf16, f32, f64 and FILL one of
zeros (the default), ones, iota, uniform ([0, 1), for integers 0 to 99, the same each time),
normal, a number, or file=PATH (raw bytes); or `@NAME`, `@NAME+BYTES`: into another parameter's
buffer; or `null`. A struct is `bytes:HEX` or `{i32:3, f32:1.5, f32[64]:iota}`, its members at
their natural alignment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwatch.errors import Location, UserError
from gpuwatch.launch.elements import C_TYPES, ELEMENTS, Element
from gpuwatch.launch.expressions import Number, evaluate, outer_parts, whole

LARGEST_BUFFER = 1 << 36
"""Bytes of a buffer beyond which its size is taken for a mistake."""

_BUFFER = re.compile(r"\s*(\w+)\s*\[(.*?)\]\s*(?::(.*))?$", re.S)
_TYPED = re.compile(r"\s*([a-z_]\w*)\s*:(.*)$", re.S)
_ALIAS = re.compile(r"\s*@(\w+)\s*(?:\+(.*))?$", re.S)
_WORDS = {"true": 1, "false": 0, "inf": float("inf"), "nan": float("nan")}
_TYPES_HINT = f"types: {', '.join(ELEMENTS)}"
_FILLS_HINT = "fills: zeros, ones, iota, uniform, normal, a number, file=PATH"


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of what the user wrote, and where it stands."""

    text: str
    at: Location | None = None

    def part(self, start: int, end: int | None = None) -> Text:
        at = self.at and Location(self.at.file, self.at.line, self.at.column + start, self.at.text)
        return Text(self.text[start:end], at)

    def error(self, message: str, hint: str) -> UserError:
        return UserError(message, at=self.at, hint=hint)


@dataclass(slots=True)
class Memory:
    """The buffers of a launch as they are given, and where parameters' pointers lead."""

    names: Mapping[str, Number]
    """Sizes that expressions may name."""
    folder: Path = field(default_factory=Path)
    """What a relative file=PATH starts from."""
    buffers: list[NDArray[np.uint8]] = field(default_factory=list)
    by_label: dict[str, int] = field(default_factory=dict)

    def number(self, text: Text) -> Number:
        word = text.text.strip()
        if word in _WORDS:
            return _WORDS[word]
        return evaluate(text.text, self.names, text.at)


@dataclass(slots=True)
class Value:
    """An argument as bytes, with (offset, buffer, addend) of each address in it."""

    content: bytes
    pointers: list[tuple[int, int, int]] = field(default_factory=list)


def read_scalar(text: Text, element: Element | None, size: int, memory: Memory) -> Value:
    """A number of `element`'s type, or of the type that the text gives, in `size` bytes."""
    typed = _TYPED.match(text.text)
    if typed:
        element = _element(text.part(typed.start(1), typed.end(1)))
        text = text.part(typed.start(2))
    if element is None:
        raise text.error(
            f"{text.text.strip()!r} gives no type",
            "write bytes:HEX, {i32:3, f32:1.5} or TYPE:VALUE",
        )
    if element.size != size:
        raise text.error(
            f"{element.name} has {element.size} bytes, the parameter {size}",
            "give a type of the parameter's size, or bytes:HEX",
        )
    return Value(_packed(text, element, memory))


def _packed(text: Text, element: Element, memory: Memory) -> bytes:
    value = memory.number(text)
    if element.kind == "f":
        return element.pack(value)
    low, high = element.range
    if not low <= value <= high:
        raise text.error(
            f"{text.text.strip()} does not fit into {element.name}", f"give {low} to {high}"
        )
    if int(value) != value:
        raise text.error(f"{text.text.strip()} is no whole number", "divide with //")
    return element.pack(int(value))


def read_pointer(text: Text, label: str, memory: Memory) -> Value:
    """A new buffer, an alias of another parameter's, or null."""
    if text.text.strip() in ("null", "nullptr"):
        return Value(bytes(8))
    alias = _ALIAS.match(text.text)
    if alias:
        return _alias(text, alias, memory)
    match = _BUFFER.match(text.text)
    if match is None:
        raise text.error(
            f"{text.text.strip()!r} is no buffer",
            "write TYPE[COUNT]:FILL like f32[1024]:uniform, @NAME or null",
        )
    buffer = _filled(text, match, len(memory.buffers), memory)
    memory.buffers.append(buffer)
    memory.by_label.setdefault(label, len(memory.buffers) - 1)
    return Value(bytes(8), [(0, len(memory.buffers) - 1, 0)])


def _alias(text: Text, match: re.Match[str], memory: Memory) -> Value:
    if match[1] not in memory.by_label:
        known = ", ".join(memory.by_label) or "none"
        raise text.error(f"no earlier parameter {match[1]} has a buffer", f"such are: {known}")
    buffer = memory.by_label[match[1]]
    place = text.part(match.start(2), match.end(2)) if match[2] else None
    addend = whole(place.text, memory.names, place.at) if place else 0
    if not 0 <= addend <= memory.buffers[buffer].size:
        raise text.error(
            f"@{match[1]}+{addend} lies outside its {memory.buffers[buffer].size} bytes",
            "offsets are in bytes",
        )
    return Value(bytes(8), [(0, buffer, addend)])


def _element(text: Text) -> Element:
    name = text.text.strip()
    element = ELEMENTS.get(C_TYPES.get(name, name))
    if element is None:
        raise text.error(f"{name!r} is no type", _TYPES_HINT)
    return element


def _filled(text: Text, match: re.Match[str], seed: int, memory: Memory) -> NDArray[np.uint8]:
    element = _element(text.part(match.start(1), match.end(1)))
    size = text.part(match.start(2), match.end(2))
    count = whole(size.text, memory.names, size.at)
    if not 0 < count <= LARGEST_BUFFER // element.size:
        raise size.error(f"a buffer of {count:,} elements", "give 1 or more, and less than 64 GiB")
    fill = text.part(match.start(3), match.end(3)) if match[3] else Text("zeros", text.at)
    word = fill.text.strip()
    if word.startswith("file="):
        return _from_file(fill, word.removeprefix("file="), count * element.size, memory)
    if word in _FILLS:
        if word == "normal" and element.kind != "f":
            raise fill.error(f"normal is for floating point, not {element.name}", _FILLS_HINT)
        return element.encode(_FILLS[word](count, np.random.default_rng(seed), element))
    if word.isidentifier() and word not in memory.names and word not in _WORDS:
        raise fill.error(f"{word!r} is no fill", _FILLS_HINT)
    return np.tile(np.frombuffer(_packed(fill, element, memory), np.uint8), count)


_Fill = Callable[[int, np.random.Generator, Element], "NDArray[np.float64] | NDArray[np.int64]"]


def _uniform(
    count: int, generator: np.random.Generator, element: Element
) -> NDArray[np.float64] | NDArray[np.int64]:
    if element.kind == "f":
        return generator.random(count)
    return generator.integers(0, 100, count)


_FILLS: dict[str, _Fill] = {
    "zeros": lambda count, _generator, _element: np.zeros(count),
    "ones": lambda count, _generator, _element: np.ones(count),
    "iota": lambda count, _generator, _element: np.arange(count),
    "uniform": _uniform,
    "normal": lambda count, generator, _element: generator.standard_normal(count),
}


def _from_file(text: Text, name: str, size: int, memory: Memory) -> NDArray[np.uint8]:
    path = memory.folder / name
    try:
        content = np.fromfile(path, np.uint8)
    except OSError as problem:
        raise text.error(f"{path}: {problem.strerror}", "name a file of raw bytes") from problem
    if content.size != size:
        raise text.error(
            f"{path} has {content.size:,} bytes, the buffer {size:,}",
            "give the buffer the file's size",
        )
    return content


def read_struct(text: Text, size: int, label: str, memory: Memory) -> Value:
    """`bytes:HEX` or `{...}` for a parameter of `size` bytes."""
    stripped = text.text.strip()
    if stripped.startswith("bytes:"):
        return Value(_hexadecimal(text, stripped.removeprefix("bytes:"), size))
    if not (stripped.startswith("{") and stripped.endswith("}")):
        raise text.error(
            f"{stripped!r} is no struct of {size} bytes", "write bytes:HEX or {i32:3, f32:1.5}"
        )
    content, pointers, alignment = b"", [], 1
    start = text.text.index("{") + 1
    for at, item in outer_parts(text.text[start : text.text.rindex("}")]):
        if not item.strip():
            continue
        member = text.part(start + at, start + at + len(item))
        value = _member(member, label, memory)
        unit = 8 if value.pointers else len(value.content)
        alignment = max(alignment, unit)
        content = content.ljust(-(-len(content) // unit) * unit, b"\0")
        pointers += [(len(content) + at, buffer, addend) for at, buffer, addend in value.pointers]
        content += value.content
    padded = -(-len(content) // alignment) * alignment
    if padded != size:
        raise text.error(
            f"the members take {padded} bytes, the parameter has {size}",
            "list every member, padding between them is added; or write bytes:HEX",
        )
    return Value(content.ljust(size, b"\0"), pointers)


def _member(text: Text, label: str, memory: Memory) -> Value:
    if (
        text.text.strip() in ("null", "nullptr")
        or _ALIAS.match(text.text)
        or _BUFFER.match(text.text)
    ):
        return read_pointer(text, label, memory)
    typed = _TYPED.match(text.text)
    if typed is None:
        raise text.error(f"{text.text.strip()!r} gives no type", "write TYPE:VALUE like i32:3")
    element = _element(text.part(typed.start(1), typed.end(1)))
    return read_scalar(text, element, element.size, memory)


def _hexadecimal(text: Text, digits: str, size: int) -> bytes:
    try:
        content = bytes.fromhex(digits)
    except ValueError as problem:
        raise text.error(f"{digits!r} is not hexadecimal", "write two digits a byte") from problem
    if len(content) != size:
        raise text.error(f"{len(content)} bytes for a parameter of {size}", "give all its bytes")
    return content
