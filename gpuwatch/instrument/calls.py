"""Functions within a kernel's reach."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Directive, Function, Instruction, Module, Register

_NAME = re.compile(r"[%$A-Za-z_][\w$]*")
_MOVED_NAME = re.compile(r"mov\.[bu]64\s+[%$\w]+\s*,\s*([$A-Za-z_][\w$]*)")


def reached(module: Module, function: Function) -> list[Function]:
    """The functions with a body that `function` may call, in the order of the module.

    A function counts if it is called or its address taken, by `function` or by another that
    counts. When a pointer is called, so does every function that a variable of the module names:
    the pointer may have been read from it.
    """
    callees = {one.name: one for one in module.functions if one.kind == "func" and one.body}
    if not callees:
        return []
    aliases = _aliases(module)
    seen: set[str] = set()
    waiting = [function]
    while waiting:
        for name in _named(module, waiting.pop()):
            name = aliases.get(name, name)
            if name in callees and name not in seen:
                seen.add(name)
                waiting.append(callees[name])
    return [one for one in callees.values() if one.name in seen]


def _named(module: Module, function: Function) -> Iterator[str]:
    """Names that may be functions' in a body."""
    by_pointer = False
    for one in function.body or ():
        if isinstance(one, Directive) and one.name == "calltargets":
            yield from one.words
        if not isinstance(one, Instruction):
            continue
        if one.opcode == "mov":
            if match := _MOVED_NAME.search(module.text, one.start, one.end):
                yield match[1]
        elif one.opcode == "call":
            target = isa.called(one)
            by_pointer |= isinstance(target, Register)
            if target:
                yield target.name
    if by_pointer:
        for variable in module.variables:
            yield from _NAME.findall(variable.initial)


def _aliases(module: Module) -> dict[str, str]:
    """What each `.alias name, function;` stands for."""
    found = {}
    for one in module.statements:
        match one:
            case Directive(name="alias", words=(name, function)):
                found[name] = function
    return found
