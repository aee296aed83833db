"""Links a kernel with the functions that it may call into one Program.

Functions come before their callers, so that lanes which called run on before those that did not.
The instructions of a function exist once; where a call returns to is a register of the function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpuwatch.device.sim import barriers
from gpuwatch.device.sim.blocks import cut
from gpuwatch.device.sim.calls import Lowering, is_builtin
from gpuwatch.device.sim.layout import CODE_WINDOW
from gpuwatch.device.sim.program import (
    CARRY,
    Program,
    align_up,
    place_parameters,
    place_variable,
)
from gpuwatch.device.sim.recursion import FRAME, keep_across_calls, use_frames
from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Function, Instruction, Module, Operand, Symbol
from gpuwatch.ptx.scopes import Flat, flatten

_WORD = re.compile(r"[%$A-Za-z_][\w$]*")
_CODE_STEP = 256
"""From one function's address to the next one's."""


def build_program(module: Module, function: Function) -> Program:
    """The kernel `function` with the module's shared variables laid out first."""
    program = Program(function.name)
    place_parameters(program, function)
    for variable in module.variables:
        place_variable(program, variable)
    graph = _Graph(module, function)
    lowering = Lowering(program, graph.functions, graph.indirect)
    for number, name in enumerate(graph.order):
        recursive = graph.reaches(name, name)
        lowering.add(graph.functions[name], graph.flat(name), number, recursive=recursive)
    _finish(program, graph)
    return program


def code_addresses(module: Module) -> dict[str, int]:
    """The addresses of the module's functions, by name."""
    names = dict.fromkeys(f.name for f in module.functions)
    return {name: CODE_WINDOW + _CODE_STEP * (k + 1) for k, name in enumerate(names)}


def _finish(program: Program, graph: _Graph) -> None:
    if not program.instructions:
        program.instructions.append(Instruction(0, 0, None, ("ret",), ()))
    program.shared_bytes = align_up(program.shared_bytes, 16)
    for name in program.dynamic:
        program.shared[name] = program.shared_bytes
    if any("cc" in i.tokens for i in program.instructions):
        program.registers[CARRY] = "pred"
    barriers.declare_registers(program)
    program.stack_base = align_up(program.local_bytes, 16)
    recursive = {n for n in graph.order if n and graph.reaches(n, n)}
    if recursive:
        program.registers[FRAME] = "b64"
        use_frames(program)
    cut(program)
    if recursive:
        keep_across_calls(program, recursive, graph.reaches)
        cut(program)


class _Graph:
    """Who calls whom, from the kernel on; "" is the kernel."""

    def __init__(self, module: Module, kernel: Function) -> None:
        self.functions = {f.name: f for f in module.functions if f.body is not None}
        self.functions[""] = kernel
        self._flat: dict[str, Flat] = {}
        self._callees: dict[str, set[str]] = {}
        self.indirect = self._address_taken(module)
        """Functions that an indirect call may mean."""
        self.order: list[str] = []
        """Callees first, the kernel last."""
        self._visit("")

    def flat(self, name: str) -> Flat:
        if name not in self._flat:
            self._flat[name] = flatten(self.functions[name])
        return self._flat[name]

    def reaches(self, start: str, goal: str) -> bool:
        """Whether a chain of one or more calls leads from `start` to `goal`."""
        seen: set[str] = set()
        waiting = list(self._callees[start])
        while waiting:
            name = waiting.pop()
            if name == goal:
                return True
            if name not in seen:
                seen.add(name)
                waiting += self._callees[name]
        return False

    def _visit(self, name: str) -> None:
        if name in self._callees:
            return
        self._callees[name] = self._called_by(name)
        for callee in sorted(self._callees[name]):
            self._visit(callee)
        self.order.append(name)

    def _called_by(self, name: str) -> set[str]:
        found: set[str] = set()
        for instruction in self.flat(name).instructions:
            target = isa.called(instruction)
            if target is None:
                continue
            if not isinstance(target, Symbol):
                found |= set(self.indirect)
            elif target.name in self.functions and not is_builtin(target.name):
                found.add(target.name)
        return found

    def _address_taken(self, module: Module) -> dict[str, Function]:
        """Functions whose address stands in a variable or in an instruction other than a call."""
        if not any(f.kind == "func" for f in self.functions.values()):
            return {}
        named: set[str] = set()
        for variable in module.variables:
            named.update(_WORD.findall(variable.initial))
        for function in self.functions.values():
            for statement in function.body or ():
                if isinstance(statement, Instruction) and statement.opcode == "mov":
                    named.update(_symbols(statement.operands[1:]))
        return {n: self.functions[n] for n in sorted(named & self.functions.keys() - {""})}


def _symbols(operands: Iterable[Operand]) -> Iterable[str]:
    return (operand.name for operand in operands if isinstance(operand, Symbol))
