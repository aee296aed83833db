"""Source lines whose loads and stores ptxas has split, merged, dropped or added, and those at
which it computes otherwise than the PTX.

What a probe counts are instructions of the PTX; the machine code of the plain build may move the
same bytes by others, so a hardware counter of requests or sectors counts otherwise there. An
access that is there several times, as of an unrolled loop, runs as often as before: it counts
otherwise only if lanes of a warp may run different copies. Where ptxas turns a branch around an
access of shared memory into a guard, each warp executes it, and counters of instructions count it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpuwatch.engine.access_counts import (
    BARRIER,
    FLOP,
    GENERIC,
    GUARDED,
    KINDS,
    MATRIX,
    SHARED_ATOMICS,
    SHARED_LOADS,
    Blocks,
    Counts,
    Place,
    Widths,
    machine_counts,
    ptx_counts,
)
from gpuwatch.engine.lane_rounds import Access, parting_accesses
from gpuwatch.launch.model import Dim3
from gpuwatch.ptx.model import Module
from gpuwatch.toolchain.machine_code import MachineInstruction

_NAMES = {
    "global_loads": "global load",
    "global_stores": "global store",
    "shared_loads": "shared load",
    "shared_stores": "shared store",
}
_MOST_TRIES = 4096
"""Of ways to make a block of machine code out of blocks of PTX."""


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """`function` is "" in the kernel itself, as with sites; `line` is 0 for code without one."""

    map: str
    """The map of the presets that counts such accesses."""
    function: str
    line: int
    reason: str
    unseen: bool = False
    """Whether no probe sees if it runs: accesses that the PTX has not, and operations, of which
    blocks are counted and not lines."""


def marked_lines(
    module: Module, entry: str, block: Dim3, code: Iterable[MachineInstruction]
) -> tuple[MarkedLine, ...]:
    """Of a kernel launched with such blocks and the functions that it calls, in order of lines."""
    kernel = next(one for one in module.entries() if one.name == entry)
    machine, apart = machine_counts(code, module, kernel)
    ptx = _pooled(ptx_counts(module, kernel), apart)
    parting = parting_accesses(kernel, block)
    found = [
        MarkedLine(kind, *place, reason, unseen=kind == FLOP or place not in ptx[kind])
        for kind in (*KINDS, FLOP)
        for place, reason in _Comparison(kind, ptx, machine, parting).reasons()
    ]
    found += [
        MarkedLine(kind, *place, reason, unseen=True)
        for kind in GUARDED
        for place, reason in _guarded(kind, ptx, machine)
    ]
    found += [
        MarkedLine(FLOP, *place, reason, unseen=True) for place, reason in _moved(ptx, machine)
    ]
    return tuple(sorted(found, key=lambda one: (one.line, one.function, one.map)))


def _pooled(counts: Counts, apart: Collection[str]) -> Counts:
    """With functions that ptxas has inlined, so that they have no machine code of their own,
    counted as the kernel's."""
    for of_kind in counts.values():
        for function, line in list(of_kind):
            if function and function not in apart:
                of_kind["", line].update(of_kind.pop((function, line)))
    return counts


def _guarded(kind: str, ptx: Counts, machine: Counts) -> Iterator[tuple[Place, str]]:
    """Accesses of which more have a guard in machine code than in PTX."""
    for place, blocks in machine[GUARDED[kind]].items():
        with_guard, every = _sum([blocks]).total(), _sum([machine[kind][place]]).total()
        before = _sum([ptx[GUARDED[kind]].get(place, {})]).total()
        every_before = _sum([ptx[kind].get(place, {})]).total()
        if with_guard * every_before > before * every or not every_before:
            yield (
                place,
                f"guarded: {before} of {every_before} {_NAMES[kind]}s in PTX, {with_guard} of "
                f"{every} in machine code, where warps without a lane count too",
            )


def _moved(ptx: Counts, machine: Counts) -> Iterator[tuple[Place, str]]:
    """As many operations, but not all of a basic block together, as when one is put off until
    behind a branch that fewer lanes take."""
    for place, blocks in machine[FLOP].items():
        before = ptx[FLOP].get(place, {})
        if _sum([before]) == _sum([blocks]) and not _is_repeated(before, blocks):
            yield (
                place,
                f"moved: {_sum([before])[1]} floating-point operations in PTX and machine code, "
                "there in other basic blocks, which other lanes may run",
            )


class _Comparison:
    """Of one kind of access. Lanes may run different copies of those of `parting`."""

    def __init__(
        self, kind: str, ptx: Counts, machine: Counts, parting: Collection[Access]
    ) -> None:
        self._kind = kind
        self._ptx: Mapping[Place, Blocks] = ptx[kind]
        self._machine: Mapping[Place, Blocks] = machine[kind]
        atomics = machine[SHARED_ATOMICS] if kind == SHARED_LOADS else {}
        self._causes: dict[str, Collection[Place]] = {
            "generic in PTX": ptx[GENERIC],
            "added for a matrix": ptx[MATRIX],
            "added for an mbarrier": ptx[BARRIER],
            "added for an atomic": atomics,
        }
        self._parting = parting

    def reasons(self) -> Iterator[tuple[Place, str]]:
        for function in {place[0] for place in (*self._ptx, *self._machine)}:
            ptx = {place for place in self._ptx if place[0] == function}
            machine = {place for place in self._machine if place[0] == function}
            if self._of_ptx(ptx) == self._of_machine(machine):
                continue  # at most other line numbers
            lost, new = ptx - machine, machine - ptx
            # Those that only one has, if together they are the same, have but other lines.
            moved = _copies(self._of_ptx(lost), self._of_machine(new)) > 0
            for place in ptx & machine if moved else ptx | machine:
                verdict = self._verdict(place)
                if verdict:
                    yield place, self._reason(place, verdict)

    def _of_ptx(self, places: Iterable[Place]) -> Widths:
        return _sum(self._ptx[place] for place in places if place in self._ptx)

    def _of_machine(self, places: Iterable[Place]) -> Widths:
        return _sum(self._machine[place] for place in places if place in self._machine)

    def _verdict(self, place: Place) -> str:
        """What ptxas has done, "" for nothing that changes what is counted."""
        if place not in self._ptx:
            return self._added(place)
        if place not in self._machine:
            return "dropped"
        ptx, machine = self._of_ptx([place]), self._of_machine([place])
        if ptx == machine:
            return ""
        if _copies(ptx, machine) or _is_repeated(self._ptx[place], self._machine[place]):
            parts = not place[0] and (self._kind, place[1]) in self._parting
            return "repeated where lanes may run different copies" if parts else ""
        return _change(ptx, machine)

    def _added(self, place: Place) -> str:
        causes = (cause for cause, places in self._causes.items() if place in places)
        return next(causes, "added by ptxas")

    def _reason(self, place: Place, verdict: str) -> str:
        """split: 1 global load of 16 bytes in PTX, 2 of 4 in machine code"""
        ptx, machine = self._of_ptx([place]), self._of_machine([place])
        if self._kind == FLOP:
            return f"{ptx[1]} floating-point operations in PTX, {machine[1]} in machine code"
        name = _NAMES[self._kind]
        if not ptx:
            return f"{verdict}: no {name} in PTX, {_list(machine)} bytes in machine code"
        (width, count), *others = sorted(ptx.items())
        parts = [f"{count} {name}{'s' if count > 1 else ''} of {width}"]
        parts += [f"{count} of {width}" for width, count in others]
        after = f"{_list(machine)} in machine code" if machine else "none in machine code"
        return f"{verdict}: {_joined(parts)} bytes in PTX, {after}"


def _sum(many: Iterable[Blocks]) -> Widths:
    return sum((widths for blocks in many for widths in blocks.values()), Counter())


def _copies(ptx: Widths, machine: Widths) -> int:
    """How many times the machine code has all of what the PTX has; 0 for no whole number."""
    if not ptx or ptx.keys() != machine.keys():
        return 0
    copies, rest = divmod(machine.total(), ptx.total())
    return copies if not rest and _times(ptx, copies) == machine else 0


def _is_repeated(ptx: Blocks, machine: Blocks) -> bool:
    """Whether the machine code has all that the PTX has and more, and each of its basic blocks is
    made of whole ones of the PTX."""
    if not _sum([ptx]) <= _sum([machine]):
        return False
    parts = {tuple(sorted(widths.items())): widths for widths in ptx.values()}
    biggest = sorted(parts.values(), key=lambda one: -one.total())
    return all(_is_made_of(widths, biggest, [_MOST_TRIES]) for widths in machine.values())


def _is_made_of(whole: Widths, parts: list[Widths], tries: list[int]) -> bool:
    """Whether it is a sum of some of the parts, each as often as needed; False when that takes
    too many tries to tell."""
    if not whole:
        return True
    if not parts or tries[0] <= 0:
        return False
    first, *others = parts
    most = min(whole[width] // count for width, count in first.items())
    for copies in range(most, -1, -1):
        tries[0] -= 1
        if _is_made_of(whole - _times(first, copies), others, tries):
            return True
    return False


def _times(widths: Widths, factor: int) -> Widths:
    return Counter({width: count * factor for width, count in widths.items() if factor})


def _bytes(widths: Widths) -> int:
    return sum(width * count for width, count in widths.items())


def _change(ptx: Widths, machine: Widths) -> str:
    """Of accesses that are no copies of those of the PTX."""
    whole, rest = divmod(_bytes(machine), _bytes(ptx))
    wanted = _times(ptx, whole) if whole and not rest else ptx
    widths = wanted.keys() | machine.keys()
    less = [width for width in widths if machine[width] < wanted[width]]
    more = [width for width in widths if machine[width] > wanted[width]]
    if not more:
        return "some dropped"
    if not less:
        return "repeated, some perhaps dropped"
    if min(more) > max(less):
        return "merged"
    if max(more) < min(less):
        return "split" if machine.total() > wanted.total() else "narrowed"
    return "regrouped"


def _list(widths: Widths) -> str:
    return _joined([f"{count} of {width}" for width, count in sorted(widths.items())])


def _joined(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
