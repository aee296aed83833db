"""What the code of one probe can see at one place."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuwatch.instrument.names import Names
from gpuwatch.instrument.values import Value
from gpuwatch.probe.model import Map, Probe, Program
from gpuwatch.ptx.model import Function, Instruction, RegisterDeclaration


@dataclass(slots=True)
class Shared:
    """What all places of one weaving have in common."""

    function: Function
    program: Program
    names: Names
    variable: str
    registers: dict[str, Value] = field(default_factory=dict)
    """Probe registers by their name in the program."""
    maps: dict[str, tuple[int, Map]] = field(default_factory=dict)
    """Each map's number and itself, by name."""
    types: dict[str, str] = field(default_factory=dict)
    """Declared type of each of the kernel's own registers."""
    saved_once: frozenset[str] = frozenset()
    """Maps of which each slot is saved to at most once, by one thread."""
    own: dict[tuple[str, str], str] = field(default_factory=dict)
    """Woven name of each register that a probe's PTX text declares, by probe and name."""
    counted: dict[tuple[str, str], int] = field(default_factory=dict)
    """How many registers such a declaration makes; 0 for a plain name."""

    @staticmethod
    def of(function: Function, program: Program, names: Names) -> Shared:
        shared = Shared(function, program, names, names.unique("gpuwatch_maps"))
        for register in program.registers:
            name = f"{names.registers}_{register.name.lstrip('%')}"
            shared.registers[register.name] = Value(name, register.type)
        shared.maps = {map_.name: (n, map_) for n, map_ in enumerate(program.maps)}
        shared.types = _register_types(function)
        return shared


def _register_types(function: Function) -> dict[str, str]:
    types: dict[str, str] = {}
    for statement in function.body or ():
        if isinstance(statement, RegisterDeclaration):
            for name, count in statement.names:
                numbered = [f"{name}{number}" for number in range(count)] if count else [name]
                types.update(dict.fromkeys(numbered, statement.type))
    return types


@dataclass(slots=True)
class Scene:
    """One probe at one place: its instruction (None where there is none) and site number."""

    shared: Shared
    probe: Probe
    site: int
    instruction: Instruction | None = None
    alone: bool = False
    """Whether a single lane runs the code, so that a save needs no choice of lane."""
