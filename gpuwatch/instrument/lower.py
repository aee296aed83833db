"""Actions and expressions of a probe to PTX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gpuwatch.errors import Location, UserError
from gpuwatch.instrument import clocks, flushing, indices, operators, saves, slots, text
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.helpers import helper
from gpuwatch.instrument.scene import Scene, Step
from gpuwatch.instrument.values import Value, cast, constant, convert, copy
from gpuwatch.probe.language import CONVERSIONS
from gpuwatch.probe.model import (
    Action,
    Assign,
    Binary,
    Expression,
    Helper,
    If,
    Map,
    Ptx,
    Read,
    Save,
    Unary,
)
from gpuwatch.probe.values import BadValueError, fold


def evaluate(
    code: Code, scene: Scene, expression: Expression, into: str | None = None, wanted: str = ""
) -> Value:
    """The value of an expression; computed right into `into` where its type is `wanted`."""
    folded = fold(expression)
    if folded is not None:
        return constant(folded)
    match expression:
        case Read(register):
            return text.read(code, scene, register)
        case Unary(op, value):
            return operators.unary(code, op, evaluate(code, scene, value))
        case Binary(op, left, right):
            a, b = evaluate(code, scene, left), evaluate(code, scene, right)
            return operators.binary(code, op, a, b, into, wanted)
        case Helper(("min" | "max") as op, arguments):
            first, *others = [evaluate(code, scene, argument) for argument in arguments]
            for other in others:
                first = operators.binary(code, op, first, other, None, "")
            return first
        case Helper("popc" | "bits", (argument,)):
            return operators.unary(code, expression.name, evaluate(code, scene, argument))
        case Helper(name, (argument,)):
            return cast(code, evaluate(code, scene, argument), CONVERSIONS[name])
        case Helper(name):
            return helper(code, scene, name, into, wanted)
    raise AssertionError(expression)


def act(code: Code, scene: Scene, actions: Sequence[Action]) -> None:
    """Lower actions in order, for the sampled warps or blocks of the probe; a save is one by each
    lane that comes here."""
    if actions:
        with _sampled(code, scene):
            _act(code, scene, actions)


@contextmanager
def _sampled(code: Code, scene: Scene) -> Iterator[None]:
    chosen = slots.sampled(code, scene)
    if chosen is None:
        yield
        return
    with code.skipped_unless(chosen):
        yield


def _act(code: Code, scene: Scene, actions: Sequence[Action]) -> None:
    for action in actions:
        match action:
            case Assign():
                assign(code, scene, action)
            case If():
                _branch(code, scene, action)
            case Save():
                _save_here(code, scene, action)
            case Ptx():
                text.substitute(code, scene, action)


def assign(code: Code, scene: Scene, action: Assign) -> None:
    """Lower one assignment; raises UserError for operators that its operands do not have."""
    register = scene.shared.registers[action.target]
    if action.target in scene.shared.short:
        clocks.keep_low(code, register)
        return
    with _placed(action.at):
        value = evaluate(code, scene, action.value, register.text, register.type)
    if value.text != register.text:
        copy(code, value, register.type, register.text)


@contextmanager
def _placed(at: Location | None) -> Iterator[None]:
    """What is wrong with an expression is said with its place."""
    try:
        yield
    except BadValueError as error:
        raise UserError(str(error), hint=error.hint, at=at) from error


def prepare(code: Code, scene: Scene, action: Save) -> list[str]:
    """The operands of a save, ready to store."""
    map_ = _map_of(scene, action)[1]
    if len(action.values) != len(map_.fields):
        raise UserError(
            f"{map_.name} has {len(map_.fields)} fields, {len(action.values)} values are saved",
            hint="save one value for each field, in the order of the fields",
            at=action.at,
        )
    return saves.operands(code, map_, _values(code, scene, action))


def _values(code: Code, scene: Scene, action: Save) -> list[Value]:
    with _placed(action.at):
        return [evaluate(code, scene, value) for value in action.values]


def save(code: Code, scene: Scene, action: Save, fields: Sequence[str]) -> None:
    """Store prepared operands, for the sampled warps or blocks of the probe; at warp level only
    the lowest active lane does."""
    with _sampled(code, scene):
        _save(code, scene, action, fields)


def _save_here(code: Code, scene: Scene, action: Save) -> None:
    """A save at an instruction: into registers, by one lane for all, or by each at once."""
    number, map_ = _map_of(scene, action)
    steps = scene.steps.get(map_.name)
    if steps is not None:
        values = _stepped(code, scene, action, steps)
        if scene.probe.level == "thread":
            _take(code, steps, values)
            return
        with code.skipped_unless(indices.leads(code)):
            _take(code, steps, values)
    elif flushing.saves_together(scene, map_, action.values):
        flushing.save_together(code, scene, map_, number, _values(code, scene, action))
    else:
        _save(code, scene, action, prepare(code, scene, action))


def _stepped(code: Code, scene: Scene, action: Save, steps: Sequence[Step]) -> list[Value | None]:
    """The values that are wanted of a save."""
    with _placed(action.at):
        return [
            evaluate(code, scene, action.values[step.field]) if step.adds == "value" else None
            for step in steps
        ]


def _take(code: Code, steps: Sequence[Step], values: Sequence[Value | None]) -> None:
    for step, value in zip(steps, values, strict=True):
        if value is None:
            flushing.count(code, step)
        else:
            flushing.accumulate(code, step, value)


def _save(code: Code, scene: Scene, action: Save, fields: Sequence[str]) -> None:
    number, map_ = _map_of(scene, action)
    if scene.probe.level != "warp" or scene.alone:
        _store(code, scene, map_, number, fields)
        return
    with code.skipped_unless(indices.leads(code)):
        _store(code, scene, map_, number, fields)


def _store(code: Code, scene: Scene, map_: Map, number: int, fields: Sequence[str]) -> None:
    once = map_.name in scene.shared.saved_once
    saves.save(code, scene, map_, number, fields, once=once)


def _map_of(scene: Scene, action: Save) -> tuple[int, Map]:
    return scene.shared.maps[action.map]


def _branch(code: Code, scene: Scene, action: If) -> None:
    with _placed(action.at):
        test = convert(code, evaluate(code, scene, action.test), "pred")
    if not action.otherwise:
        with code.skipped_unless(test):
            _act(code, scene, action.then)
        return
    otherwise, end = code.names.label(), code.names.label()
    code.emit(f"@!{test} bra \t{otherwise}")
    with code.region():
        _act(code, scene, action.then)
    code.emit(f"bra \t{end}")
    code.label(otherwise)
    with code.region():
        _act(code, scene, action.otherwise)
    code.label(end)
