"""The verifier: what a program must keep to before it comes near a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwatch.errors import Location, UserError
from gpuwatch.probe.language import (
    CALLS,
    LEVELS,
    MAP_TYPES,
    NAMES,
    PROBE_LEVELS,
    TYPE_BYTES,
    near,
    record_bytes,
)
from gpuwatch.probe.model import (
    Action,
    Assign,
    Binary,
    Expression,
    Helper,
    If,
    Level,
    Map,
    Probe,
    Program,
    Ptx,
    Read,
    Save,
    Unary,
)
from gpuwatch.probe.verify_ptx import OwnRegisters, verify_ptx

MAX_RECORD_BYTES = 1 << 16
MAX_SLOT_BYTES = 1 << 30

WIDTH: dict[Level, int] = {"thread": 0, "warp": 1, "block": 2, "sm": 3, "kernel": 4, "site": 4}
"""How much of a launch a slot is for. A probe saves to maps at least as wide as itself."""

_OPCODES = r"[A-Za-z_]\w*(?:(?:\.|::)\w+)*"
POSITION = re.compile(rf"kernel|line:[1-9]\d{{0,6}}|[$%]\w[\w$]*|{_OPCODES}(?::{_OPCODES})*")


def verify(program: Program) -> None:
    """Raises UserError, with the place, for the first rule that the program breaks.

    Rules: known types, levels and positions; a record holds its fields and is a multiple of 4
    bytes; at least one record per slot; a save gives every field of an existing map that is not
    narrower than the probe; registers are declared; PTX texts only compute (`verify_ptx`).
    """
    maps: dict[str, Map] = {}
    for map_ in program.maps:
        _verify_map(map_)
        maps[map_.name] = map_
    for register in program.registers:
        if register.type not in TYPE_BYTES:
            raise UserError(
                f"register {register.name} has unknown type {register.type}",
                hint=near(register.type, TYPE_BYTES),
            )
    if not program.probes:
        raise UserError(
            "the program has no probe",
            hint="add an @probe function, or a [probe.NAME] table",
            at=Location(program.source, 1),
        )
    for probe in program.probes:
        _ProbeVerifier(program, probe, maps).verify()


def _verify_map(map_: Map) -> None:
    need = record_bytes(map_.fields) if all(f.type in TYPE_BYTES for f in map_.fields) else 0
    size = -(-need // 4) * 4
    rules = (
        (map_.level in LEVELS, f"unknown level {map_.level}", near(map_.level, LEVELS)),
        (map_.type in MAP_TYPES, f"unknown type {map_.type}", near(map_.type, MAP_TYPES)),
        (bool(map_.fields), "no fields", "name what a record holds: start: nl.u64"),
        (need > 0 or not map_.fields, "a field of unknown type", near("", TYPE_BYTES)),
        (map_.size >= need, f"records of {map_.size} bytes, its fields take {need}",
         f"give it size={size} or more"),
        (map_.size % 4 == 0, f"records of {map_.size} bytes, which is no multiple of 4",
         f"give it size={-(-map_.size // 4) * 4}"),
        (map_.size <= MAX_RECORD_BYTES, f"records of {map_.size} bytes",
         f"a record has at most {MAX_RECORD_BYTES} bytes"),
        (map_.cap >= 1, f"room for {map_.cap} records", "give it cap=1 or more"),
        (map_.slot_bytes <= MAX_SLOT_BYTES, f"slots of {map_.slot_bytes} bytes",
         f"size times cap is at most {MAX_SLOT_BYTES}"),
    )  # fmt: skip
    for kept, message, hint in rules:
        if not kept:
            raise UserError(f"map {map_.name} has {message}", hint=hint, at=map_.at)


class _ProbeVerifier:
    def __init__(self, program: Program, probe: Probe, maps: dict[str, Map]) -> None:
        self._program = program
        self._probe = probe
        self._maps = maps
        self._shared = {register.name for register in program.registers}
        # Both halves of a TOML probe carry its name and share what either declares.
        self._own = OwnRegisters(
            self._shared,
            [
                declaration
                for half in program.probes
                if half.name == probe.name
                for action in half.body
                if isinstance(action, Ptx)
                for declaration in action.declarations
            ],
        )

    def verify(self) -> None:
        probe = self._probe
        if probe.level not in PROBE_LEVELS:
            raise UserError(
                f"probe {probe.name} cannot have level {probe.level}",
                hint=f"a probe's level is {' or '.join(PROBE_LEVELS)}",
                at=probe.at,
            )
        if not POSITION.fullmatch(probe.position):
            raise UserError(
                f"probe {probe.name} has no valid position: {probe.position!r}",
                hint='positions: "kernel", "ld.global:st.global", "line:42", "$label"',
                at=probe.at,
            )
        self._actions(probe.body)

    def _actions(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            match action:
                case Assign():
                    self._register(action.target, action.at)
                    self._expression(action.value, action.at)
                case If():
                    self._expression(action.test, action.at)
                    self._actions(action.then)
                    self._actions(action.otherwise)
                case Save():
                    self._save(action)
                case Ptx():
                    verify_ptx(action, self._own)

    def _save(self, save: Save) -> None:
        if save.map not in self._maps:
            raise UserError(
                f"there is no map {save.map}",
                hint=near(save.map, self._maps) or "declare the map",
                at=save.at,
            )
        map_ = self._maps[save.map]
        if len(save.values) != len(map_.fields):
            names = ", ".join(field.name for field in map_.fields)
            raise UserError(
                f"map {map_.name} has {len(map_.fields)} fields, {len(save.values)} are saved",
                hint=f"save one value for each of: {names}",
                at=save.at,
            )
        level = self._probe.level
        if WIDTH[level] > WIDTH[map_.level]:
            raise UserError(
                f"a probe of level {level} cannot save to map {map_.name} of level {map_.level}",
                hint=f'give the probe level="{map_.level}", or the map level="{level}"',
                at=save.at,
            )
        for value in save.values:
            self._expression(value, save.at)

    def _expression(self, expression: Expression, at: Location | None) -> None:
        for part in _parts(expression):
            if isinstance(part, Read):
                self._register(part.register, at)
            elif isinstance(part, Helper):
                self._helper(part, at)

    def _register(self, name: str, at: Location | None) -> None:
        if not self._own.holds(name):
            raise UserError(
                f"register {name} is not declared",
                hint=self._own.advice(name),
                at=at,
            )

    def _helper(self, helper: Helper, at: Location | None) -> None:
        if helper.name not in CALLS and helper.name not in NAMES:
            raise UserError(
                f"there is no helper {helper.name}",
                hint=near(helper.name, (*CALLS, *NAMES)),
                at=at,
            )
        least, most = CALLS.get(helper.name, (0, 0))
        if not least <= len(helper.arguments) <= most:
            raise UserError(
                f"{helper.name} cannot take {len(helper.arguments)} arguments",
                hint=f"give it {least} to {most}",
                at=at,
            )


def _parts(expression: Expression) -> Iterator[Expression]:
    """The expression and all that it is made of."""
    yield expression
    match expression:
        case Binary(_, left, right):
            yield from _parts(left)
            yield from _parts(right)
        case Unary(_, value):
            yield from _parts(value)
        case Helper(_, arguments):
            for argument in arguments:
                yield from _parts(argument)
