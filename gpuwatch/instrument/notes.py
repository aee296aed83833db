"""What the user should know of a weaving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuwatch.instrument.bodies import ENTRY_EXITS, FUNCTION_EXITS, leaving
from gpuwatch.instrument.exposure import kept_by_lane, set_in_some_lanes
from gpuwatch.instrument.matching import Matched
from gpuwatch.probe.language import KERNEL
from gpuwatch.probe.model import Program
from gpuwatch.ptx.model import Function, Instruction


def notes(program: Program, functions: Sequence[Function], matched: Matched) -> Iterator[str]:
    """Code that no probe reaches, and records that may lack something; the kernel comes first
    among the functions."""
    for missed in matched.missed:
        yield missed.message
    for one in matched.left_out:
        yield (
            f"probe {one.probe} shares registers with other places, so {one.sites} "
            f"{_places(one.sites)} in the function {one.function} {_are(one.sites)} left out"
        )
    if matched.unreached:
        yield (
            f"{matched.unreached} {_places(matched.unreached)} behind a jump or an exit that is "
            f"always taken {_are(matched.unreached)} left out"
        )
    if matched.generic:
        yield (
            f"{', '.join(sorted(matched.generic))}: no state space is named, so these are not "
            "meant by a position that names one, though they may access the same memory"
        )
    yield from _exits(program, functions[1:], matched.movable)
    yield from _lanes(program, functions[0])


def _exits(program: Program, called: Sequence[Function], movable: frozenset[int]) -> Iterator[str]:
    stuck = any(
        probe.position == KERNEL and not probe.before and number not in movable
        for number, probe in enumerate(program.probes)
    )
    for one in called if stuck else ():
        if any(leaving(one.body or (), FUNCTION_EXITS)):
            yield f"threads that exit inside the function {one.name} are not recorded"


def _lanes(program: Program, kernel: Function) -> Iterator[str]:
    warps = [one for one in program.probes if one.position == KERNEL and one.level == "warp"]
    partial = set_in_some_lanes(
        [probe for probe in warps if probe.before], [probe for probe in warps if not probe.before]
    )
    body = kernel.body or ()
    ways_out = list(leaving(body, ENTRY_EXITS))
    if partial and (len(ways_out) > 1 or any(one.guard for one in ways_out)):
        yield (
            f"only some lanes set {', '.join(partial)}; where they leave before others do, "
            "the warp's record lacks what they held"
        )
    own = kept_by_lane(program)
    if own and any(one.guard for one in body if isinstance(one, Instruction)):
        yield (
            f"each lane has its own {', '.join(own)}: where the lanes of a warp part, its record "
            "holds those of a lane that ended last"
        )


def _places(count: int) -> str:
    return "place" if count == 1 else "places"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
