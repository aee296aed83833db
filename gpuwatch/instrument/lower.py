"""Actions and expressions of a probe to PTX."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.errors import UserError
from gpuwatch.instrument import indices, operators, saves
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.helpers import helper
from gpuwatch.instrument.scene import Scene
from gpuwatch.instrument.text import substitute
from gpuwatch.instrument.values import Value, constant, convert, copy
from gpuwatch.probe.model import (
    Action,
    Assign,
    Binary,
    Constant,
    Expression,
    Helper,
    If,
    Map,
    Ptx,
    Read,
    Save,
    Unary,
)


def evaluate(
    code: Code, scene: Scene, expression: Expression, into: str | None = None, wanted: str = ""
) -> Value:
    """The value of an expression; computed right into `into` where its type is `wanted`."""
    match expression:
        case Constant(value):
            return constant(value)
        case Read(register):
            return scene.shared.registers[register]
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
        case Helper(name):
            return helper(code, scene, name, into, wanted)


def act(code: Code, scene: Scene, actions: Sequence[Action]) -> None:
    """Lower actions in order; a save is one by each lane that comes here."""
    for action in actions:
        match action:
            case Assign(target, value):
                assign(code, scene, target, value)
            case If():
                _branch(code, scene, action)
            case Save():
                save(code, scene, action, prepare(code, scene, action))
            case Ptx():
                code.lines += substitute(scene, action)


def assign(code: Code, scene: Scene, target: str, expression: Expression) -> None:
    register = scene.shared.registers[target]
    value = evaluate(code, scene, expression, register.text, register.type)
    if value.text != register.text:
        copy(code, value, register.type, register.text)


def prepare(code: Code, scene: Scene, action: Save) -> list[str]:
    """The operands of a save, ready to store."""
    map_ = _map_of(scene, action)[1]
    if len(action.values) != len(map_.fields):
        raise UserError(
            f"{map_.name} has {len(map_.fields)} fields, {len(action.values)} values are saved",
            hint="save one value for each field, in the order of the fields",
            at=action.at,
        )
    values = [evaluate(code, scene, value) for value in action.values]
    return saves.operands(code, map_, values)


def save(code: Code, scene: Scene, action: Save, fields: Sequence[str]) -> None:
    """Store prepared operands; at warp level only the lowest active lane does."""
    number, map_ = _map_of(scene, action)
    leads = None
    if scene.probe.level == "warp" and not scene.alone:
        mask = code.compute("u32", "activemask.b32")
        leads = indices.leads(code, mask)
    if leads is None:
        _store(code, scene, map_, number, fields)
        return
    with code.skipped_unless(leads):
        _store(code, scene, map_, number, fields)


def _store(code: Code, scene: Scene, map_: Map, number: int, fields: Sequence[str]) -> None:
    slot = saves.SLOTS[map_.level](code) if map_.level != "site" else str(scene.site)
    once = map_.name in scene.shared.saved_once
    saves.save(code, map_, number, fields, slot, scene.shared.variable, once)


def _map_of(scene: Scene, action: Save) -> tuple[int, Map]:
    return scene.shared.maps[action.map]


def _branch(code: Code, scene: Scene, action: If) -> None:
    test = convert(code, evaluate(code, scene, action.test), "pred")
    if not action.otherwise:
        with code.skipped_unless(test):
            act(code, scene, action.then)
        return
    otherwise, end = code.names.label(), code.names.label()
    code.emit(f"@!{test} bra \t{otherwise}")
    with code.region():
        act(code, scene, action.then)
    code.emit(f"bra \t{end}")
    code.label(otherwise)
    with code.region():
        act(code, scene, action.otherwise)
    code.label(end)
