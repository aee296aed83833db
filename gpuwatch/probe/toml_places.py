"""A TOML text, and where its keys and values stand, which `tomllib` does not tell.

The scanner walks a text that `tomllib` has already accepted, so it can be brief.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch.errors import Location
from gpuwatch.probe.reading import SourceText, mistake

Path = tuple[str, ...]
Table = Mapping[str, object]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_DOTTED = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_TABLE = re.compile(rf"[ \t]*\[\[?[ \t]*({_DOTTED})")
_KEY = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=[ \t]*")
_STRING = re.compile(
    r'"""(?P<basic>(?:[^\\]|\\[\s\S])*?)"""(?!")'
    r"|'''(?P<literal>[\s\S]*?)'''(?!')"
    r'|"(?P<line>(?:[^"\\\n]|\\.)*)"'
    r"|'(?P<quote>[^'\n]*)'"
)
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_IN_ARRAY = re.compile(_STRING.pattern.replace("?P<", "?P<_") + r"|#[^\n]*|[\[\]{}]|[^\"'#\[\]{}]+")


def read_document(source: SourceText) -> Table:
    """The values of the text; raises UserError with the place of what is no TOML."""
    try:
        return tomllib.loads(source.text)
    except ValueError as error:
        message = str(error)
        match = _PLACE.search(message)
        at = source.at(len(source.text.rstrip()) if match else 0)
        if match and match[1]:
            line, column = int(match[1]), int(match[2])
            lines = source.text.split("\n")
            at = Location(source.file, line, column, lines[line - 1])
        message = _PLACE.sub("", message)
        raise mistake(f"this is not TOML: {message}", at, "correct the syntax") from error
    except RecursionError as error:
        raise mistake("the file is nested too deeply", source.at(0), "nest less") from error


@dataclass(frozen=True, slots=True)
class Place:
    """Offsets of a key, and of its value's text: of a string, what is between the quotes."""

    key: int
    start: int
    end: int


class Places:
    """Places of all keys outside inline tables; what is inside one has its table's place."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self._text = source.text
        self._found: dict[Path, Place] = {}
        self._scan()

    def of(self, *path: str) -> Place:
        """Place of the key at `path`, or of the nearest table around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._found:
                return self._found[path[:length]]
        return Place(0, 0, 0)

    def at(self, *path: str) -> Location:
        return self.source.at(self.of(*path).key)

    def _scan(self) -> None:
        text, position = self._text, 0
        table: Path = ()
        while position < len(text):
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
            if match := _TABLE.match(text, position):
                table = _parts(match[1])
                self._found[table] = Place(match.start(1), match.start(1), match.end(1))
            elif match := _KEY.match(text, position):
                start, stop, behind = self._value(match.end(), end)
                for length in range(1, len(parts := _parts(match[1])) + 1):
                    place = Place(match.start(1), start, stop)
                    self._found.setdefault((*table, *parts[:length]), place)
                end = text.find("\n", behind)
                end = len(text) if end < 0 else end
            position = end + 1

    def _value(self, position: int, line_end: int) -> tuple[int, int, int]:
        """Start and end of the value's text, and the offset just behind the value."""
        if match := _STRING.match(self._text, position):
            start, end = match.span(match.lastgroup or 0)
            multiline = match.lastgroup in ("basic", "literal")
            # A line break right behind the opening quotes is not part of the value.
            leads = multiline and self._text.startswith("\n", start)
            return start + leads, end, match.end()
        if self._text[position : position + 1] not in ("[", "{"):
            return position, line_end, line_end
        depth, at = 0, position
        while at < len(self._text) and (match := _IN_ARRAY.match(self._text, at)):
            at = match.end()
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
            if depth == 0:
                break
        return position, at, at


def _parts(dotted: str) -> Path:
    return tuple([part.strip("\"'") for part in re.findall(_PART, dotted)])
