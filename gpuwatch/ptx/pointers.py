"""Through which parameters a kernel may read memory."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch.ptx.access import MemoryAccess, memory_access
from gpuwatch.ptx.isa import read, written
from gpuwatch.ptx.model import Address, Function, Group, Instruction, Operand, Register, Symbol

_READING = frozenset({"load", "atomic", "reduction", "copy"})
_BEYOND = frozenset({"global", "generic"})
"""Spaces in which a launch's buffers lie."""

Origins = frozenset[str]


def parameters_read_through(function: Function) -> frozenset[str] | None:
    """Names of the parameters from which the address of a load, atomic or copy may come.

    None when that cannot be told: the function calls others, or reads through an address that
    comes from no parameter and no variable. Flow does not count: what a register may hold
    anywhere it may hold everywhere.
    """
    body = [one for one in function.body or () if isinstance(one, Instruction)]
    if any(one.opcode in ("call", "tex", "tld4", "suld", "wgmma") for one in body):
        return None
    origins = _origins(body)
    found: set[str] = set()
    for instruction in body:
        for address in _read_addresses(instruction):
            come_from = _of_operands([address], origins)
            if not come_from:
                return None
            found |= come_from
    return frozenset(found)


def _origins(body: list[Instruction]) -> dict[str, Origins]:
    """Of each register: the parameters and variables that its value may be computed from.

    What is loaded from memory comes from none."""
    origins: dict[str, Origins] = {}
    changed = True
    while changed:
        changed = False
        for instruction in body:
            sources = _sources(instruction, origins)
            for name in written(instruction):
                before = origins.get(name, frozenset())
                if not sources <= before:
                    origins[name] = before | sources
                    changed = True
    return origins


def _sources(instruction: Instruction, origins: dict[str, Origins]) -> Origins:
    access = memory_access(instruction)
    if access is not None and access.space == "param":
        return _of_operands(access.addresses, origins)
    if access is not None:
        return frozenset()
    symbols = _of_operands(instruction.operands[1:], origins)
    registers = [origins.get(name, frozenset()) for name in read(instruction)]
    return symbols.union(*registers)


def _read_addresses(instruction: Instruction) -> tuple[Operand, ...]:
    access = memory_access(instruction)
    if access is None or access.kind not in _READING or access.space not in _BEYOND:
        return ()
    return _source_of(access)


def _source_of(access: MemoryAccess) -> tuple[Operand, ...]:
    return access.addresses[1:] if access.kind == "copy" else access.addresses


def _of_operands(operands: Iterable[Operand], origins: dict[str, Origins]) -> Origins:
    found: set[str] = set()
    for operand in operands:
        match operand:
            case Symbol(name):
                found.add(name)
            case Register(name):
                found |= origins.get(name, frozenset())
            case Address(base):
                found |= _of_operands([base], origins)
            case Group(items):
                found |= _of_operands(items, origins)
    return frozenset(found)
