"""What both source forms do alike: places, checked words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeVar

from gpuwatch.errors import Location, UserError
from gpuwatch.probe.language import DYNAMIC_CAP, near

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A probe file's name and text."""

    file: str
    text: str

    @staticmethod
    def of(file: str, text: str) -> SourceText:
        """With plain blanks where text copied from a web page has no-break ones."""
        return SourceText(file, text.replace("\xa0", " "))

    @property
    def name(self) -> str:
        """The program's name: the file's, without folder and suffix."""
        return PurePath(self.file).stem

    def at(self, offset: int) -> Location:
        return Location.in_text(self.file, self.text, offset)

    def leading_comment(self) -> str:
        """The first line with words of the comment that the file begins with, or ""."""
        for line in self.text.splitlines():
            stripped = line.strip()
            if stripped and not stripped.startswith("#"):
                return ""
            if words := stripped.lstrip("#! ").strip():
                return words
        return ""


def mistake(message: str, at: Location, hint: str) -> UserError:
    """An error at a place of a probe file, to be raised."""
    return UserError(message, at=at, hint=hint)


def word(value: object, known: Mapping[str, T], what: str, at: Location) -> T:
    """`known[value]`; raises UserError with the nearest words for any other value."""
    if isinstance(value, str) and value in known:
        return known[value]
    raise mistake(f"{what} cannot be {value!r}", at, near(str(value), known))


def whole(value: object, what: str, at: Location) -> int:
    """An int, or a str of decimal digits; raises UserError for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise mistake(f"{what} must be a whole number, not {value!r}", at, f"write {what} = 16")
    return value


def capacity(value: object, at: Location) -> tuple[int, bool]:
    """A map's `cap` and whether it is dynamic."""
    if value == "dynamic":
        return DYNAMIC_CAP, True
    return whole(value, "cap", at), False
