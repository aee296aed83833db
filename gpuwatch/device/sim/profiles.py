"""Profiles: what the simulator knows of a GPU, read from documented TOML."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from gpuwatch.errors import Location, UserError
from gpuwatch.launch.model import DeviceAnswers

FOLDER = Path(__file__).parent / "profiles"

OPERATION_CLASSES = (
    "alu",
    "fp32",
    "fp16",
    "fp64",
    "multiply",
    "transcendental",
    "bits",
    "convert",
    "convert64",
    "special",
    "branch",
    "shuffle",
    "vote",
    "matrix",
    "barrier",
)
"""Classes of instruction that a profile gives both a latency and a number of lanes for."""

LATENCY_CLASSES = (
    *OPERATION_CLASSES,
    "shared",
    "atomic_shared",
    "l1",
    "l2",
    "dram",
    "atomic",
    "atomic_turn",
)

_LIMITS = {
    "sm_count",
    "warps_per_sm",
    "blocks_per_sm",
    "schedulers",
    "registers_per_sm",
    "register_unit",
    "warp_unit",
    "shared_per_sm",
    "shared_reserved",
    "shared_unit",
    "shared_per_block",
    "shared_per_block_max",
}
_TABLES = {
    "limits": _LIMITS,
    "device": {"clock_mhz", "l2_bytes", "memory_bytes"},
    "latency": set(LATENCY_CLASSES),
    "operations": {*OPERATION_CLASSES, "load_store"},
    "bandwidth": {"l1", "l1_achieved", "l2", "l2_sm", "l2_write", "l2_atomics", "dram"},
    "overhead": {"launch", "block"},
}
_ASCENDING = (
    ("limits", "shared_per_block", "shared_per_block_max"),
    ("limits", "shared_per_block_max", "shared_per_sm"),
    ("limits", "register_unit", "registers_per_sm"),
    ("latency", "l1", "l2"),
    ("latency", "l2", "dram"),
)
"""Of a table, what cannot be larger than what."""
_MAY_BE_ZERO = {"shared_reserved", "launch", "block"}
_FRACTIONAL = {"latency", "bandwidth"}


@dataclass(frozen=True, slots=True)
class Profile:
    """One modelled GPU. Sizes are bytes, times cycles, bandwidths bytes per cycle."""

    name: str
    title: str
    arch: str
    """Like "sm_86"."""
    sm_count: int
    warps_per_sm: int
    blocks_per_sm: int
    schedulers: int
    """Warp schedulers per SM; each issues one instruction a cycle."""
    registers_per_sm: int
    register_unit: int
    """A warp's registers are allocated in multiples of this many."""
    warp_unit: int
    """A block's warps are rounded up to this when its registers are checked to fit."""
    shared_per_sm: int
    shared_reserved: int
    """Shared memory of each block that the system keeps."""
    shared_unit: int
    shared_per_block: int
    """The most shared memory a block gets without opting in."""
    shared_per_block_max: int
    clock_hz: float
    l2_bytes: int
    memory_bytes: int
    latency: Mapping[str, float]
    """Cycles from issue to the first dependent instruction, by LATENCY_CLASSES."""
    operations: Mapping[str, int]
    """Lanes per cycle and SM, by OPERATION_CLASSES and for "load_store"."""
    l1_bandwidth: float
    """Of one SM; shared memory takes the same path."""
    l1_achieved: float
    """The share of `l1_bandwidth` that a steady stream of global accesses gets."""
    l2_bandwidth: float
    """Of reads, over the whole device, as the next two are."""
    l2_write_bandwidth: float
    dram_bandwidth: float
    l2_sm_bandwidth: float
    """What one SM gets from the L2 when no other reads."""
    l2_atomics: float
    """32-byte sectors a cycle that atomics touch, over the whole device."""
    launch_overhead: int
    block_overhead: int

    @property
    def threads_per_sm(self) -> int:
        return self.warps_per_sm * 32

    @property
    def compute_capability(self) -> tuple[int, int]:
        digits = self.arch.removeprefix("sm_")
        return int(digits[:-1]), int(digits[-1])


def names() -> tuple[str, ...]:
    """The profiles that come with gpuwatch."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load(name_or_path: str) -> Profile:
    """The profile of that name, or the one in that TOML file (a path that ends in ".toml").

    Raises UserError when there is none, or when the file is not a complete profile.
    """
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
    else:
        path = FOLDER / f"{name_or_path.lower()}.toml"
        if name_or_path.lower() not in names():
            raise UserError(
                f"no simulated GPU is called '{name_or_path}'",
                hint=f"choose one of {', '.join(names())}, or give the path of a .toml file "
                f"(copy one from {FOLDER})",
            )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"cannot read the profile '{path}'",
            detail=str(error),
            hint=f"copy one from {FOLDER} there and change what differs",
        ) from error
    return parse(text, path.stem, str(path))


def parse(text: str, name: str, source: str) -> Profile:
    """A profile from TOML text. Raises UserError with the place of the first mistake."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(
            f"not valid TOML: {error}",
            at=_place_of(error, text, source),
            hint="lines are `key = value` under a `[table]`; comments begin with #",
        ) from error
    reader = _Reader(text, source, tables)
    title, arch = reader.text("title"), reader.text("arch")
    if not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise reader.error("'arch' must look like \"sm_86\"", "", "arch")
    reader.refuse_unknown("", set(tables), {"title", "arch", *_TABLES})
    numbers = {table: reader.numbers(table) for table in _TABLES}
    for table, low, high in _ASCENDING:
        if numbers[table][low] > numbers[table][high]:
            raise reader.error(f"'{low}' is above '{high}'", table, low)
    limits = {key: int(value) for key, value in numbers["limits"].items()}
    device, bandwidth = numbers["device"], numbers["bandwidth"]
    return Profile(
        name=name,
        title=title,
        arch=arch,
        **limits,
        clock_hz=device["clock_mhz"] * 1e6,
        l2_bytes=int(device["l2_bytes"]),
        memory_bytes=int(device["memory_bytes"]),
        latency=MappingProxyType(numbers["latency"]),
        operations=MappingProxyType({k: int(v) for k, v in numbers["operations"].items()}),
        l1_bandwidth=bandwidth["l1"],
        l1_achieved=bandwidth["l1_achieved"],
        l2_bandwidth=bandwidth["l2"],
        l2_write_bandwidth=bandwidth["l2_write"],
        l2_sm_bandwidth=bandwidth["l2_sm"],
        l2_atomics=bandwidth["l2_atomics"],
        dram_bandwidth=bandwidth["dram"],
        launch_overhead=int(numbers["overhead"]["launch"]),
        block_overhead=int(numbers["overhead"]["block"]),
    )


def answers(profile: Profile) -> DeviceAnswers:
    """What a captured program is told when it asks for this device."""
    major, minor = profile.compute_capability
    return DeviceAnswers(
        name=profile.title,
        sm_count=profile.sm_count,
        threads_per_sm=profile.threads_per_sm,
        shared_per_block=profile.shared_per_block,
        shared_per_sm=profile.shared_per_sm,
        registers_per_sm=profile.registers_per_sm,
        compute_major=major,
        compute_minor=minor,
        memory_bytes=profile.memory_bytes,
        clock_khz=int(profile.clock_hz / 1000),
        blocks_per_sm=profile.blocks_per_sm,
    )


class _Reader:
    """Takes checked values out of the TOML tables; mistakes become a UserError with a place."""

    def __init__(self, text: str, source: str, tables: dict[str, object]) -> None:
        self._text = text
        self._source = source
        self._tables = tables

    def text(self, key: str) -> str:
        if key not in self._tables:
            raise self.error(f"'{key}' is missing", "", "")
        value = self._tables[key]
        if not isinstance(value, str):
            raise self.error(f"'{key}' must be a text", "", key)
        return value

    def numbers(self, table: str) -> dict[str, float]:
        wanted = _TABLES[table]
        found = self._tables.get(table)
        if found is None:
            raise self.error(f"the table [{table}] is missing", "", "")
        if not isinstance(found, dict):
            raise self.error(f"'{table}' must be a table", "", table)
        self.refuse_unknown(table, set(found), wanted)
        missing = sorted(wanted - set(found))
        if missing:
            raise self.error(f"[{table}] lacks {', '.join(missing)}", table, "")
        return {key: self._number(table, key, value) for key, value in found.items()}

    def _number(self, table: str, key: str, value: object) -> float:
        kinds = (int, float) if table in _FRACTIONAL else (int,)
        if isinstance(value, bool) or not isinstance(value, kinds):
            kind = "a number" if table in _FRACTIONAL else "a whole number"
            raise self.error(f"'{key}' must be {kind}", table, key)
        if value < 0 or (value == 0 and key not in _MAY_BE_ZERO):
            raise self.error(f"'{key}' must be above zero", table, key)
        return float(value)

    def refuse_unknown(self, table: str, found: set[str], known: set[str]) -> None:
        for key in sorted(found - known):
            close = difflib.get_close_matches(key, known, 1)
            meant = f"did you mean '{close[0]}'? " if close else ""
            hint = f"{meant}known here: {', '.join(sorted(known))}"
            raise self.error(f"unknown key '{key}'", table, key, hint)

    def error(self, message: str, table: str, key: str, hint: str = "") -> UserError:
        """An error at `key` of `table`; at the table's head, or the file's, without a key."""
        start = 0
        if table:
            head = re.search(rf"^[ \t]*\[{re.escape(table)}\]", self._text, re.MULTILINE)
            start = head.start() if head else 0
        if key:
            pattern = rf"^[ \t]*\[?[ \t]*\"?({re.escape(key)})\b"
            line = re.compile(pattern, re.MULTILINE).search(self._text, start)
            start = line.start(1) if line else start
        place = Location.in_text(self._source, self._text, start)
        return UserError(message, at=place, hint=hint or f"compare with {FOLDER / 'a10.toml'}")


def _place_of(error: tomllib.TOMLDecodeError, text: str, source: str) -> Location:
    found = re.search(r"line (\d+), column (\d+)", str(error))
    lines = text.splitlines()
    line, column = (int(found[1]), int(found[2])) if found else (max(1, len(lines)), 1)
    return Location(source, line, column, lines[line - 1] if line <= len(lines) else "")
