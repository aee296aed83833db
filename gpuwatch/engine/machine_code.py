"""Where the machine code of what is watched differs from the PTX that the probe counts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from gpuwatch.engine.access_counts import FLOP, KINDS
from gpuwatch.engine.attach import PlainKernel
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.marked_lines import MarkedLine, marked_lines
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.toolchain import disassemble, read_machine_code


def counts_marked(maps: Collection[str]) -> bool:
    """Whether a probe with maps of these names counts what is marked, as presets do."""
    return not {*KINDS, FLOP}.isdisjoint(maps)


def marks_of(
    program: WatchedProgram, plain: PlainKernel, maps: Collection[str]
) -> tuple[MarkedLine, ...]:
    """The marked lines of a kernel, for maps of these names. Any thread may call this. Raises
    UserError when the machine code cannot be disassembled."""
    text = disassemble(program.toolchain, plain.runner.assembled.cubin)
    launch = plain.launch
    found = marked_lines(program.module, launch.kernel, launch.block, read_machine_code(text))
    return tuple(one for one in found if one.map in maps)


def with_marks(session: Session, frame: Frame) -> Frame:
    """The frame with its marked lines, or with a note of why they are not known."""
    maps = {one.name for one in frame.maps}
    if not counts_marked(maps):
        return frame
    try:
        marked = marks_of(session.program, session.build.plains[frame.mangled], maps)
        return replace(frame, marked=marked)
    except UserError as problem:
        return replace(frame, notes=(*frame.notes, unknown(problem)))


def unknown(problem: UserError) -> str:
    """The note of why no lines are marked."""
    hint = f"; {problem.hint}" if problem.hint else ""
    said = f"lines where machine code differs are not marked: {problem.message}"
    return said + hint
