"""Probe code at places inside a function.

Places of one kind get the same code but for names, offsets, labels and their number, so the code
is lowered once, with holes for these, and filled in at each place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from gpuwatch.instrument import helpers, lower
from gpuwatch.instrument.code import Code, Temporaries
from gpuwatch.instrument.exposure import helpers_of
from gpuwatch.instrument.known import fold
from gpuwatch.instrument.model import Site
from gpuwatch.instrument.scene import Scene, Shared
from gpuwatch.instrument.subject import HELPERS, Subject
from gpuwatch.instrument.subject_reader import SubjectReader
from gpuwatch.probe.model import Probe
from gpuwatch.ptx.model import Instruction

_HOLE = "\0%s\0"


@dataclass(slots=True)
class Stop:
    """The probes in front of and behind one statement, in order, each with its number in the
    program and whether it is about the instruction."""

    before: list[tuple[int, bool]] = field(default_factory=list)
    after: list[tuple[int, bool]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Where:
    """A place of the PTX: line of its text, of the source, and "" or the called function."""

    line: int
    source_line: int
    source_file: str
    function: str


class Sites:
    """Lowers the probes of stops and numbers their sites."""

    def __init__(self, shared: Shared, temporaries: Temporaries) -> None:
        self._shared = shared
        self._temporaries = temporaries
        self._probes = shared.program.probes
        self._needed = [HELPERS.intersection(helpers_of(probe.body)) for probe in self._probes]
        self._stencils: dict[tuple[object, ...], _Stencil] = {}
        self.all: list[Site] = []

    def add(self, probe: Probe, opcode: str, where: Where) -> str:
        """Note one more site; its number as text."""
        number = len(self.all)
        self.all.append(
            Site(number, probe.name, opcode, where.line, where.source_line, where.function,
                 probe.before, where.source_file)
        )  # fmt: skip
        return str(number)

    def weave(
        self, stop: Stop, reader: SubjectReader, instruction: Instruction | None, where: Where
    ) -> tuple[str, str]:
        """The code to put in front of a statement and behind it."""
        numbers = [*stop.before, *stop.after]
        needed = frozenset[str]().union(*[self._needed[n] for n, about in numbers if about])
        subject = reader.read(instruction, needed, bool(stop.after)) if instruction else None
        key = (tuple(stop.before), tuple(stop.after), subject.key() if subject else None)
        stencil = self._stencils.get(key)
        if stencil is None:
            stencil = self._stencils[key] = self._lower(stop, subject, where.line)
        texts = subject.texts() if subject else {}
        opcode = subject.opcode if subject else ""
        for place, (number, _) in enumerate(numbers):
            texts[f"site{place}"] = self.add(self._probes[number], opcode, where)
        return stencil.fill(texts, self._shared.names.reserve_labels(stencil.labels))

    def _lower(self, stop: Stop, subject: Subject | None, line: int) -> _Stencil:
        names = self._shared.names
        first = names.labels_given
        self._temporaries.restart()
        front, earlier, back = [Code(names, self._temporaries) for _ in range(3)]
        holed = subject.with_holes(_HOLE) if subject else None
        scenes = [
            Scene(self._shared, self._probes[number], _HOLE % f"site{place}",
                  holed if about else None, line)
            for place, (number, about) in enumerate((*stop.before, *stop.after))
        ]  # fmt: skip
        _run(front, scenes[: len(stop.before)], None)
        _run(back, scenes[len(stop.before) :], earlier)
        names.labels_given = first  # every place has labels of its own
        before, after = [
            fold("\n".join(lines), self._shared.known)
            for lines in ([*front.lines, *earlier.lines], back.lines)
        ]
        return _Stencil(before, after, names.labels, first)


def _run(code: Code, scenes: Sequence[Scene], earlier: Code | None) -> None:
    """The bodies in order, each where the guard of the instruction that it is about holds."""
    for _, together in groupby(scenes, key=lambda scene: scene.subject is not None):
        group = list(together)
        guard = _guard(group[0].subject, earlier)
        if guard:
            with code.skipped_unless(guard):
                _bodies(code, group, earlier)
        else:
            _bodies(code, group, earlier)


def _bodies(code: Code, scenes: Sequence[Scene], earlier: Code | None) -> None:
    for scene in scenes:
        scene.earlier = earlier
        if "active" in helpers_of(scene.probe.body):
            helpers.active(code)
        lower.act(code, scene, scene.probe.body)


def _guard(subject: Subject | None, earlier: Code | None) -> str:
    """The guard of a probe in front of an instruction or (with `earlier`) behind it."""
    if subject is None or not subject.guard or (earlier is not None and not subject.passes):
        return ""
    register = subject.guard
    if earlier is not None and "guard" in subject.overwritten:
        register = earlier.once("guard", "pred", "mov.pred", register)
    return f"!{register}" if subject.negated else register


class _Stencil:
    """Lowered code with holes; `labels` is how many labels it has."""

    def __init__(self, before: str, after: str, prefix: str, first: int) -> None:
        self._parts = [_Part(text, prefix, first) for text in (before, after)]
        self.labels = max([0, *(number for part in self._parts for _, number in part.labels)])

    def fill(self, texts: dict[str, str], first: int) -> tuple[str, str]:
        """The code in front and behind; labels are numbered from `first` + 1."""
        before, after = self._parts
        return before.fill(texts, first), after.fill(texts, first)


class _Part:
    """A text in pieces; `names` and `labels` are its holes, each with its place among them."""

    def __init__(self, text: str, prefix: str, first: int) -> None:
        self._prefix = prefix
        self._pieces: list[str] = []
        self._names: list[tuple[int, str]] = []
        self.labels: list[tuple[int, int]] = []
        position = 0
        for match in re.finditer(rf"\0(\w+)\0|{re.escape(prefix)}(\d+)", text):
            self._pieces += (text[position : match.start()], "")
            place = len(self._pieces) - 1
            if match[1]:
                self._names.append((place, match[1]))
            else:
                self.labels.append((place, int(match[2]) - first))
            position = match.end()
        self._pieces.append(text[position:])

    def fill(self, texts: dict[str, str], first: int) -> str:
        pieces = self._pieces
        for place, name in self._names:
            pieces[place] = texts[name]
        for place, number in self.labels:
            pieces[place] = f"{self._prefix}{first + number}"
        return "".join(pieces)
