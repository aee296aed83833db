"""Where the warps of a block stand, for a kernel that does not go on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.sim.faults import Origins
from gpuwatch.device.sim.layout import EXITED_PC, MEETING_PC, WAITING_PC, WarpField
from gpuwatch.device.sim.program import Program
from gpuwatch.ptx.model import Immediate, Module

_MOST_LINES = 8


def standing(
    module: Module, program: Program, warps: NDArray[np.uint8], warp_bytes: int
) -> tuple[str, ...]:
    """Lines such as "warps 0-3: waiting at barrier 0, kernel.cu:12", the first eight.

    `warps` are the suspended warps of the block, `warp_bytes` each.
    """
    origins = Origins(module)
    places: dict[str, list[str]] = {}
    for warp in range(warps.size // warp_bytes):
        first = warp * warp_bytes + WarpField.COUNTERS
        counters = warps[first : first + 128].view(np.uint32)
        living = counters[counters < EXITED_PC]
        for counter in dict.fromkeys(int(c) for c in living):
            whole = (counters[counters < EXITED_PC] == counter).all()
            who = str(warp) if whole else f"{warp} ({_threads(counters == counter)})"
            places.setdefault(_doing(origins, program, counter), []).append(who)
    lines = [f"{_names(who)}: {doing}" for doing, who in places.items()]
    more = len(lines) - _MOST_LINES
    return (*lines[:_MOST_LINES], *([f"and {more} more places"] if more > 0 else []))


def _doing(origins: Origins, program: Program, counter: int) -> str:
    if counter >= WAITING_PC:
        barrier = program.instructions[program.blocks[counter - WAITING_PC].first - 1]
        number = barrier.operands[0]
        name = f"barrier {number.value}" if isinstance(number, Immediate) else "a barrier"
        return f"waiting at {name}, {origins.source_line(barrier)}"
    block = program.blocks[counter % MEETING_PC]
    instruction = program.instructions[block.first]
    if counter >= MEETING_PC:
        name = ".".join(instruction.tokens)
        return f"waiting for lanes of their warp at {name}, {origins.source_line(instruction)}"
    return f"running at {origins.source_line(instruction)}"


def _threads(chosen: NDArray[np.bool_]) -> str:
    lanes = [int(lane) for lane in np.flatnonzero(chosen)]
    return "lanes " + ", ".join(_ranges(lanes))


def _names(who: list[str]) -> str:
    whole = [int(name) for name in who if name.isdecimal()]
    parts = [*_ranges(whole), *(name for name in who if not name.isdecimal())]
    return f"{'warp' if len(who) == 1 else 'warps'} {', '.join(parts)}"


def _ranges(numbers: list[int]) -> list[str]:
    """Runs of consecutive numbers, as "3" or "3-7"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
