"""Weaving a probe program into one kernel of a module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpuwatch.errors import UserError
from gpuwatch.instrument import calls, exits, lower, text
from gpuwatch.instrument.code import CLASS, DECLARED, Code, Temporaries
from gpuwatch.instrument.edits import Edits
from gpuwatch.instrument.exposure import exposed, leading_clock, set_in_some_lanes, written
from gpuwatch.instrument.layout import field_offsets
from gpuwatch.instrument.model import Site, Woven
from gpuwatch.instrument.names import Names
from gpuwatch.instrument.scene import Scene, Shared
from gpuwatch.instrument.values import literal
from gpuwatch.probe.model import Action, If, Probe, Program, Save
from gpuwatch.ptx.model import (
    Directive,
    Function,
    Instruction,
    Label,
    Loc,
    Module,
    RegisterDeclaration,
    Statement,
    Variable,
)

_HEADER = re.compile(r"^[ \t]*\.(?:version|target|address_size)\b[^\n]*\n", re.MULTILINE)
_LEADING = (RegisterDeclaration, Variable, Loc, Directive)
_EXITS = frozenset({"ret", "exit"})
_ENDS = _EXITS | {"bra", "trap", "brx"}
_LEVELS = frozenset({"thread", "warp"})
_MAP_LEVELS = frozenset({"thread", "warp", "block", "kernel"})


def weave(module: Module, entry: str, program: Program) -> Woven:
    """`module` with the probes of `program` woven into the kernel named exactly `entry`.

    Raises UserError when there is no such kernel, when a probe's position or a map's kind
    cannot be woven, or when a map's record cannot hold its fields.
    """
    function = _find(module, entry)
    _check(program)
    return _Weaver(module, function, program).weave()


def _find(module: Module, entry: str) -> Function:
    for function in module.entries():
        if function.name == entry:
            return function
    names = ", ".join(function.name for function in module.entries())
    raise UserError(
        f"{module.source} has no kernel named {entry}", hint=f"its kernels are: {names or 'none'}"
    )


def _check(program: Program) -> None:
    for map_ in program.maps:
        field_offsets(map_)
        if map_.type != "array" or map_.level not in _MAP_LEVELS:
            raise UserError(
                f"map {map_.name}: {map_.type} maps of level {map_.level} cannot be woven",
                hint="use an array map of level thread, warp, block or kernel",
                at=map_.at,
            )
    for probe in program.probes:
        if probe.position != "kernel" or probe.level not in _LEVELS:
            raise UserError(
                f"probe {probe.name}: position {probe.position} at level {probe.level} "
                "cannot be woven",
                hint='use the position "kernel" at level thread or warp',
                at=probe.at,
            )


class _Weaver:
    """One weaving: collects code per place, then inserts it all in one pass."""

    def __init__(self, module: Module, function: Function, program: Program) -> None:
        self._module = module
        self._function = function
        self._body = function.body or []
        self._program = program
        self._names = Names(module.text)
        self._temporaries = Temporaries(self._names.registers)
        self._shared = Shared.of(function, program, self._names)
        self._shared.saved_once = frozenset(_saved_once(program))
        self._edits = Edits(module.text)
        self._sites: list[Site] = []
        self._before = [probe for probe in program.probes if probe.before]
        self._after = [probe for probe in program.probes if not probe.before]
        self._exposed = exposed((*self._before, *self._after))
        self._departed = 2 * len(program.maps)

    def weave(self) -> Woven:
        owned = [text.declare(self._shared, probe) for probe in self._program.probes]
        first = next((s for s in self._body if not isinstance(s, _LEADING)), None)
        entry_lines = self._enter(first)
        exit_code = list(self._leave())
        declared = [line for lines in owned for line in lines] + self._declarations()
        start = first.start if first else self._function.body_end
        self._edits.before(start, declared + entry_lines)
        for statement, before, after in exit_code:
            self._edits.before(statement.start if statement else self._function.body_end, before)
            if statement:
                self._edits.after(statement.end, after)
        counts = any(probe.level == "warp" for probe in self._after)
        self._declare_pointers(2 * len(self._program.maps) + counts)
        woven, added = self._edits.apply()
        return Woven(
            text=woven,
            entry=self._function.name,
            pointer_variable=self._shared.variable,
            maps=self._program.maps,
            sites=tuple(self._sites),
            inserted_lines=added,
            notes=tuple(self._notes()),
            counts_departures=counts,
            block_private_prefix=self._block_private_prefix(),
        )

    def _block_private_prefix(self) -> str:
        private = all(map_.level in ("thread", "warp", "block") for map_ in self._program.maps)
        return self._names.registers if private else ""

    def _notes(self) -> Iterator[str]:
        if self._after:
            for name in calls.exiting(self._module, self._function):
                yield f"threads that exit inside the function {name} are not recorded"
        partial = set_in_some_lanes(
            [probe for probe in self._before if probe.level == "warp"],
            [probe for probe in self._after if probe.level == "warp"],
        )
        if partial and self._lanes_may_part():
            yield (
                f"only some lanes set {', '.join(partial)}; where they leave before others do, "
                "the warp's record lacks what they held"
            )

    def _lanes_may_part(self) -> bool:
        """Whether the kernel has several ways out, so that a warp's lanes may not leave at once."""
        leaving = [one for one in self._body if isinstance(one, Instruction)]
        leaving = [one for one in leaving if one.opcode in _EXITS]
        return len(leaving) > 1 or any(one.guard for one in leaving)

    def _declare_pointers(self, buffers: int) -> None:
        if not buffers:
            return
        end = max(match.end() for match in _HEADER.finditer(self._module.text))
        self._edits.before(
            end, [f".visible .global .align 8 .u64 {self._shared.variable}[{buffers}];"]
        )

    def _declarations(self) -> list[str]:
        lines = [
            f"\t.reg .{DECLARED[CLASS[value.type]]} \t{value.text};"
            for value in self._shared.registers.values()
        ]
        return lines + self._temporaries.declarations()

    def _code(self) -> Code:
        self._temporaries.restart()
        return Code(self._names, self._temporaries)

    def _scene(self, probe: Probe, statement: Statement | None) -> Scene:
        offset = statement.start if statement else self._function.body_end
        instruction = statement if isinstance(statement, Instruction) else None
        index = len(self._sites)
        opcode = ".".join(instruction.tokens) if instruction else ""
        line = self._module.text.count("\n", 0, offset) + 1
        source_line = instruction.line if instruction else 0
        self._sites.append(Site(index, probe.name, opcode, line, source_line))
        return Scene(self._shared, probe, index, instruction)

    def _enter(self, first: Statement | None) -> list[str]:
        """The entry: a leading clock read, then the initial values that are needed, then the
        rest."""
        code = self._code()
        bodies = [(self._scene(probe, first), probe.body) for probe in self._before]
        read: set[str] = set()
        if bodies:
            scene, body = bodies[0]
            leading, rest = leading_clock(body)
            lower.act(code, scene, leading)
            read = written(leading)
            bodies[0] = scene, rest
        for register in self._program.registers:
            if register.name in self._exposed - read:
                value = self._shared.registers[register.name]
                initial = literal(register.initial, register.type)
                code.emit(f"mov.{register.type} \t{value.text}, {initial}")
        for scene, body in bodies:
            lower.act(code, scene, body)
        return code.lines

    def _leave(self) -> Iterator[tuple[Instruction | None, list[str], list[str]]]:
        """Each exit with the lines in front of it and behind it; None is the body's end."""
        if not self._after:
            return
        for statement in self._body:
            if isinstance(statement, Instruction) and statement.opcode in _EXITS:
                yield statement, *self._leave_at(statement)
        if _falls_through(self._body):
            yield None, *self._leave_at(None)

    def _leave_at(self, statement: Instruction | None) -> tuple[list[str], list[str]]:
        code = self._code()
        guard = statement.guard if statement else None
        scenes = [self._scene(probe, statement) for probe in self._after]
        if guard is None:
            exits.leave(code, scenes, self._departed)
            return code.lines, []
        stay = self._names.label()
        code.emit(f"@{'' if guard.negated else '!'}{guard.register} bra \t{stay}")
        exits.leave(code, scenes, self._departed)
        return code.lines, [f"{stay}:"]


def _falls_through(body: list[Statement]) -> bool:
    """Whether control can run off the end of a body."""
    for statement in reversed(body):
        if isinstance(statement, Label):
            return True
        if isinstance(statement, Instruction):
            return statement.opcode not in _ENDS or statement.guard is not None
    return True


def _saved_once(program: Program) -> Iterator[str]:
    """Maps saved to by one probe at one place of its body, a record per slot at most."""
    for map_ in program.maps:
        savers = [
            probe
            for probe in program.probes
            for action in _flat(probe.body)
            if isinstance(action, Save) and action.map == map_.name
        ]
        if len(savers) == 1 and savers[0].level == map_.level:
            yield map_.name


def _flat(actions: Iterable[Action]) -> Iterator[Action]:
    for action in actions:
        yield action
        if isinstance(action, If):
            yield from _flat((*action.then, *action.otherwise))
