"""What a probe must keep to."""

from __future__ import annotations

import re

from gpuwatch.errors import Location, UserError
from gpuwatch.probe.language import (
    ACCESS_HELPERS,
    BLOCKS,
    BRANCH_HELPERS,
    BRANCHES,
    CALLS,
    INSTRUCTION_HELPERS,
    KERNEL,
    NAMES,
    PROBE_LEVELS,
    SAMPLE_UNITS,
    SEPARATOR,
    near,
)
from gpuwatch.probe.model import (
    Action,
    Assign,
    Expression,
    Helper,
    If,
    Level,
    Probe,
    Program,
    Ptx,
    Read,
    Save,
    ScalarType,
)
from gpuwatch.probe.values import BadValueError, check_fits, kind_of
from gpuwatch.probe.verify_ptx import OwnRegisters, used_words, verify_declarations, verify_ptx
from gpuwatch.probe.walk import parts
from gpuwatch.ptx.access import OPCODES

WIDTH: dict[Level, int] = {"thread": 0, "warp": 1, "block": 2, "sm": 3, "kernel": 4, "site": 4,
                           "line": 4}  # fmt: skip
"""How much of a launch a slot is for. A probe saves to maps at least as wide as itself."""

_OPCODES = r"[A-Za-z_]\w*(?:(?:\.|::)\w+)*"
_LABEL = r"[$%]\w[\w$]*|label:[$%A-Za-z_][\w$]*"
POSITION = re.compile(
    rf"{KERNEL}|line:[1-9]\d{{0,6}}|{_LABEL}|(?!(?:line|label):){_OPCODES}(?::{_OPCODES})*"
)
MAX_SAMPLE = 1 << 20


class ProbeVerifier:
    """Verifies one probe of a program whose maps and registers are sound."""

    def __init__(self, program: Program, probe: Probe) -> None:
        self._probe = probe
        self._maps = {map_.name: map_ for map_ in program.maps}
        # Both halves of a TOML probe carry its name and share what either declares.
        self._texts = [
            action
            for half in program.probes
            if half.name == probe.name
            for action in half.body
            if isinstance(action, Ptx)
        ]
        shared = {register.name: register.type for register in program.registers}
        declarations = [one for text in self._texts for one in text.declarations]
        self._own = OwnRegisters(shared, declarations)
        self._types: dict[str, ScalarType] = dict(shared)

    def verify(self) -> None:
        """Raises UserError for the first rule broken."""
        probe = self._probe
        self._header()
        for text in self._texts:
            verify_declarations(text, self._own)
        self._actions(probe.body)

    def _header(self) -> None:
        probe = self._probe
        rules = (
            (probe.level in PROBE_LEVELS, f"cannot have level {probe.level}",
             f"a probe's level is {' or '.join(PROBE_LEVELS)}"),
            (bool(POSITION.fullmatch(probe.position)), f"has no valid position: {probe.position!r}",
             'positions: "kernel", "ld.global:st.global", "line:42", "label:NAME"'),
            (probe.before or probe.position not in (BLOCKS, BRANCHES),
             f"cannot run behind each {probe.position}", "give it before=True"),
            (1 <= probe.sample <= MAX_SAMPLE, f"has sample={probe.sample}",
             f"run it for one warp in 1 to {MAX_SAMPLE}"),
            (probe.sample_unit in SAMPLE_UNITS, f"samples by {probe.sample_unit}",
             near(probe.sample_unit, SAMPLE_UNITS)),
        )  # fmt: skip
        for kept, message, hint in rules:
            if not kept:
                raise UserError(f"probe {probe.name} {message}", hint=hint, at=probe.at)

    def _actions(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            match action:
                case Assign():
                    self._assign(action)
                case If():
                    self._expression(action.test, action.at)
                    self._actions(action.then)
                    self._actions(action.otherwise)
                case Save():
                    self._save(action)
                case Ptx():
                    verify_ptx(action, self._own)
                    for word, at in used_words(action):
                        self._place(word, at)

    def _assign(self, action: Assign) -> None:
        self._register(action.target, action.at)
        self._expression(action.value, action.at)
        if action.target in self._types:
            self._fits(action.value, self._types[action.target], f"{action.target}", action.at)

    def _fits(self, value: Expression, type_: ScalarType, what: str, at: Location | None) -> None:
        try:
            check_fits(value, type_, self._types, what)
        except BadValueError as mistake:
            raise UserError(str(mistake), hint=mistake.hint, at=at) from mistake

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
        for value, field in zip(save.values, map_.fields, strict=True):
            self._expression(value, save.at)
            self._fits(value, field.type, f"field {field.name}", save.at)

    def _expression(self, expression: Expression, at: Location | None) -> None:
        for part in parts(expression):
            if isinstance(part, Read):
                self._register(part.register, at)
            elif isinstance(part, Helper):
                self._helper(part, at)
        try:
            kind_of(expression, self._types)
        except BadValueError as mistake:
            raise UserError(str(mistake), hint=mistake.hint, at=at) from mistake

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
        self._place(helper.name, at)

    def _place(self, helper: str, at: Location | None) -> None:
        """Whether the position has what the helper reads; a line's instruction is not known."""
        position = self._probe.position
        if helper in BRANCH_HELPERS and position != BRANCHES:
            raise UserError(
                f"{helper} needs a conditional branch, at {position} there is none",
                hint=f'put the probe at pos="{BRANCHES}"',
                at=at,
            )
        if helper not in INSTRUCTION_HELPERS or position.startswith("line:"):
            return
        if position in (KERNEL, BLOCKS) or re.fullmatch(_LABEL, position):
            raise UserError(
                f"{helper} needs an instruction, at {position} there is none",
                hint='put the probe at instructions: pos="ld.global:st.global"',
                at=at,
            )
        if helper in ("out", "arrived") and self._probe.before:
            raise UserError(
                "out is not written yet before the instruction", hint="drop before=True", at=at
            )
        opcodes = SEPARATOR.split(position)
        strangers = [one for one in opcodes if one.split(".")[0] not in OPCODES]
        if helper in ACCESS_HELPERS and strangers:
            raise UserError(
                f"{helper} needs an access to memory, {strangers[0]} makes none",
                hint=f"put the probe at some of {', '.join(sorted(OPCODES))}",
                at=at,
            )
