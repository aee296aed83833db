"""Small probe programs at a given position."""

from __future__ import annotations

from functools import cache

from gpuwatch.probe import parse_python
from gpuwatch.probe.model import Program

COUNT = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="thread", type="array", size=16, cap=1)
class counts:
    number: gl.u32
    total: gl.u64


number: gl.u32 = 0
total: gl.u64 = 0


@probe(pos="{position}", level="thread", before={before})
def at():
    number = number + 1
    total = total + {value}


@probe(pos="kernel", level="thread")
def leave():
    counts.save(number, total)
"""
RECORD = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="{level}", type="array", size={size}, cap=64)
class seen:
{fields}


@probe(pos="{position}", level="{level}", before={before})
def at():
    seen.save({values})
"""


@cache
def counting(position: str, before: bool = True, value: str = "1") -> Program:
    return parse_python(COUNT.format(position=position, before=before, value=value), "c.py")


def recording(
    position: str, values: dict[str, tuple[str, str]], before: bool = True, level: str = "thread"
) -> Program:
    """Saves each named (type, expression) at the position."""
    fields = "\n".join(f"    {name}: gl.{type_}" for name, (type_, _) in values.items())
    text = RECORD.format(
        level=level, size=8 * len(values), fields=fields, position=position, before=before,
        values=", ".join(value for _, value in values.values()),
    )  # fmt: skip
    return parse_python(text, "r.py")
