"""The places of all probes of a program in a kernel and in the functions that it calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwatch.errors import UserError
from gpuwatch.instrument import positions
from gpuwatch.instrument.functions import movable
from gpuwatch.instrument.model import LeftOut
from gpuwatch.instrument.positions import Found
from gpuwatch.instrument.source_lines import main_file
from gpuwatch.instrument.unmatched import unmatched
from gpuwatch.probe.language import KERNEL
from gpuwatch.probe.model import Program
from gpuwatch.ptx.model import Function


@dataclass(slots=True)
class Matched:
    """`found` has the places by function, then by the probe's number in the program."""

    found: dict[str, dict[int, Found]]
    movable: frozenset[int]
    """Probes, by number, that can run in functions that the kernel calls."""
    left_out: list[LeftOut] = field(default_factory=list)
    unreached: int = 0
    """Places behind instructions that no thread ever passes."""
    generic: set[str] = field(default_factory=set)
    """Opcodes that no position means, but that may access memory of the state space of one."""
    missed: list[UserError] = field(default_factory=list)
    """What to say of each position that matches nothing."""


def match(program: Program, functions: Sequence[Function]) -> Matched:
    """Looks for the places of all probes in the kernel, which comes first, and in the others.

    Raises UserError when no position matches anything but that of probes at the kernel's begin
    and end; one among others that does not is told in the notes.
    """
    file = main_file(functions[0])
    matched = Matched({one.name: {} for one in functions}, movable(program))
    for number, probe in enumerate(program.probes):
        if probe.position == KERNEL:
            continue
        places, unreached = 0, 0
        for one in functions:
            here = positions.find(probe.position, probe.before, one, file)
            places += len(here.places)
            unreached += here.unreached
            matched.generic |= here.generic
            if one is functions[0] or number in matched.movable:
                matched.found[one.name][number] = here
            elif here.places:
                matched.left_out.append(LeftOut(probe.name, one.name, len(here.places)))
        if not places:
            matched.missed.append(unmatched(probe, functions, unreached))
        else:
            matched.unreached += unreached
    at_instructions = sum(probe.position != KERNEL for probe in program.probes)
    if matched.missed and len(matched.missed) == at_instructions:
        raise matched.missed[0]
    return matched
