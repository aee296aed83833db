"""What the code of one probe can see at one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuwatch.instrument.code import Code
from gpuwatch.instrument.layout import Buffers
from gpuwatch.instrument.names import Names
from gpuwatch.instrument.subject import Subject
from gpuwatch.instrument.values import Value
from gpuwatch.probe.model import Map, Probe, Program


@dataclass(slots=True)
class Sums:
    """Registers for the saves of one probe to one slot of a map; `slot` is the number of the site
    that stands for it, "" where the map's slots are not of sites."""

    stem: str
    probe: Probe
    number: int
    map: Map
    types: tuple[str, ...]
    slot: str = ""

    def registers(self) -> list[tuple[str, str]]:
        """Name and type, u32 or u64, of the register of each field."""
        return [(f"{self.stem}_{place}", type_) for place, type_ in enumerate(self.types)]


@dataclass(frozen=True, slots=True)
class OwnRegister:
    """A `.reg` declaration of a probe's PTX text: its woven name and its type; how many registers
    it makes, 0 for a plain name."""

    text: str
    type: str
    count: int


@dataclass(slots=True)
class Shared:
    """What all places of one weaving have in common."""

    program: Program
    names: Names
    variable: str
    buffers: Buffers
    registers: dict[str, Value] = field(default_factory=dict)
    """Probe registers by their name in the program."""
    maps: dict[str, tuple[int, Map]] = field(default_factory=dict)
    """Each map's number and itself, by name."""
    saved_once: frozenset[str] = frozenset()
    """Maps of which each slot is saved to at most once, by one thread."""
    own: dict[tuple[str, str], OwnRegister] = field(default_factory=dict)
    """What probes' PTX texts declare, by probe and name."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Special registers that the launch is known to hold one value in."""
    has_redux: bool = False
    """Whether the target adds up over lanes in one instruction (sm_80 and later)."""
    pointer_space: str = "global"
    """State space of the pointer variable."""
    sampled: dict[tuple[int, str], str] = field(default_factory=dict)
    """Predicates that hold, throughout the kernel, whether this warp or block is in a sample."""

    @staticmethod
    def of(program: Program, names: Names) -> Shared:
        shared = Shared(program, names, names.unique("gpuwatch_maps"), Buffers.of(program.maps))
        for register in program.registers:
            name = f"{names.registers}_{register.name.lstrip('%')}"
            shared.registers[register.name] = Value(name, register.type)
        shared.maps = {map_.name: (n, map_) for n, map_ in enumerate(program.maps)}
        return shared


@dataclass(slots=True)
class Scene:
    """One probe at one place."""

    shared: Shared
    probe: Probe
    site: str
    """The site's number, as an operand."""
    line_slot: str = ""
    """The number of the first site of the probe that has the same source line, as an operand; ""
    where that is the site itself."""
    subject: Subject | None = None
    """The instruction that the probe is about; None at positions that are about none."""
    line: int = 0
    """Line of the PTX text that the place is at, for messages."""
    earlier: Code | None = None
    """Of a probe behind an instruction: code in front of it, to keep what it overwrites."""
    sums: dict[str, Sums] = field(default_factory=dict)
    """Registers that what is saved to a map is added to, by map, where it is not saved at once."""
    alone: bool = False
    """Whether a single lane runs the code, so that a save needs no choice of lane."""
