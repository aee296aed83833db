"""The `read.py` of a trace: a reader that stands alone, for one probe's maps."""

from __future__ import annotations

import pprint
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpuwatch.probe.language import layout_of
from gpuwatch.probe.model import Map
from gpuwatch.trace.info import map_values

NAME = "read.py"
_LETTERS = {"u32": "I", "u64": "Q", "s32": "i", "s64": "q", "f32": "f", "pred": "I"}
"""Struct letters of the fields' types."""
_PLACE = "MAPS: tuple[dict[str, Any], ...] = ()\n"


def reader_script(probe: str, maps: Sequence[Map]) -> str:
    """The text of `read.py` for the result files of a probe with these maps."""
    template = Path(__file__).with_name("read_template.py").read_text(encoding="utf-8")
    schemas = pprint.pformat(tuple(map(_schema, maps)), width=96, sort_dicts=False)
    known = f"# The maps of probe {probe!a}.\n{_PLACE.removesuffix('()' + chr(10))}{schemas}\n"
    return template.replace(_PLACE, known)


def _schema(map_: Map) -> dict[str, Any]:
    offsets, _ = layout_of(map_.fields)
    return {
        **map_values(map_),
        "fields": [
            (one.name, _LETTERS[one.type], offset, one.reduction)
            for one, offset in zip(map_.fields, offsets, strict=True)
        ],
    }
