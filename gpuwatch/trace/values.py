"""Values out of a file that anybody may have written, checked one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from gpuwatch.errors import UserError

T = TypeVar("T", bound=str)
_MOST = (1 << 62) - 1
_LINES = (ord("\n"), ord("\t"))
_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], "\ufffd")
_CONTROLS_IN_LINES = {code: mark for code, mark in _CONTROLS.items() if code not in _LINES}


def check_plain(path: Path) -> None:
    """Raises UserError for what is there and no file, such as a pipe, from which reading would
    never end."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no plain file", hint="it was altered: copy the trace again")


def harmless(text: str, *, lines: bool = False) -> str:
    """The text with U+FFFD for characters that steer a terminal; new lines and tabs are kept with
    `lines`."""
    if text.isprintable():
        return text
    return text.translate(_CONTROLS_IN_LINES if lines else _CONTROLS)


class Values:
    """A table of a JSON or TOML document. Every method raises UserError, naming the key, for a
    value of another kind; one that is not there, or is null, is its default."""

    def __init__(self, document: object, where: str) -> None:
        if not isinstance(document, dict):
            raise _wrong(where, f"not a table but {type(document).__name__}")
        self._document: Mapping[str, object] = document
        self._where = where

    def whole(self, key: str, default: int = 0, least: int = 0, most: int = _MOST) -> int:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, f"a whole number from {least} to {most}")
        return value

    def real(self, key: str, default: float = 0.0) -> float:
        """Finite and not negative."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number")
        if not math.isfinite(value) or value < 0:
            raise self.wrong(key, "a finite number of at least 0")
        return float(value)

    def text(self, key: str, default: str = "", *, lines: bool = False) -> str:
        """Harmless to a terminal; of several lines with `lines`."""
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "text")
        return harmless(value, lines=lines)

    def one_of(self, key: str, known: Mapping[str, T], default: T) -> T:
        value = self.text(key, default)
        if value not in known:
            raise self.wrong(key, f"one of {', '.join(known)}")
        return known[value]

    def truth(self, key: str, default: bool = False) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def maybe_truth(self, key: str) -> bool | None:
        return self.truth(key) if self._get(key, None) is not None else None

    def dim3(self, key: str) -> tuple[int, int, int]:
        value = self._get(key, None)
        if not isinstance(value, list) or len(value) != 3 or not all(map(_is_size, value)):
            raise self.wrong(key, "three whole numbers of at least 0")
        x, y, z = value
        return x, y, z

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.wrong(key, "a list of texts")
        return tuple(map(harmless, value))

    def table(self, key: str) -> Values:
        return Values(self._get(key, {}), f"{self._where}, {key}")

    def tables(self, key: str) -> list[Values]:
        value = self._get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "a list of tables")
        return [Values(one, f"{self._where}, {key} {at}") for at, one in enumerate(value)]

    def rows(self, key: str, length: int) -> list[tuple[str, ...]]:
        """A list of lists of `length` texts."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(_is_row(row, length) for row in value):
            raise self.wrong(key, f"a list of lists of {length} texts")
        return [tuple(map(harmless, row)) for row in value]

    def wrong(self, key: str, wanted: str) -> UserError:
        found = repr(self._document.get(key))
        shown = found if len(found) < 60 else found[:57] + "..."
        return _wrong(self._where, f"{key} must be {wanted}, not {shown}")

    def pairs(self, key: str) -> tuple[tuple[str, int], ...]:
        """A list of lists of a text and a whole number of at least 0."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(map(_is_pair, value)):
            raise self.wrong(key, "a list of lists of a text and a number")
        return tuple((harmless(word), number) for word, number in value)

    def pairs_of_lines(self, key: str) -> tuple[tuple[int, str, int], ...]:
        """A list of lists of a whole number of at least 0, a text and another such number."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(map(_is_pair_of_line, value)):
            raise self.wrong(key, "a list of lists of a line, a text and a number")
        return tuple((line, harmless(word), number) for line, word, number in value)

    def refused(self, why: str) -> UserError:
        return _wrong(self._where, why)

    def _get(self, key: str, default: object) -> object:
        value = self._document.get(key)
        return default if value is None else value


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, list) and len(value) == 2 and _is_row(value[:1], 1) and _is_size(value[1])
    )


def _is_pair_of_line(value: object) -> bool:
    return isinstance(value, list) and bool(value) and _is_size(value[0]) and _is_pair(value[1:])


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _is_row(row: object, length: int) -> bool:
    return isinstance(row, list) and len(row) == length and all(isinstance(one, str) for one in row)


def _wrong(where: str, what: str) -> UserError:
    return UserError(
        f"{where}: {what}", hint="the file was altered: copy the trace again, or record it again"
    )
