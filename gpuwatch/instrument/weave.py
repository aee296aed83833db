"""Weaving a probe program into one kernel of a module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpuwatch.errors import UserError
from gpuwatch.instrument import lower, saves, slots, text
from gpuwatch.instrument.bodies import (
    ENTRY_EXITS,
    FUNCTION_EXITS,
    Body,
    counting_only,
    leaving,
)
from gpuwatch.instrument.calls import reached
from gpuwatch.instrument.clocks import entry_clocks, read_at_the_end_only, short
from gpuwatch.instrument.code import CLASS, DECLARED, Temporaries
from gpuwatch.instrument.edits import Edits
from gpuwatch.instrument.exposure import (
    exposed,
    helpers_of,
    leading_clock,
    written,
)
from gpuwatch.instrument.gather import Gathering, gathered_maps
from gpuwatch.instrument.known import known_registers
from gpuwatch.instrument.layout import field_offsets, slots_at_sites
from gpuwatch.instrument.marks import marks
from gpuwatch.instrument.matching import match
from gpuwatch.instrument.model import Dim3, Woven
from gpuwatch.instrument.names import Names
from gpuwatch.instrument.notes import notes
from gpuwatch.instrument.packing import Packed, pack
from gpuwatch.instrument.pointers import declare_pointers, pointer_space
from gpuwatch.instrument.reductions import blocks_commute
from gpuwatch.instrument.scene import Shared
from gpuwatch.instrument.sites import Sites
from gpuwatch.instrument.source_lines import main_file
from gpuwatch.instrument.values import literal
from gpuwatch.probe.language import KERNEL, PROBE_LEVELS, copy_bytes
from gpuwatch.probe.model import Probe, Program
from gpuwatch.probe.walk import saves as saves_of
from gpuwatch.ptx.affine import lane_strides
from gpuwatch.ptx.collector import collector_paused
from gpuwatch.ptx.convergence import Convergence, converge
from gpuwatch.ptx.model import Function, Instruction, Module

_REDUX = 80
"""The first generation with `redux.sync` (PTX ISA 9.0)."""
_MOST_TRIES = 4
"""How often at most the kernel is woven to learn where what is woven in may part lanes."""
_BOUNDING = frozenset({"minnctapersm", "maxnreg", "maxnctapersm"})
_SHAPING = frozenset({"maxntid", "reqntid"})


def weave(
    module: Module,
    entry: str,
    program: Program,
    shape: tuple[Dim3, Dim3] | None = None,
    *,
    residents: int = 0,
    brief: bool = False,
) -> Woven:
    """`module` with the probes of `program` woven into the kernel named exactly `entry`, and into
    the functions that it calls as far as the probes' registers allow. With `shape`, grid and
    block of the launch, what is woven holds for launches of that shape only, and costs less; with
    `residents` too, ptxas is told to leave room for so many blocks on an SM, if the kernel says
    nothing of it itself. `brief` says that no thread runs for 2^32 cycles: what is woven in then
    takes a register less, and records may be packed.

    Raises UserError when there is no such kernel, when a probe's position matches nothing, when a
    helper cannot be had there, or when a map's record cannot hold its fields.
    """
    function = _find(module, entry)
    _check(program)
    packed = pack(program) if brief else Packed(program, {})
    woven = _woven(module, function, packed.program, shape, residents, brief=brief)
    return replace(woven, maps=program.maps, stored=packed.stored)


def _woven(
    module: Module,
    function: Function,
    program: Program,
    shape: tuple[Dim3, Dim3] | None,
    residents: int,
    *,
    brief: bool,
) -> Woven:
    known = known_registers(*shape) if shape else {}
    with collector_paused():
        wanted = _asks_for_lanes(program) or _counts(program)
        strides = lane_strides(function, shape[1]) if shape and wanted else {}
        bounds = _bounds(function, shape[1], residents) if shape and residents else ""
        parted, missed = frozenset[int](), frozenset[tuple[int, str]]()
        for _ in range(_MOST_TRIES):
            weaver = _Weaver(module, function, program, known, strides, brief, parted, missed)
            woven = weaver.weave(bounds)
            if weaver.parted <= parted and weaver.missed <= missed:
                return woven
            parted, missed = parted | weaver.parted, missed | weaver.missed
        return _Weaver(module, function, program, known, strides, brief, None).weave(bounds)


def _bounds(function: Function, block: Dim3, residents: int) -> str:
    """Directives for so many blocks on an SM (PTX ISA 9.0, "Performance-Tuning Directives")."""
    own = {one.split()[0].lstrip(".") for one in function.directives}
    if own & _BOUNDING:
        return ""
    shape = "" if own & _SHAPING else f".maxntid {', '.join(map(str, block))} "
    return f"{shape}.minnctapersm {residents}"


def _asks_for_lanes(program: Program) -> bool:
    wanted = {"sectors", "bank_conflicts"}
    return any(wanted & helpers_of(probe.body) for probe in program.probes)


def _counts(program: Program) -> bool:
    return any(map_.type == "reduce" and map_.adds_up for map_ in program.maps)


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
    for probe in program.probes:
        if probe.level not in PROBE_LEVELS:
            raise UserError(
                f"probe {probe.name} at level {probe.level} cannot be woven",
                hint="instructions are run by threads and warps: use level thread or warp",
                at=probe.at,
            )


class _Weaver:
    """One weaving: collects code per place, then inserts it all in one pass."""

    def __init__(
        self,
        module: Module,
        function: Function,
        program: Program,
        known: Mapping[str, str],
        strides: Mapping[str, int | None],
        brief: bool,
        parting: frozenset[int] | None,
        wanted: frozenset[tuple[int, str]] = frozenset(),
    ) -> None:
        """`parting` are the statements at which lanes may part in what is woven in; None where
        that is not known. `wanted` is what heads have to find out of their lanes."""
        self._module = module
        self._function = function
        self._program = program
        self._names = Names(module.text)
        self._temporaries = Temporaries(self._names.registers)
        self._shared = Shared.of(program, self._names)
        self._shared.known = known
        self._shared.has_redux = _generation(module.target) >= _REDUX
        self._strides = strides
        self._parting = parting
        self._convergence: Convergence | None = None
        self._shared.saved_once = frozenset(_saved_once(program))
        self._shared.marks = marks(program, self._shared.saved_once)
        self._sites = Sites(self._shared, self._temporaries, wanted)
        kernel = [probe for probe in program.probes if probe.position == KERNEL]
        self._before = [probe for probe in kernel if probe.before]
        self._after = [probe for probe in kernel if not probe.before]
        self._counts = any(probe.level == "warp" for probe in self._after)
        self._functions = [function, *reached(module, function)]
        if brief and len(self._functions) == 1:
            self._shared.short = read_at_the_end_only(program, entry_clocks(program))
        self._matched = match(program, self._functions)
        self._kept: list[str] = []

    def weave(self, bounds: str) -> Woven:
        owned = [line for one in self._program.probes for line in text.declare(self._shared, one)]
        buffers = self._shared.buffers.departed + self._counts
        alone = len(self._functions) == 1
        self._shared.pointer_space = pointer_space(self._module, self._function, buffers, alone)
        main = self._body(self._function)
        entry_lines = self._enter(main)
        found = self._matched.found
        self._sites.gathering = gathering = self._gathering()
        main.weave(found[self._function.name], self._after, ENTRY_EXITS, falls=True)
        if gathering:
            entry_lines += gathering.clear()
        others = [(self._body(one), one) for one in self._functions[1:]]
        for body, function in others:
            ending = self._ending() if any(leaving(function.body or (), FUNCTION_EXITS)) else ()
            body.weave(found[function.name], ending, FUNCTION_EXITS, falls=False)
        declared = owned + self._declarations()
        edits = Edits(self._module.text)
        declare_pointers(edits, self._module, self._function, self._shared, buffers)
        edits.before(self._function.body_start - 1, bounds)
        main.insert(edits, declared + entry_lines)
        for body, _ in others:
            body.insert(edits, declared if body.woven else ())
        woven, added = edits.apply()
        for number, map_ in enumerate(self._program.maps):
            size = copy_bytes(map_, slots_at_sites(map_, len(self._sites.all)))
            woven = woven.replace(saves.COPY_SIZE % number, str(size))
        return Woven(
            text=woven,
            entry=self._function.name,
            pointer_variable=self._shared.variable,
            maps=self._program.maps,
            sites=tuple(self._sites.all),
            inserted_lines=added,
            notes=tuple(notes(self._program, self._functions, self._matched)),
            counts_departures=self._counts,
            block_private_prefix=self._block_private_prefix(),
            left_out=tuple(self._matched.left_out),
            takes_pointers=self._shared.pointer_space == "param",
            marks=self._shared.marks,
        )

    def _body(self, function: Function) -> Body:
        file = main_file(self._function)
        strides = self._strides if function is self._function else {}
        shared, temporaries = self._shared, self._temporaries
        return Body(self._module, function, shared, temporaries, self._sites, file, strides)

    @property
    def missed(self) -> frozenset[tuple[int, str]]:
        """What heads should have found out of their lanes."""
        return frozenset(self._sites.missed)

    def _ending(self) -> list[Probe]:
        """The probes behind the kernel where a called function exits."""
        ending = []
        for probe in self._after:
            if self._program.probes.index(probe) in self._matched.movable:
                ending.append(probe)
            elif probe.level == "warp":
                ending.append(counting_only(probe))
        return ending

    def _block_private_prefix(self) -> str:
        private = all(map(blocks_commute, self._program.maps))
        return self._names.registers if private else ""

    def _declarations(self) -> list[str]:
        lines = [
            f"\t.reg .{DECLARED[CLASS[value.type]]} \t{value.text};"
            for value in self._shared.registers.values()
        ]
        lines += [
            f"\t.reg .b32 \t{short(self._shared.registers[name])};"
            for name in sorted(self._shared.short)
        ]
        gathering = self._sites.gathering
        sums = gathering.declarations() if gathering else []
        return lines + self._kept + sums + self._temporaries.declarations()

    def _gathering(self) -> Gathering | None:
        """What can be summed up in registers: nothing where a called function, which does not
        see them, ends threads."""
        if any(any(leaving(one.body or (), FUNCTION_EXITS)) for one in self._functions[1:]):
            return None
        found = self._matched.found[self._function.name]
        probes = [self._program.probes[number] for number in found]
        if not any(any(gathered_maps(self._shared, probe)) for probe in probes):
            return None
        if self._parting is not None:
            self._convergence = converge(self._function, self._strides, self._parting)
        body = self._function.body or ()
        gathering = Gathering(self._shared, body, self._convergence, self._strides)
        gathering.choose(found)
        return gathering if gathering.chosen else None

    @property
    def parted(self) -> frozenset[int]:
        """Where lanes that run together may part in what was woven in, if that matters."""
        if self._sites.gathering is None or self._convergence is None:
            return frozenset()
        return frozenset(self._sites.parted)

    def _enter(self, body: Body) -> list[str]:
        """The entry: a leading clock read, then the initial values that are needed, then the
        rest."""
        code, labels = body.code(), self._shared.names.labels_given
        bodies = [(body.scene(probe, body.first), probe.body) for probe in self._before]
        read: set[str] = set()
        if bodies and bodies[0][0].probe.sample == 1:
            scene, actions = bodies[0]
            leading, rest = leading_clock(actions)
            lower.act(code, scene, leading)
            read = written(leading)
            bodies[0] = scene, rest
        if len(self._functions) == 1:  # functions have no registers of the kernel
            self._kept = slots.keep_sampled(code, self._shared)
        needed = exposed(self._program) - read
        for register in self._program.registers:
            if register.name in needed:
                value = self._shared.registers[register.name]
                initial = literal(register.initial, register.type)
                code.emit(f"mov.{register.type} \t{value.text}, {initial}")
        for scene, actions in bodies:
            lower.act(code, scene, actions)
        if self._shared.names.labels_given > labels:
            statements = self._function.body or ()
            first = (k for k, one in enumerate(statements) if isinstance(one, Instruction))
            self._sites.parted.add(next(first, 0))
        return code.lines


def _generation(target: str) -> int:
    """The number in "sm_90a"."""
    digits = re.search(r"\d+", target)
    return int(digits[0]) if digits else 0


def _saved_once(program: Program) -> Iterator[str]:
    """Maps saved to by one probe at one place of its body, a record per slot at most."""
    for map_ in program.maps:
        savers = [
            probe
            for probe in program.probes
            for save in saves_of(probe.body)
            if save.map == map_.name
        ]
        if len(savers) == 1 and savers[0].position == KERNEL and savers[0].level == map_.level:
            yield map_.name
