"""The binary form of one launch's maps: how it is read and checked. README.md describes it."""

from __future__ import annotations

import json
import mmap
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwatch.errors import UserError
from gpuwatch.instrument.model import Dim3
from gpuwatch.trace.binary import EXTENSION, HEADER, MAGIC, SECTION, VERSION
from gpuwatch.trace.facts import LaunchFacts
from gpuwatch.trace.values import Values

MOST_MAPS = 1024
_MOST_TEXT = 16 << 20
"""Bytes of the extension's text."""


@dataclass(frozen=True, slots=True)
class Section:
    """As in the file: `divisor` threads share a slot, 0 where slots do not follow from the grid.
    `offset` is that of the first slot in the file."""

    slot_bytes: int
    divisor: int
    offset: int


@dataclass(frozen=True, slots=True)
class MapEntry:
    """What the extension says of a map: `count` is the number of saves in each slot where all
    have the same, else they lie at byte `counts_at`; `offsets_at` is -1 but for dynamic maps."""

    name: str
    slots: int
    count: int
    counts_at: int
    offsets_at: int


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """One launch's maps. `memory` (uint8) is the file, mapped; `entries` is None in a file that
    another tool wrote, without an extension."""

    path: Path
    grid: Dim3
    block: Dim3
    shared_bytes: int
    sections: tuple[Section, ...]
    entries: tuple[MapEntry, ...] | None
    facts: LaunchFacts
    memory: NDArray[np.uint8]

    def piece(self, offset: int, size: int, what: str) -> NDArray[np.uint8]:
        """`size` bytes at `offset`. Raises UserError where the file does not have them."""
        if offset < 0 or offset + size > len(self.memory):
            raise self.wrong(
                f"{what} would end at byte {offset + size:,}, the file has {len(self.memory):,}"
            )
        return self.memory[offset : offset + size]

    def wrong(self, what: str) -> UserError:
        """The error for a file that is not as it should be."""
        return wrong(self.path, what)


def wrong(path: Path, what: str) -> UserError:
    return UserError(
        f"{path}: {what}",
        hint="the file is cut off or was altered: copy the trace again, or record it again",
    )


def open_result(path: Path) -> Result:
    """Maps a result file and reads what stands before its slots.

    Raises UserError, with what is wrong and where, for a file that cannot be one.
    """
    memory = _mapped(path)
    if len(memory) < HEADER.size:
        raise wrong(path, f"the header takes {HEADER.size} bytes, the file has {len(memory)}")
    gx, gy, gz, bx, by, bz, shared, count = HEADER.unpack(memory[: HEADER.size].tobytes())
    grid, block = (gx, gy, gz), (bx, by, bz)
    if min(*grid, *block, shared) < 0:
        raise wrong(path, f"byte 0: a negative number in the header: {grid}, {block}, {shared}")
    end = HEADER.size + SECTION.size * count
    if not 0 <= count <= MOST_MAPS or end > len(memory):
        raise wrong(path, f"byte 28: {count} maps do not fit a file of {len(memory):,} bytes")
    table = memory[HEADER.size : end].tobytes()
    sections = tuple(Section(*values) for values in SECTION.iter_unpack(table))
    for number, section in enumerate(sections):
        if not end <= section.offset <= len(memory):
            place = HEADER.size + SECTION.size * number + 8
            raise wrong(
                path,
                f"byte {place}: map {number} would begin at byte {section.offset:,}, "
                f"the file has {len(memory):,}",
            )
    entries, facts = _extension(path, memory, end, sections)
    return Result(path, grid, block, shared, sections, entries, facts, memory)


def _mapped(path: Path) -> NDArray[np.uint8]:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not block
        try:
            state = os.fstat(file)
            if not stat.S_ISREG(state.st_mode):
                raise wrong(path, "it is no plain file")
            if state.st_size == 0:
                return np.empty(0, np.uint8)
            mapping = mmap.mmap(file, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(file)
    except OSError as problem:
        raise UserError(
            f"cannot read {path}: {problem.strerror}", hint="name a file of a trace's result/"
        ) from problem
    return np.frombuffer(mapping, np.uint8)


def _extension(
    path: Path, memory: NDArray[np.uint8], at: int, sections: tuple[Section, ...]
) -> tuple[tuple[MapEntry, ...] | None, LaunchFacts]:
    first = min((section.offset for section in sections), default=len(memory))
    start = at + EXTENSION.size
    if first < start or memory[at : at + len(MAGIC)].tobytes() != MAGIC:
        return None, LaunchFacts()
    _, size = EXTENSION.unpack(memory[at:start].tobytes())
    if size > min(first - start, _MOST_TEXT):
        raise wrong(path, f"byte {at + 8}: a text of {size:,} bytes does not fit before the slots")
    try:
        document = json.loads(memory[start : start + size].tobytes())
    except (ValueError, RecursionError) as problem:
        raise wrong(path, f"byte {start}: the text is not JSON: {problem}") from problem
    values = Values(document, f"{path}, text at byte {start}")
    if (version := values.whole("version", least=1)) != VERSION:
        raise UserError(
            f"{path} is of version {version}, this gpuwatch reads {VERSION}",
            hint="use the gpuwatch that recorded it, or a newer one",
        )
    entries = tuple(_entry(values) for values in values.tables("maps"))
    if len(entries) != len(sections):
        raise wrong(path, f"byte {start}: {len(entries)} maps described, {len(sections)} there")
    instructions = values.whole("thread_instructions", default=-1, least=-1)
    return entries, LaunchFacts(
        kernel=values.text("kernel"),
        number=values.whole("number"),
        kernel_seconds=values.real("kernel_seconds"),
        thread_instructions=None if instructions < 0 else instructions,
        printed=values.text("printed", lines=True),
        modelled=values.truth("modelled"),
    )


def _entry(values: Values) -> MapEntry:
    return MapEntry(
        name=values.text("name"),
        slots=values.whole("slots"),
        count=values.whole("count", default=0, most=(1 << 32) - 1),
        counts_at=values.whole("counts_at", default=-1, least=-1),
        offsets_at=values.whole("offsets_at", default=-1, least=-1),
    )
