"""Records as Parquet, for DuckDB, Polars, Spark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from gpuwatch.errors import UserError
from gpuwatch.probe.model import Map
from gpuwatch.trace.export.rows import columns_of_map, row_pieces
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.reading import LaunchRecords

_ROWS = 1 << 20
"""Rows of a row group."""


def write_parquet(
    path: Path, facts: KernelFacts, map_: Map, launches: Iterable[LaunchRecords]
) -> int:
    """One row per record; the unit of a column is in its metadata, kernel and device in those of
    the schema. Gives the number of rows. Raises UserError without pyarrow."""
    arrow, parquet = _libraries()
    columns = columns_of_map(map_, facts)
    schema = arrow.schema(
        [
            arrow.field(
                column.name,
                arrow.from_numpy_dtype(column.dtype),
                metadata={"unit": column.unit} if column.unit else None,
            )
            for column in columns
        ],
        metadata={
            "kernel": facts.name,
            "grid": " ".join(map(str, facts.grid)),
            "block": " ".join(map(str, facts.block)),
            "probe": facts.probe,
            "map": map_.name,
            "device": facts.device.name,
            "clock_hz": str(facts.device.clock_hz),
            "modelled": str(facts.device.modelled).lower(),
        },
    )
    rows = 0
    with parquet.ParquetWriter(str(path), schema, compression="zstd") as writer:
        for launch in launches:
            for piece in row_pieces(launch, map_.name, _ROWS):
                arrays = [np.ascontiguousarray(piece[column.name]) for column in columns]
                writer.write_table(
                    arrow.Table.from_arrays(list(map(arrow.array, arrays)), schema=schema)
                )
                rows += len(arrays[0])
    return rows


def _libraries() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as problem:
        raise UserError(
            "Parquet needs pyarrow, which is not installed",
            hint="pip install 'gpuwatch-live[export]', or export to csv",
        ) from problem
    return pyarrow, pyarrow.parquet
