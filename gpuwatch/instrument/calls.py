"""What happens in functions that a kernel calls, which no probe is woven into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuwatch.ptx.model import Function, Group, Instruction, Module, Operand, Symbol


def exiting(module: Module, function: Function) -> Iterator[str]:
    """Names of the functions within reach of `function` that hold an `exit`.

    Within reach is every function that is named in an operand: called, or its address taken.
    """
    bodies = {one.name: one.body for one in module.functions if one.body is not None}
    seen = {function.name}
    waiting = [function.name]
    while waiting:
        for statement in bodies[waiting.pop()]:
            if not isinstance(statement, Instruction):
                continue
            for name in _names(statement.operands):
                if name in bodies and name not in seen:
                    seen.add(name)
                    waiting.append(name)
    for name, body in bodies.items():
        if name in seen and name != function.name and any(map(_is_exit, body)):
            yield name


def _is_exit(statement: object) -> bool:
    return isinstance(statement, Instruction) and statement.opcode == "exit"


def _names(operands: Iterable[Operand]) -> Iterator[str]:
    for operand in operands:
        match operand:
            case Symbol(name):
                yield name
            case Group(items):
                yield from _names(items)
