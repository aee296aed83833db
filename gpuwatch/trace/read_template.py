"""Reads the results of this trace. It stands alone: with numpy it is fast, without it works too.

python read.py result/0.297500.bin

from read import parse, read
header, sections, records = parse(path)   # records[map][block][warp or thread][k].field
launch = read(path)                       # launch.maps[map].records, flat, with their slots
"""

from __future__ import annotations

import json
import mmap
import struct
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

MAPS: tuple[dict[str, Any], ...] = ()


class TraceHeader(NamedTuple):
    gridDimX: int  # noqa: N815
    gridDimY: int  # noqa: N815
    gridDimZ: int  # noqa: N815
    blockDimX: int  # noqa: N815
    blockDimY: int  # noqa: N815
    blockDimZ: int  # noqa: N815
    sharedMemBytes: int  # noqa: N815
    numProbes: int  # noqa: N815


class TraceSection(NamedTuple):
    size: int  # bytes of a slot; of a record where the map is dynamic
    warpDiv: int  # noqa: N815 - threads that share a slot; 0 where that says nothing
    offset: int  # of the first slot in the file


class MapRecords(NamedTuple):
    """`records` is a numpy array with fields, or a list of tuples with names. `slots` is the
    slot of each, `index` what that stands for: the thread, warp, block, SM or site. `missing` are
    slots without a record, `dropped` counts records that found no room."""

    records: Any
    slots: Any
    index: Any
    missing: Any
    dropped: int
    slot_count: int


class Launch(NamedTuple):
    """`facts`: what else the file says: kernel_seconds for one, and modelled, which is True where
    times and cycles are a model's."""

    header: TraceHeader
    sections: list[TraceSection]
    maps: dict[str, MapRecords]
    facts: dict[str, Any]


def read(path: str) -> Launch:
    """Every map of one result file. Raises ValueError for a file that is cut off or altered."""
    try:
        return _read(path)
    except (struct.error, KeyError, IndexError, TypeError, OverflowError) as problem:
        raise ValueError(f"{path} is cut off or was altered: {problem!r}") from problem


def _read(path: str) -> Launch:
    with Path(path).open("rb") as file:
        memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    header = TraceHeader(*struct.unpack_from("<8i", memory, 0))
    if header.numProbes != len(MAPS):
        raise ValueError(f"{path} has {header.numProbes} maps, this reader knows {len(MAPS)}")
    sections = [
        TraceSection(*struct.unpack_from("<IIQ", memory, 32 + 16 * number))
        for number in range(header.numProbes)
    ]
    magic, size = struct.unpack_from("<8sQ", memory, 32 + 16 * len(sections))
    if magic != b"gpuwatch":
        raise ValueError(f"{path} was not written by gpuwatch")
    start = 48 + 16 * len(sections)
    facts = {"modelled": False, **json.loads(bytes(memory[start : start + size]))}
    maps = {}
    for schema, section, entry in zip(MAPS, sections, facts.pop("maps"), strict=True):
        maps[schema["name"]] = _read_map(memory, header, schema, section, entry)
    return Launch(header, sections, maps, facts)


def parse(path: str) -> tuple[TraceHeader, list[TraceSection], dict[str, list[Any]]]:
    """The records as lists in lists: of a map per warp, thread or block those of block, slot in
    the block, number in the slot; of others those of slot, number in the slot."""
    launch = read(path)
    nested: dict[str, list[Any]] = {}
    for schema in MAPS:
        found = launch.maps[schema["name"]]
        record = _record(schema)
        slots: list[list[Any]] = [[] for _ in range(found.slot_count)]
        rows = found.records if isinstance(found.records, list) else found.records.tolist()
        for slot, row in zip(_listed(found.slots), rows, strict=True):
            slots[slot].append(record(*row))
        nested[schema["name"]] = _by_block(slots, launch.header, schema)
    return launch.header, launch.sections, nested


def bucket_edges(schema: dict[str, Any]) -> list[float]:
    """Of a histogram: bucket k counts from edge k up to edge k + 1, the outer ones all beyond."""
    if schema["scale"] == "log2":
        return [0.0, *(2.0**power for power in range(schema["cap"]))]
    return [float(schema["low"] + schema["step"] * k) for k in range(schema["cap"] + 1)]


def _fields(schema: dict[str, Any]) -> list[tuple[str, str, int, str]]:
    """Name, struct letter, offset in the record, and how values were combined."""
    if schema["type"] == "hist":
        return [("count", "Q", 0, "sum")]
    fields: list[tuple[str, str, int, str]] = schema["fields"]
    return fields


def _record(schema: dict[str, Any]) -> Any:
    make: Any = namedtuple
    return make("Record", [name for name, *_ in _fields(schema)], rename=True)


def _read_map(
    memory: memoryview,
    header: TraceHeader,
    schema: dict[str, Any],
    section: TraceSection,
    entry: dict[str, Any],
) -> MapRecords:
    slots = entry["slots"]
    bounds = None
    if schema["dynamic"]:
        bounds = struct.unpack_from(f"<{slots + 1}Q", memory, entry["offsets_at"])
    used = (bounds[-1] if bounds else slots * schema["cap"]) * schema["size"]
    if section.offset + used > len(memory):
        raise ValueError(f"the file ends before the records of map {schema['name']} do")
    counts = _counts(memory, slots + (schema["level"] == "sm"), entry)
    beyond = int(counts[slots]) if schema["level"] == "sm" else 0
    counts = counts[:slots]
    data = memory[section.offset : section.offset + used]
    if schema["type"] == "hist":
        kept: Any = [schema["cap"]] * slots
    elif bounds:
        kept = [min(n, bounds[at + 1] - bounds[at]) for at, n in enumerate(counts)]
    else:
        kept = counts.clip(max=schema["cap"]) if np else [min(n, schema["cap"]) for n in counts]
    records, of_slot = (_rows_numpy if np else _rows_struct)(data, schema, kept, bounds)
    missing = [at for at in _empty(counts) if not _absent(header, schema, at)]
    saved = int(counts.sum()) if np else sum(counts)
    dropped = saved - len(records) if schema["type"] == "array" else 0
    index = _index(header, schema, of_slot)
    return MapRecords(records, of_slot, index, missing, dropped + beyond, slots)


def _counts(memory: memoryview, length: int, entry: dict[str, Any]) -> Any:
    """Saves in each slot."""
    if "counts_at" not in entry:
        return np.full(length, entry["count"], np.int64) if np else [entry["count"]] * length
    if np:
        return np.frombuffer(memory, "<u4", length, entry["counts_at"]).astype(np.int64)
    return list(struct.unpack_from(f"<{length}I", memory, entry["counts_at"]))


def _rows_numpy(data: Any, schema: dict[str, Any], kept: Any, bounds: Any) -> tuple[Any, Any]:
    fields = _fields(schema)
    letters = {"Q": "<u8", "q": "<i8", "I": "<u4", "i": "<i4", "f": "<f4"}
    dtype = np.dtype(
        {
            "names": [name for name, *_ in fields],
            "formats": [letters[letter] for _, letter, *_ in fields],
            "offsets": [offset for _, _, offset, _ in fields],
            "itemsize": schema["size"],
        }
    )
    rows = np.frombuffer(data, dtype)
    kept = np.asarray(kept, np.int64)
    slots = np.repeat(np.arange(len(kept)), kept)
    if len(slots) != len(rows):
        first = np.arange(len(kept)) * schema["cap"] if bounds is None else np.array(bounds[:-1])
        within = np.arange(len(slots)) - np.repeat(np.cumsum(kept) - kept, kept)
        rows = rows[np.repeat(first.astype(np.int64), kept) + within]
    keyed = [(name, letter, how) for name, letter, _, how in fields if how != "sum"]
    if keyed:
        rows = rows.copy()
        for name, letter, how in keyed:
            raw = rows[name].tolist() if letter != "f" else rows[name].view("<u4").tolist()
            values = [_unkeyed(key, letter, how) for key in raw]
            rows[name] = np.array(values, letters[letter])
    return rows, slots


def _rows_struct(data: Any, schema: dict[str, Any], kept: Any, bounds: Any) -> tuple[Any, Any]:
    fields = _fields(schema)
    form, end = "<", 0
    for _, letter, offset, how in fields:
        letter = "I" if letter == "f" and how != "sum" else letter
        form += f"{offset - end}x{letter}"
        end = offset + struct.calcsize(letter)
    layout = struct.Struct(f"{form}{schema['size'] - end}x")
    record = _record(schema)
    plain = bounds is None and all(how == "sum" for *_, how in fields)
    if plain and all(number == schema["cap"] for number in kept):
        full = list(map(record._make, layout.iter_unpack(data)))
        return full, [slot for slot, number in enumerate(kept) for _ in range(number)]
    rows, slots = [], []
    for slot, number in enumerate(kept):
        first = bounds[slot] if bounds else slot * schema["cap"]
        for k in range(first, first + number):
            values = layout.unpack_from(data, k * schema["size"])
            rows.append(
                record(
                    *(
                        value if how == "sum" else _unkeyed(value, letter, how)
                        for value, (_, letter, _, how) in zip(values, fields, strict=True)
                    )
                )
            )
            slots.append(slot)
    return rows, slots


def _unkeyed(key: int, letter: str, how: str) -> int | float:
    """The value behind the integer that a GPU keeps of a least or greatest value."""
    bits = 64 if letter in "Qq" else 32
    key &= (1 << bits) - 1
    if how == "min":
        key ^= (1 << bits) - 1
    sign = 1 << (bits - 1)
    if letter == "f":
        pattern = key ^ sign if key & sign else key ^ 0xFFFFFFFF
        value: float = struct.unpack("<f", struct.pack("<I", pattern))[0]
        return value
    if letter in "qi":
        return key - sign
    return key


def _empty(counts: Any) -> list[int]:
    if np:
        empty: list[int] = np.flatnonzero(counts == 0).tolist()
        return empty
    return [slot for slot, count in enumerate(counts) if not count]


def _threads(header: TraceHeader) -> int:
    return header.blockDimX * header.blockDimY * header.blockDimZ


def _thinned(schema: dict[str, Any]) -> bool:
    finer = ["thread", "warp"] + ["block"] * (schema["sample_unit"] == "block")
    return bool(schema["sample"] > 1 and schema["level"] in finer)


def _absent(header: TraceHeader, schema: dict[str, Any], slot: int) -> bool:
    """Whether the launch has no thread for the slot: of a sampled warp that is part filled."""
    spare = _threads(header) % 32
    if not (_thinned(schema) and schema["sample_unit"] == "warp" and spare):
        return False
    last = (slot // 32 * schema["sample"] + 1) % -(-_threads(header) // 32) == 0
    return schema["level"] == "thread" and last and slot % 32 >= spare


def _index(header: TraceHeader, schema: dict[str, Any], slots: Any) -> Any:
    """What each slot stands for: itself unless only some warps or blocks were sampled."""
    if not _thinned(schema):
        return slots
    sample, threads = schema["sample"], _threads(header)
    warps = -(-threads // 32)
    per_block = {"thread": threads, "warp": warps, "block": 1}[schema["level"]]
    found = []
    for slot in _listed(slots):
        if schema["sample_unit"] == "block":
            found.append(slot // per_block * sample * per_block + slot % per_block)
        elif schema["level"] == "warp":
            found.append(slot * sample)
        else:
            block, within = divmod(slot // 32 * sample, warps)
            found.append(block * threads + within * 32 + slot % 32)
    return found


def _by_block(slots: list[Any], header: TraceHeader, schema: dict[str, Any]) -> list[Any]:
    threads = _threads(header)
    per_block = {"thread": threads, "warp": -(-threads // 32), "block": 1}.get(schema["level"])
    if per_block is None or _thinned(schema):
        return slots
    return [slots[at : at + per_block] for at in range(0, len(slots), max(per_block, 1))]


def _listed(values: Any) -> list[int]:
    listed: list[int] = values if isinstance(values, list) else values.tolist()
    return listed


def main(paths: list[str]) -> None:
    for path in paths:
        launch = read(path)
        grid, block = launch.header[:3], launch.header[3:6]
        modelled = ", modelled" if launch.facts["modelled"] else ""
        print(f"{path}: {launch.facts['kernel']}, grid {grid}, block {block}{modelled}")
        for name, found in launch.maps.items():
            print(
                f"  map {name}: {len(found.records)} records in {found.slot_count} slots, "
                f"{len(found.missing)} empty, {found.dropped} dropped"
            )
            for at, record in list(zip(found.index, found.records, strict=True))[:5]:
                print(f"    {at}: {record}")


if __name__ == "__main__":
    main(sys.argv[1:])
