"""The words of the probe language: types, levels, helpers, operators, registers of the GPU."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import get_args

from gpuwatch.probe.model import (
    Field,
    Level,
    Map,
    MapType,
    Reduction,
    SampleUnit,
    ScalarType,
    Scale,
)

TYPES: dict[str, ScalarType] = {
    **{name: name for name in get_args(ScalarType)},
    "b32": "u32",
    "b64": "u64",
    "i32": "s32",
    "i64": "s64",
}
"""Each spelling of a type."""

LEVELS: dict[str, Level] = {level: level for level in get_args(Level)}
PROBE_LEVELS: tuple[Level, ...] = ("thread", "warp")
"""What a probe can run for: each thread, or each warp once."""
MAP_TYPES: dict[str, MapType] = {kind: kind for kind in get_args(MapType)}
REDUCTIONS: dict[str, Reduction] = {word: word for word in get_args(Reduction)}
SCALES: dict[str, Scale] = {word: word for word in get_args(Scale)}
SAMPLE_UNITS: dict[str, SampleUnit] = {word: word for word in get_args(SampleUnit)}

TYPE_BYTES: dict[ScalarType, int] = {
    "u32": 4,
    "s32": 4,
    "f32": 4,
    "pred": 4,
    "u64": 8,
    "s64": 8,
}
"""Bytes of a field in a record."""

INTEGER_RANGE: dict[ScalarType, tuple[int, int]] = {
    "u32": (0, (1 << 32) - 1),
    "s32": (-(1 << 31), (1 << 31) - 1),
    "u64": (0, (1 << 64) - 1),
    "s64": (-(1 << 63), (1 << 63) - 1),
    "f32": (-(1 << 24), 1 << 24),
    "pred": (0, 1),
}
"""Least and greatest initial value; those of f32 are the integers that it holds exactly.
Unsigned registers take negative values too, down to the signed minimum of their width."""

MAX_REGISTERS = 256
"""Registers that a program may share between its probes."""

HIST_CAP: dict[Scale, int] = {"log2": 65, "linear": 64}
"""Buckets of a `hist` map that does not say: log2 with these has one for every 64-bit value."""

CONVERSIONS: dict[str, ScalarType] = {name: name for name in get_args(ScalarType) if name != "pred"}
"""Calls that give the number nearest to their argument in a type; f32 to integer cuts off."""

CALLS: dict[str, tuple[int, int]] = {
    "clock": (0, 0),
    "time": (0, 0),
    "cuid": (0, 0),
    "smid": (0, 0),
    "warpid": (0, 0),
    "laneid": (0, 0),
    "sectors": (0, 0),
    "bank_conflicts": (0, 0),
    "arrived": (0, 0),
    "popc": (1, 1),
    "bits": (1, 1),
    **dict.fromkeys(CONVERSIONS, (1, 1)),
    "min": (2, 8),
    "max": (2, 8),
}
"""Helpers that are called: least and greatest number of arguments."""

NAMES = frozenset(
    {"addr", "bytes", "out", "in1", "in2", "in3", "active", "site", "thread", "block"}
    | {"leads", "taken", "splits"}
    | {f"{what}_{axis}" for what in ("thread", "block", "block_dim", "grid_dim") for axis in "xyz"}
)
"""Helpers that are read without a call."""

OPERAND_HELPERS = frozenset({"in1", "in2", "in3", "out", "arrived"})
"""Helpers that read an operand of the probed instruction."""
ACCESS_HELPERS = frozenset({"addr", "bytes", "sectors", "bank_conflicts"})
"""Helpers that need the probed instruction to access memory."""
INSTRUCTION_HELPERS = OPERAND_HELPERS | ACCESS_HELPERS
"""Helpers that speak of the probed instruction."""

BRANCH_HELPERS = frozenset({"taken", "splits"})
"""Helpers that need position "branch"."""
KERNEL = "kernel"
"""Position of the kernel's begin and end."""
BLOCKS, BRANCHES = "basic_block", "branch"
"""Positions that are kinds of places, each with what runs in front of it only."""

SEPARATOR = re.compile(r"(?<!:):(?!:)")
"""What stands between the opcodes of a position; `::` is part of one, as in `ld.shared::cta`."""

SAVE_WORDS = {word.upper(): word for word in ("addr", "bytes", "out", "in1", "in2", "in3")}
"""Words of the TOML form that stand for something of the probed instruction."""

SPECIAL_HELPERS = {
    "%clock64": "clock",
    "%globaltimer": "time",
    "%smid": "smid",
    "%laneid": "laneid",
    **{
        f"%{theirs}.{axis}": f"{ours}_{axis}"
        for ours, theirs in (
            ("thread", "tid"),
            ("block", "ctaid"),
            ("block_dim", "ntid"),
            ("grid_dim", "nctaid"),
        )
        for axis in "xyz"
    },
}
"""Helpers that are one special register."""

SPECIAL_REGISTER = re.compile(
    r"%(?:n?tid|n?ctaid|n?clusterid|cluster_n?ctaid)\.[xyzw]"
    r"|%(?:cluster_n?ctarank|is_explicit_cluster|laneid|n?warpid|n?smid|gridid)"
    r"|%(?:clock|clock_hi|clock64|globaltimer|globaltimer_lo|globaltimer_hi)"
    r"|%lanemask_(?:eq|le|lt|ge|gt)|%(?:total|dynamic|aggr)_smem_size|%envreg\d+|%pm\d+(?:_64)?"
)
"""Registers that the GPU sets (PTX ISA 9.0, "Special Registers")."""


def near(word: str, known: Iterable[str]) -> str:
    """`known` as a hint: the words most like `word`, or else all of them."""
    words = sorted(known)
    matches = difflib.get_close_matches(word, words, n=3)
    if matches:
        return f"did you mean {' or '.join(matches)}?"
    return f"known: {', '.join(words)}" if words else ""


def record_bytes(fields: Iterable[Field]) -> int:
    """Bytes that fields take in a record: in order, each aligned to its own size."""
    return layout_of(fields)[1]


def layout_of(fields: Iterable[Field]) -> tuple[tuple[int, ...], int]:
    """Offset of each field in a record, and where the last one ends, in bytes."""
    offsets, end = [], 0
    for field in fields:
        size = TYPE_BYTES[field.type]
        offsets.append(-(-end // size) * size)
        end = offsets[-1] + size
    return tuple(offsets), end


def copy_bytes(map_: Map, slots: int) -> int:
    """Bytes from one copy of a map's slots to the next: copies share no line of a cache."""
    return -(-slots * map_.slot_bytes // _LINE_BYTES) * _LINE_BYTES


_LINE_BYTES = 256
BUCKET_BYTES = 8


def default_size(kind: MapType, fields: tuple[Field, ...]) -> int:
    """Bytes of a record where the map does not say: those of its fields; of a bucket, a u64. A
    reduced record is padded, so that each keeps its fields aligned."""
    if kind == "hist":
        return BUCKET_BYTES
    size = record_bytes(fields)
    widest = max((TYPE_BYTES[field.type] for field in fields), default=1)
    return -(-size // widest) * widest if kind == "reduce" else size
