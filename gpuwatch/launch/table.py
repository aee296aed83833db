"""Launches in a TOML file beside the source: `gemm.launch.toml` or `gemm.toml` for `gemm.cu`.

[sizes]                       # names that expressions below may use
M = 1024
N = "2*M"

[gemm_gpu]                    # a kernel, by mangled or readable name
grid = ["cdiv(N, 32)", "cdiv(M, 8)"]
block = [32, 8]
shared = "4*32*8"             # bytes, 0 unless given; also: cluster, cooperative

[gemm_gpu.args]               # values as `gpuwatch.launch.values` says
A = "f32[M*M]:uniform"
M = "M"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from gpuwatch.errors import Location, UserError
from gpuwatch.launch.expressions import Number, evaluate
from gpuwatch.launch.given import LaunchForm
from gpuwatch.launch.signature import KernelSignature

SIZES = "sizes"
_KEYS = ("grid", "block", "shared", "cluster", "cooperative", "args")
_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?$")
_KEY = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[\w-]+)\s*=\s*")
_AT = re.compile(r"\(at line (\d+), column (\d+)\)")


def launch_file(source: Path) -> Path | None:
    """The launch file beside `source`, None when there is none."""
    candidates = (source.with_suffix(".launch.toml"), source.with_suffix(".toml"))
    return next((file for file in candidates if file.is_file()), None)


def form_from_toml(path: Path, signature: KernelSignature) -> LaunchForm:
    """What the file says of this kernel's launch.

    Raises UserError, with the place in the file, for TOML that cannot be read and a kernel
    without a table.
    """
    text = path.read_text(errors="replace")
    document = _document(path, text)
    places = _places(path.name, text)
    sizes = _sizes(document.get(SIZES, {}), places)
    key = _kernel_key(path, document, signature)
    table = _table(document[key], places.get((key,)), key)
    arguments = _table(table.get("args", {}), places.get((key, "args")), "args")
    for word in table:
        if word not in _KEYS:
            raise UserError(
                f"{word!r} is no part of a launch",
                at=places.get((key, word)),
                hint=f"parts: {', '.join(_KEYS)}",
            )
    for word in ("grid", "block"):
        if word not in table:
            raise UserError(
                f"{key} has no {word}", at=places.get((key,)), hint=f"add {word} = [..]"
            )
    known = {word: places[key, word] for word in _KEYS if (key, word) in places}
    known |= {
        label: places[key, "args", label] for label in arguments if (key, "args", label) in places
    }
    shapes = {}
    for word in ("grid", "block", "cluster"):
        shapes[word], place = _shape(table.get(word, ""), known.pop(word, None))
        known |= {word: place} if place else {}
    return LaunchForm(
        **shapes,
        shared=_written(table.get("shared", 0)),
        arguments=tuple((label, _written(value)) for label, value in arguments.items()),
        cooperative=table.get("cooperative", False) is True,
        sizes=sizes,
        places=known,
        folder=str(path.parent),
    )


def _document(path: Path, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        found = _AT.search(str(problem))
        line, column = (int(found[1]), int(found[2])) if found else (1, 1)
        lines = text.splitlines()
        shown = lines[line - 1] if line <= len(lines) else ""
        raise UserError(
            _AT.sub("", str(problem)).strip(),
            at=Location(path.name, line, column, shown),
            hint="the file must be TOML",
        ) from problem


def _places(name: str, text: str) -> dict[tuple[str, ...], Location]:
    """Where each table and each key's value begins, behind an opening quote."""
    places: dict[tuple[str, ...], Location] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _TABLE.match(line), _KEY.match(line)
        if header:
            table = tuple(
                _bare(part) for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", header[1])
            )
            places.setdefault(table, Location(name, number, header.start(1) + 1, line))
        elif key:
            quoted = line[key.end() : key.end() + 1] in ("'", '"')
            place = Location(name, number, key.end() + 1 + quoted, line)
            places.setdefault((*table, _bare(key[1])), place)
    return places


def _bare(word: str) -> str:
    return word[1:-1] if word[:1] in ("'", '"') else word


def _sizes(table: object, places: Mapping[tuple[str, ...], Location]) -> dict[str, Number]:
    """The sizes; an expression may name those above it."""
    names: dict[str, Number] = {}
    for key, value in _table(table, places.get((SIZES,)), SIZES).items():
        names[key] = evaluate(_written(value), names, places.get((SIZES, key)))
    return names


def _kernel_key(path: Path, document: Mapping[str, object], signature: KernelSignature) -> str:
    readable = signature.demangled
    base = re.split(r"[<(]", readable, maxsplit=1)[0]
    wanted = (
        signature.kernel,
        readable,
        readable.partition("(")[0],
        base,
        base.rpartition("::")[2],
    )
    for key in wanted:
        if key != SIZES and key in document:
            return key
    tables = ", ".join(key for key in document if key != SIZES) or "none"
    raise UserError(
        f"{path.name} has no table for the kernel {base}",
        hint=f"add [{base}] with grid, block and args; it has: {tables}",
    )


def _table(value: object, at: Location | None, name: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise UserError(f"{name!r} must be a table", at=at, hint=f"write [{name}]")
    return value


def _shape(value: object, at: Location | None) -> tuple[str, Location | None]:
    """A shape as the text that a flag would have, and where that begins.

    A list on one line keeps its columns: quotes become spaces.
    """
    if not isinstance(value, list):
        return _written(value), at
    line = at.text[at.column - 1 :] if at else ""
    if at and line.startswith("[") and "]" in line:
        inside = re.sub(r"[\"']", " ", line[1 : line.index("]")])
        return inside, Location(at.file, at.line, at.column + 1, at.text)
    return ",".join(map(_written, value)), None


def _written(value: object) -> str:
    """A TOML value as the text that a flag would have."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
