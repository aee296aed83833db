"""Tables of records: CSV, JSON and NumPy's npz."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from gpuwatch.probe.model import Map
from gpuwatch.trace.export.rows import columns_of_map, row_pieces
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.reading import LaunchRecords

Launches = Iterable[LaunchRecords]


def write_csv(path: Path, facts: KernelFacts, map_: Map, launches: Launches) -> int:
    """One row per record, with a line of names; gives the number of rows."""
    rows = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([column.name for column in columns_of_map(map_, facts)])
        for launch in launches:
            for piece in row_pieces(launch, map_.name):
                columns = [column.tolist() for column in piece.values()]
                writer.writerows(zip(*columns, strict=True))
                rows += len(columns[0])
    return rows


def write_json(path: Path, facts: KernelFacts, launches: Launches) -> int:
    """One document: the kernel, the columns and their units, and of each launch what is known of
    it and the rows of every map; gives the number of rows. Values that JSON has no words for, as
    NaN, are null."""
    head = {
        "kernel": facts.name,
        "mangled": facts.mangled,
        "grid": facts.grid,
        "block": facts.block,
        "probe": facts.probe,
        "device": asdict(facts.device),
        "maps": {
            map_.name: [
                {"name": column.name, "unit": column.unit} for column in columns_of_map(map_, facts)
            ]
            for map_ in facts.maps
        },
    }
    rows = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "launches": [')
        for number, launch in enumerate(launches):
            file.write(",\n" if number else "\n")
            rows += _json_launch(file.write, launch)
        file.write("\n]}\n")
    return rows


def _json_launch(put: Callable[[str], object], launch: LaunchRecords) -> int:
    about = {"number": launch.launch.number, "kernel_seconds": launch.launch.kernel_seconds}
    put(json.dumps(about)[:-1] + ', "missing": ')
    missing = {name: len(decoded.missing) for name, decoded in launch.maps.items()}
    dropped = {name: decoded.dropped for name, decoded in launch.maps.items()}
    put(json.dumps(missing) + ', "dropped": ' + json.dumps(dropped) + ', "rows": {')
    rows = 0
    for place, name in enumerate(launch.maps):
        put(("," if place else "") + f"{json.dumps(name)}: [")
        first = True
        for piece in row_pieces(launch, name):
            columns = [column.tolist() for column in piece.values()]
            for row in zip(*columns, strict=True):
                put(("" if first else ",") + _row(row))
                first = False
            rows += len(columns[0])
        put("]")
    put("}}")
    return rows


def _row(row: tuple[object, ...]) -> str:
    known = [
        None if isinstance(value, float) and not np.isfinite(value) else value for value in row
    ]
    return json.dumps(known)


def write_npz(path: Path, facts: KernelFacts, launches: Launches) -> int:
    """An array for each column, called `<map>/<launch>/<column>`; gives the number of rows."""
    rows = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for launch in launches:
            for map_ in facts.maps:
                pieces = list(row_pieces(launch, map_.name))
                for column in columns_of_map(map_, facts):
                    arrays = [piece[column.name] for piece in pieces]
                    whole = np.concatenate(arrays) if arrays else np.empty(0, column.dtype)
                    name = f"{map_.name}/{launch.launch.number}/{column.name}.npy"
                    with archive.open(name, "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, whole, allow_pickle=False)
                rows += sum(len(next(iter(piece.values()))) for piece in pieces)
    return rows
