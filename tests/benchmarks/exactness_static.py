"""What PTX and machine code say of a kernel without a run: marked lines, how many instructions."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch.engine.access_counts import with_lines
from gpuwatch.engine.marked_lines import MarkedLine, marked_lines
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.instrument.calls import reached
from gpuwatch.instrument.source_lines import main_file
from gpuwatch.ptx.classes import class_of
from gpuwatch.ptx.model import Instruction, Module
from gpuwatch.toolchain import MachineInstruction, assemble, disassemble, read_machine_code

Marks = dict[str, list[str]]
"""Texts by map."""


def static_of(program: WatchedProgram, mangled: str) -> tuple[Marks, dict[str, int]]:
    """Marks and sizes of the plain build of a kernel that was launched. Raises UserError as the
    toolchain does."""
    module, launch = program.module, program.launch(mangled)
    cubin = assemble(program.toolchain, module.text, program.arch, mangled).cubin
    code = list(read_machine_code(disassemble(program.toolchain, cubin)))
    marks = by_map(marked_lines(module, mangled, launch.block, code))
    return marks, sizes(module, mangled, code)


def by_map(marked: Iterable[MarkedLine]) -> Marks:
    found: Marks = {}
    for one in marked:
        found.setdefault(one.map, []).append(f"line {one.line} {one.reason}")
    return found


def sizes(module: Module, mangled: str, code: Iterable[MachineInstruction]) -> dict[str, int]:
    """Numbers of instructions of a kernel and the functions that it calls."""
    kernel = next(one for one in module.entries() if one.name == mangled)
    functions = (kernel, *reached(module, kernel))
    names = {one.name for one in functions}
    ptx = [one for each in functions for one, _line in with_lines(each, main_file(kernel))]
    machine = sum(_reachable([one for one in code if one.section == name]) for name in names)
    return {"ptx": len(ptx), "moves": sum(map(_moves, ptx)), "machine": machine}


def _reachable(section: list[MachineInstruction]) -> int:
    """Without what fills it up: a branch to itself behind the end, and NOP."""
    names = [one.tokens[0] for one in section if one.tokens[0] != "NOP"]
    return len(names) - (names[-1:] == ["BRA"])


def _moves(one: Instruction) -> bool:
    return class_of(one) == "convert" or one.tokens[:2] == ("ld", "param")
