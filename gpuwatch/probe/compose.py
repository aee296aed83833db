"""Several programs as one: their maps, registers and probes under names that do not clash."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpuwatch.errors import UserError
from gpuwatch.probe.model import (
    Action,
    Assign,
    Binary,
    Expression,
    Helper,
    If,
    Program,
    Ptx,
    Read,
    Save,
    Unary,
)
from gpuwatch.ptx import parse_fragment
from gpuwatch.ptx.model import Instruction

_REGISTER = re.compile(r"%[A-Za-z_$][\w$]*")


def compose(programs: Sequence[Program]) -> Program:
    """One program that runs all of `programs`, at each place in their order.

    Names stay as they are where only one program has them; otherwise a later program's become
    `<program>_<name>` (of a register `%NR0`, `%<program>_NR0`). Locations still point into the
    program's own file. Callbacks are joined by commas.

    Raises UserError for no program, and for the same one twice.
    """
    if not programs:
        raise UserError("there is no probe", hint="name a preset or a probe file")
    if len(programs) == 1:
        return programs[0]
    names = [program.name for program in programs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"there are two probes named {twice}", hint="name each probe once")
    callbacks = [program.callback for program in programs if program.callback]
    taken = _Taken()
    renamed = [_renamed(program, taken) for program in programs]
    return Program(
        name=",".join(names),
        title=" ".join(program.title for program in programs if program.title),
        maps=tuple(map_ for program in renamed for map_ in program.maps),
        registers=tuple(register for program in renamed for register in program.registers),
        probes=tuple(probe for program in renamed for probe in program.probes),
        source=programs[0].source,
        form=programs[0].form,
        callback=",".join(callbacks),
    )


@dataclass(slots=True)
class _Taken:
    """Names that programs so far have."""

    maps: set[str] = field(default_factory=set)
    registers: set[str] = field(default_factory=set)
    probes: set[str] = field(default_factory=set)


def _renamed(program: Program, taken: _Taken) -> Program:
    maps = _fresh(program, [map_.name for map_ in program.maps], taken.maps)
    names = [register.name for register in program.registers]
    registers = _fresh(program, names, taken.registers)
    probes = _fresh(program, [probe.name for probe in program.probes], taken.probes)
    return replace(
        program,
        maps=tuple(replace(one, name=maps[one.name]) for one in program.maps),
        registers=tuple(replace(one, name=registers[one.name]) for one in program.registers),
        probes=tuple(
            replace(one, name=probes[one.name], body=_actions(one.body, maps, registers))
            for one in program.probes
        ),
    )


def _fresh(program: Program, names: Sequence[str], taken: set[str]) -> dict[str, str]:
    """A name for each of `names`, none of them in `taken`; then they are."""
    fresh: dict[str, str] = {}
    prefix = re.sub(r"\W", "_", program.name, flags=re.ASCII)
    for name in dict.fromkeys(names):
        wanted, number = name, 1
        while wanted in taken or wanted in fresh.values() or (number > 1 and wanted in names):
            sign = "%" if name.startswith("%") else ""
            suffix = f"_{number}" if number > 1 else ""
            wanted = f"{sign}{prefix}_{name.removeprefix('%')}{suffix}"
            number += 1
        fresh[name] = wanted
    taken.update(fresh.values())
    return fresh


def _actions(
    actions: Iterable[Action], maps: Mapping[str, str], registers: Mapping[str, str]
) -> tuple[Action, ...]:
    return tuple(_action(action, maps, registers) for action in actions)


def _action(action: Action, maps: Mapping[str, str], registers: Mapping[str, str]) -> Action:
    match action:
        case Assign(target, value):
            return replace(
                action, target=registers.get(target, target), value=_value(value, registers)
            )
        case If(test, then, otherwise):
            return replace(
                action,
                test=_value(test, registers),
                then=_actions(then, maps, registers),
                otherwise=_actions(otherwise, maps, registers),
            )
        case Save(map_, values):
            saved = tuple(_value(value, registers) for value in values)
            return replace(action, map=maps.get(map_, map_), values=saved)
        case Ptx():
            return _ptx(action, registers)


def _value(value: Expression, registers: Mapping[str, str]) -> Expression:
    match value:
        case Read(register):
            return Read(registers.get(register, register))
        case Unary(op, operand):
            return Unary(op, _value(operand, registers))
        case Binary(op, left, right):
            return Binary(op, _value(left, registers), _value(right, registers))
        case Helper(name, arguments):
            return Helper(name, tuple(_value(argument, registers) for argument in arguments))
    return value


def _ptx(ptx: Ptx, registers: Mapping[str, str]) -> Ptx:
    """The text with its registers renamed, read again so that its operands are too."""
    text = _REGISTER.sub(lambda match: registers.get(match[0], match[0]), ptx.text)
    if text == ptx.text:
        return ptx
    again = tuple(one for one in parse_fragment(text, "") if isinstance(one, Instruction))
    return replace(ptx, text=text, instructions=again)
