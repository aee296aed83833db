"""Walks over the actions and expressions of probes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuwatch.probe.language import SAVE_WORDS
from gpuwatch.probe.model import Action, Binary, Expression, Helper, If, Save, Unary
from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Operand, Symbol


def flat(actions: Iterable[Action]) -> Iterator[Action]:
    """Every action, those in branches behind their `If`."""
    for action in actions:
        yield action
        if isinstance(action, If):
            yield from flat(action.then)
            yield from flat(action.otherwise)


def saves(actions: Iterable[Action]) -> Iterator[Save]:
    """Every save, those in branches too."""
    return (action for action in flat(actions) if isinstance(action, Save))


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and all that it is made of."""
    yield expression
    match expression:
        case Binary(_, left, right):
            yield from parts(left)
            yield from parts(right)
        case Unary(_, value):
            yield from parts(value)
        case Helper(_, arguments):
            for argument in arguments:
                yield from parts(argument)


def words(operands: Iterable[Operand]) -> list[str]:
    """The helpers that operands of a text name: "addr" for ADDR."""
    names = [leaf.name for leaf in isa.leaves(operands) if isinstance(leaf, Symbol)]
    return [SAVE_WORDS[name] for name in names if name in SAVE_WORDS]
