"""Probe code at places inside a function.

Places of one kind get the same code but for names, offsets, labels and their number, so the code
is lowered once, with holes for these, and filled in at each place.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from gpuwatch.instrument import helpers, indices, lower, warp_access
from gpuwatch.instrument.code import Code, Temporaries
from gpuwatch.instrument.exposure import helpers_of
from gpuwatch.instrument.gather import Gathering
from gpuwatch.instrument.known import fold
from gpuwatch.instrument.model import Site
from gpuwatch.instrument.scene import Scene, Shared, Step
from gpuwatch.instrument.subject import Subject
from gpuwatch.instrument.subject_reader import SubjectReader
from gpuwatch.probe.language import BLOCKS, BRANCHES, INSTRUCTION_HELPERS
from gpuwatch.probe.model import Probe, Save
from gpuwatch.ptx.classes import LineMix, Mix
from gpuwatch.ptx.model import Instruction

OF_KEPT: dict[str, Callable[[Code], str]] = {
    "active lanes": indices.active,
    "leads": indices.leads,
    "lane step": warp_access.lane_step,
}
"""What gives the value of each key of KEPT."""
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
    mix: Mix = ()
    """What the basic block that begins there is made of."""
    lines: LineMix = ()
    """The same by source line."""


class Sites:
    """Lowers the probes of stops and numbers their sites."""

    def __init__(
        self,
        shared: Shared,
        temporaries: Temporaries,
        wanted: frozenset[tuple[int, str]] = frozenset(),
    ) -> None:
        self._shared = shared
        self._temporaries = temporaries
        self._probes = shared.program.probes
        self._needed = [
            INSTRUCTION_HELPERS.intersection(helpers_of(probe.body)) for probe in self._probes
        ]
        self._stencils: dict[tuple[object, ...], _Stencil] = {}
        self._first_of_line: dict[tuple[str, str, int], str] = {}
        self._kept: frozenset[str] = frozenset()
        self.gathering: Gathering | None = None
        self.parted: set[int] = set()
        """Statements of the kernel at which the lanes that come may part in what is woven in."""
        self.wanted = wanted
        """Heads, each with a key of KEPT that its blocks have in common."""
        self.missed: set[tuple[int, str]] = set()
        """Those that were found out in a loop all the same."""
        self.all: list[Site] = []

    def add(self, probe: Probe, opcode: str, where: Where) -> str:
        """Note one more site; its number as text."""
        number = len(self.all)
        mix, lines = (where.mix, where.lines) if probe.position == BLOCKS else ((), ())
        self.all.append(
            Site(number, probe.name, opcode, where.line, where.source_line, where.function,
                 probe.before, where.source_file, mix, lines)
        )  # fmt: skip
        return str(number)

    def leave_block(self, known: frozenset[str] = frozenset()) -> None:
        """What places have found out of the lanes that are together holds no longer, but for
        the keys `known` from the block's head."""
        self._kept = known

    def kept_from_heads(self) -> dict[int, frozenset[str]]:
        """By the first statement of each block that has a head, the keys of KEPT found there."""
        convergence = self.gathering.convergence if self.gathering else None
        if convergence is None:
            return {}
        keys: dict[int | None, frozenset[str]] = defaultdict(frozenset)
        for head, key in self.wanted:
            keys[head] |= {key}
        return {
            index: keys[convergence.head(index)]
            for index in convergence.starts
            if convergence.head(index) in keys
        }

    def is_head(self, index: int) -> bool:
        """Whether the block of a statement is a head."""
        convergence = self.gathering.convergence if self.gathering else None
        return convergence is not None and convergence.head(index) == index

    def at_head(self, keys: Collection[str]) -> str:
        """Code that finds out what keys of KEPT stand for."""
        self._temporaries.restart()
        code = Code(self._shared.names, self._temporaries, self._shared.known, frozenset())
        for key, find in OF_KEPT.items():
            if key in keys:
                find(code)
        self._kept = code.kept
        return fold("\n".join(code.lines), self._shared.known)

    def weave(
        self,
        stop: Stop,
        reader: SubjectReader,
        instruction: Instruction | None,
        where: Where,
        index: int = -1,
    ) -> tuple[str, str]:
        """The code to put in front of a statement, of that number in the kernel, and behind it."""
        numbers = [*stop.before, *stop.after]
        needed = frozenset[str]().union(*[self._needed[n] for n, about in numbers if about])
        subject = reader.read(instruction, needed, bool(stop.after)) if instruction else None
        texts = subject.texts() if subject else {}
        opcode = subject.opcode if subject else ""
        steps: list[dict[str, tuple[Step, ...]]] = []
        staying: list[str] = []
        for place, (number, _) in enumerate(numbers):
            probe = self._probes[number]
            site = texts[f"site{place}"] = self.add(probe, opcode, where)
            line = texts[f"line{place}"] = self._line_slot(probe, where, site)
            found = self.gathering.at(number, index, site, line, subject) if self.gathering else {}
            staying += [
                f"\tadd.{one.type} \t{one.register}, {one.register}, 1;"
                for each in found.values()
                for one in each
                if one.adds == "stays"
            ]
            steps.append(
                {name: _with_holes(place, name, one, texts) for name, one in found.items()}
            )
        key = (
            tuple(stop.before), tuple(stop.after), subject.key() if subject else None,
            self._kept, tuple(tuple(one.items()) for one in steps), index >= 0,
        )  # fmt: skip
        stencil = self._stencils.get(key)
        if stencil is None:
            stencil = self._stencils[key] = self._lower(
                stop, subject, where.line, steps, index >= 0
            )
        if self.gathering and index >= 0:
            head = self.gathering.head_of_loop(index)
            if head is not None:
                self.missed |= {(head, key) for key in stencil.kept - self._kept}
        self._kept = stencil.kept
        if stencil.labels and index >= 0:
            self.parted.add(index)
        before, after = stencil.fill(texts, self._shared.names.reserve_labels(stencil.labels))
        return before, "\n".join(filter(None, (after, *staying)))

    def _line_slot(self, probe: Probe, where: Where, site: str) -> str:
        """The number of the probe's first site of the same line, which has the line's slot."""
        if not where.source_line:
            return site
        line = (probe.name, where.source_file, where.source_line)
        return self._first_of_line.setdefault(line, site)

    def _lower(
        self,
        stop: Stop,
        subject: Subject | None,
        line: int,
        steps: Sequence[dict[str, tuple[Step, ...]]],
        own: bool,
    ) -> _Stencil:
        """`own` says that this is in the kernel itself, which a function's registers are not."""
        names = self._shared.names
        first = names.labels_given
        self._temporaries.restart()
        front = Code(names, self._temporaries, self._shared.known, self._kept)
        if self.gathering and self.gathering.below and own:
            front.memo["%lanemask_lt"] = self.gathering.below
        earlier, back = [Code(names, self._temporaries, self._shared.known) for _ in range(2)]
        holed = subject.with_holes(_HOLE) if subject else None
        scenes = [
            Scene(self._shared, self._probes[number], _HOLE % f"site{place}",
                  _HOLE % f"line{place}", holed if about else None, line, steps=steps[place])
            for place, (number, about) in enumerate((*stop.before, *stop.after))
        ]  # fmt: skip
        _run(front, scenes[: len(stop.before)], None)
        _run(back, scenes[len(stop.before) :], earlier)
        names.labels_given = first  # every place has labels of its own
        before, after = [
            fold("\n".join(lines), self._shared.known)
            for lines in ([*front.lines, *earlier.lines], back.lines)
        ]
        stencil = _Stencil(before, after, names.labels, first)
        # Lanes that branched off inside may come back later than the others.
        stencil.kept = frozenset() if stencil.labels or stop.after else front.kept
        return stencil


def _with_holes(
    place: int, name: str, steps: Sequence[Step], texts: dict[str, str]
) -> tuple[Step, ...]:
    """The steps with holes for their registers, which are added to `texts`."""
    holed = []
    for number, step in enumerate(steps):
        texts[f"sum{place}_{name}_{number}"] = step.register
        holed.append(replace(step, register=_HOLE % f"sum{place}_{name}_{number}"))
    return tuple(holed)


def _asked(scene: Scene) -> set[str]:
    """The helpers that a probe asks for at a place."""
    found: set[str] = set()
    for action in scene.probe.body:
        steps = scene.steps.get(action.map) if isinstance(action, Save) else None
        if isinstance(action, Save) and steps is not None:
            kept = [action.values[step.field] for step in steps if step.adds == "value"]
            action = replace(action, values=tuple(kept))
        found |= helpers_of([action])
    return found


def _run(code: Code, scenes: Sequence[Scene], earlier: Code | None) -> None:
    """The bodies in order, each where the guard of the instruction that it is about holds."""
    for _, together in groupby(scenes, key=_held):
        group = list(together)
        guard = _guard(group[0].subject, earlier) if _held(group[0]) else ""
        if guard:
            with code.skipped_unless(guard):
                _bodies(code, group, earlier)
        else:
            _bodies(code, group, earlier)


def _held(scene: Scene) -> bool:
    """Whether the probe runs only where the guard of an instruction holds."""
    return scene.subject is not None and scene.probe.position != BRANCHES


def _bodies(code: Code, scenes: Sequence[Scene], earlier: Code | None) -> None:
    for scene in scenes:
        scene.earlier = earlier
        wanted = _asked(scene)
        for name, of_lanes in helpers.ASKED_FIRST.items():
            if name in wanted:
                of_lanes(code, scene)
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
        self.kept: frozenset[str] = frozenset()
        """Keys of `code.KEPT` that are known behind the code in front."""
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
