"""What both source forms do alike: places, checked words and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TypeVar

from gpuwatch.errors import Location, UserError
from gpuwatch.probe.language import (
    HIST_CAP,
    MAP_TYPES,
    SAMPLE_UNITS,
    SCALES,
    default_size,
    near,
)
from gpuwatch.probe.model import Field, Level, Map, Program, SampleUnit
from gpuwatch.probe.walk import saves

LIMIT = 1 << 62
"""`low` of a histogram is less than this, so that a value's distance from it fits 64 bits."""
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
        return 1, True
    return whole(value, "cap", at), False


def signed(value: object, what: str, at: Location) -> int:
    """An int of at most 63 bits, or a str of one."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,19}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -LIMIT <= value < LIMIT:
        raise mistake(f"{what} must be a whole number, not {value!r}", at, f"write {what} = 0")
    return value


@dataclass(frozen=True, slots=True)
class Given:
    """Keys of a map or probe as either form gives them: literal values, and their places."""

    values: Mapping[str, object]
    at: Callable[[str], Location]

    def word(self, name: str, known: Mapping[str, T], default: T) -> T:
        if name not in self.values:
            return default
        return word(self.values[name], known, name, self.at(name))

    def whole(self, name: str, default: int) -> int:
        if name not in self.values:
            return default
        return whole(self.values[name], name, self.at(name))


def read_map(name: str, level: Level, fields: tuple[Field, ...], given: Given, at: Location) -> Map:
    """A map from its keys, those that are not there with their defaults."""
    kind = given.word("type", MAP_TYPES, MAP_TYPES["array"])
    scale = given.word("scale", SCALES, SCALES["log2"])
    cap, dynamic = (HIST_CAP[scale] if kind == "hist" else 1), False
    if "cap" in given.values:
        cap, dynamic = capacity(given.values["cap"], given.at("cap"))
    low = signed(given.values.get("low", 0), "low", given.at("low"))
    return Map(
        name,
        level,
        kind,
        size=given.whole("size", default_size(kind, fields)),
        cap=cap,
        fields=fields,
        at=at,
        dynamic=dynamic,
        scale=scale,
        low=low,
        step=given.whole("step", 1),
    )


def read_sample(given: Given) -> tuple[int, SampleUnit]:
    """A probe's `sample` and `sample_unit`."""
    unit = given.word("sample_unit", SAMPLE_UNITS, SAMPLE_UNITS["warp"])
    return given.whole("sample", 1), unit


def with_samples(program: Program) -> Program:
    """The program with each map's sample taken from the first probe that saves to it."""
    sampled: dict[str, tuple[int, SampleUnit]] = {}
    for probe in program.probes:
        for save in saves(probe.body):
            sampled.setdefault(save.map, (probe.sample, probe.sample_unit))
    maps = []
    for map_ in program.maps:
        sample, unit = sampled.get(map_.name, (1, map_.sample_unit))
        maps.append(replace(map_, sample=sample, sample_unit=unit))
    return replace(program, maps=tuple(maps))
