"""Records that show by themselves that they arrived: their saves are not counted."""

from __future__ import annotations

import re

import numpy as np
import pytest
from weaving import kernel, run

from gpuwatch.instrument.model import MapPlace
from gpuwatch.probe import parse_python
from gpuwatch.probe.model import Field, Map
from gpuwatch.trace.decode import counts_of, decode

PROGRAM = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe

@Map(level="{level}", type="{type}", size={size}, cap={cap})
class times:
    number: gl.u32
    begun: gl.u64

begun: gl.u64 = 0

@probe(pos="kernel", level="{level}", before=True)
def arrive():
    {arrive}

@probe(pos="kernel", level="{level}")
def leave():
    {leave}
"""
RECORDED = Map("times", "warp", "array", 16, 1, (Field("number", "u32"), Field("begun", "u64")))
USUAL = {
    "level": "warp",
    "type": "array",
    "size": 16,
    "cap": 1,
    "arrive": "begun = gl.clock()",
    "leave": "times.save(gl.warpid(), begun)",
}


@pytest.mark.parametrize(
    ("changes", "offset"),
    [
        ({}, 8),
        ({"level": "thread"}, 8),
        ({"leave": "times.save(gl.warpid(), gl.clock())"}, 8),
        ({"leave": "times.save(gl.warpid(), begun + 1)"}, None),
        ({"leave": "times.save(gl.warpid(), gl.clock() - begun)"}, None),
        ({"leave": "begun = 0\n    times.save(gl.warpid(), begun)"}, None),
        ({"arrive": "if gl.laneid() > 3:\n        begun = gl.clock()"}, None),
        ({"arrive": "begun = gl.time()"}, None),
        ({"cap": 2}, None),
        ({"leave": "times.save(1, begun)\n    times.save(2, begun)"}, None),
    ],
)
def test_a_clock_marks_a_record(changes: dict[str, object], offset: int | None) -> None:
    program = parse_python(PROGRAM.format(**(USUAL | changes)), "times.py")
    probed = run(kernel("\tret;\n"), program, (2, 1, 1), (40, 1, 1))
    assert probed.woven.marks.get("times") == offset
    assert set(probed.counts["times"].tolist()) == {len(re.findall("save", str(changes))) or 1}


def test_a_slot_without_a_record_is_missing() -> None:
    place = MapPlace(RECORDED, 3, 32, 0, 1, mark=8)
    records = np.zeros((3, 2), np.uint64)
    records[[0, 2], 1] = 1 << 40, 7
    buffers = [records.reshape(-1).view(np.uint8), np.empty(0, np.uint8)]
    counts = counts_of(place, buffers.__getitem__)
    assert counts.tolist() == [1, 0, 1]
    assert decode(RECORDED, 3, buffers[0], counts).missing.tolist() == [1]
