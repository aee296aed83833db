"""A probe program: maps, registers, probes. Both source forms are read into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpuwatch.errors import Location
from gpuwatch.ptx.model import Instruction

Level = Literal["thread", "warp", "block", "sm", "site", "line", "kernel"]
MapType = Literal["array", "reduce", "hist"]
Reduction = Literal["sum", "min", "max"]
Scale = Literal["log2", "linear"]
SampleUnit = Literal["warp", "block"]
ScalarType = Literal["u32", "u64", "s32", "s64", "f32", "pred"]


COPIES = 64
_MOST_COPIED = 4096
"""Bytes of a slot: wider ones are busy in several places anyway."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: ScalarType
    reduction: Reduction = "sum"
    """How a `reduce` map combines the values saved."""


@dataclass(frozen=True, slots=True)
class Map:
    """`size` bytes per record (at least its fields), `cap` records per slot."""

    name: str
    level: Level
    type: MapType
    size: int
    cap: int
    fields: tuple[Field, ...]
    at: Location | None = None
    dynamic: bool = False
    """Whether a first launch only counts, so that each slot then gets exactly what it needs;
    `cap` is then 1 and says nothing."""
    scale: Scale = "log2"
    """Buckets of a `hist` map, whose `cap` is their number. log2: bucket 0 counts the value 0,
    bucket k those from 2^(k-1) up to 2^k. linear: bucket k counts those from `low + k * step` up
    to the next one's beginning. The first and last bucket also count what lies beyond them."""
    low: int = 0
    step: int = 1
    sample: int = 1
    """`Probe.sample` of the probes that save to the map, all of which have the same."""
    sample_unit: SampleUnit = "warp"

    @property
    def thinned(self) -> bool:
        """Whether there are slots only for the sampled warps or blocks."""
        finer = ("thread", "warp") if self.sample_unit == "warp" else ("thread", "warp", "block")
        return self.sample > 1 and self.level in finer

    @property
    def adds_up(self) -> bool:
        """Whether the map adds up whole numbers and does nothing else."""
        return self.type == "hist" or (
            self.type == "reduce"
            and all(
                one.reduction == "sum" and one.type not in ("f32", "pred") for one in self.fields
            )
        )

    @property
    def copies(self) -> int:
        """How many copies of its slots a map has on the device, an SM adding to one of them: with
        a few slots for a whole launch, all warps would wait for the same words. Sums over the
        copies are what the map holds."""
        shared = self.level in ("site", "line", "kernel") and self.adds_up
        return COPIES if shared and self.slot_bytes <= _MOST_COPIED else 1

    @property
    def slot_bytes(self) -> int:
        return self.size * self.cap


@dataclass(frozen=True, slots=True)
class ProbeRegister:
    """A register shared by the probes of a program; `initial` is set at kernel entry."""

    name: str
    type: ScalarType
    initial: int | float = 0


# ---- expressions and statements of the Python form


@dataclass(frozen=True, slots=True)
class Constant:
    value: int | float


@dataclass(frozen=True, slots=True)
class Read:
    """A probe register's value."""

    register: str


@dataclass(frozen=True, slots=True)
class Helper:
    """A call or name of the language: clock, time, smid, warpid, addr, bytes, in1, min, ..."""

    name: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    """`op` is one of + - * / // % & | ^ << >> == != < <= > >= and or; only / is of f32 alone."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Unary:
    """`op` is one of - ~ not."""

    op: str
    value: Expression


Expression = Constant | Read | Helper | Binary | Unary


@dataclass(frozen=True, slots=True)
class Assign:
    target: str
    value: Expression
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class If:
    test: Expression
    then: tuple[Action, ...]
    otherwise: tuple[Action, ...]
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class Save:
    """Writes one record. `values` are expressions (Python form) or PTX operands (TOML form)."""

    map: str
    values: tuple[Expression, ...]
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class Ptx:
    """A run of PTX statements of the TOML form, as written, `%NRn` placeholders included.

    `declarations` are the `.reg` statements hoisted out of `text`: (type, name, count).
    """

    text: str
    instructions: tuple[Instruction, ...]
    declarations: tuple[tuple[str, str, int], ...] = ()
    at: Location | None = None
    places: tuple[Location, ...] = ()
    """Where each of `instructions` stands in the file; their spans are offsets into `text`."""


Action = Assign | If | Save | Ptx


@dataclass(frozen=True, slots=True)
class Probe:
    """`position` is "kernel", "basic_block", "branch", opcode prefixes joined by ":", "line:42" or
    "label"."""

    name: str
    position: str
    level: Level
    before: bool
    body: tuple[Action, ...]
    at: Location | None = None
    sample: int = 1
    """The probe runs for one warp (or block) in so many: those whose index it divides."""
    sample_unit: SampleUnit = "warp"


@dataclass(frozen=True, slots=True)
class Program:
    """`registers` in declaration order; in the TOML form they are named "%NR0".. in order.

    `reads` in a TOML `Save` are `Read("%NR0")` or `Helper`s; both forms lower the same way.
    """

    name: str
    title: str
    """One line that says what it measures, from the file's docstring or leading comment."""
    maps: tuple[Map, ...]
    registers: tuple[ProbeRegister, ...]
    probes: tuple[Probe, ...]
    source: str
    """The file it was read from."""
    form: Literal["python", "toml"]
    callback: str = ""
