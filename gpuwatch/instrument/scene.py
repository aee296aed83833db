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


@dataclass(frozen=True, slots=True)
class Step:
    """What a save adds to a register that sums up: the "value" of a field, "one" for each lane, or
    one for the lane that "leads"; "stays" is one for each lane behind the instruction, a branch.
    """

    adds: str
    register: str
    type: str
    field: int = 0


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
    short: frozenset[str] = frozenset()
    """Registers that keep half of their bits until the kernel's end; see `instrument.clocks`."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """Maps whose records show by themselves that they arrived; see `instrument.marks`."""
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
    steps: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    """What to do, by map, where what is saved is not saved at once."""
    alone: bool = False
    """Whether a single lane runs the code, so that a save needs no choice of lane."""
