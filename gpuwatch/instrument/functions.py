"""Which probes can run in functions that a kernel calls.

Probe registers are the kernel's: a function has its own, which live for one call. So a probe can
run there if what it computes is its own affair, or that of its other half at the same place.
"""

from __future__ import annotations

from gpuwatch.instrument.exposure import flow, groups
from gpuwatch.probe.language import KERNEL
from gpuwatch.probe.model import Probe, Program


def movable(program: Program) -> frozenset[int]:
    """Numbers of the probes that share no register with probes at other places: at
    instructions, and behind the kernel (where a function exits)."""
    parts = [*groups(program), *([one] for one in program.probes if one.position == KERNEL)]
    flows = [flow(part) for part in parts]
    found = set()
    for number, part in enumerate(parts):
        others = flows[:number] + flows[number + 1 :]
        own = flows[number]
        # Nothing runs behind a thread's end, so what is left in registers there is lost anyway.
        ends = part[0].position == KERNEL
        read_elsewhere = any(not own.outward.isdisjoint(other.inward) for other in others)
        if not own.inward and (ends or not read_elsewhere):
            found.update(_numbers(program, part))
    return frozenset(found)


def _numbers(program: Program, part: list[Probe]) -> list[int]:
    return [number for number, probe in enumerate(program.probes) if any(probe is p for p in part)]
