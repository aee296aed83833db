"""Records that show by themselves that they arrived: their saves are not counted."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from weaving import kernel, run

import gpuwatch
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.instrument.model import MapPlace
from gpuwatch.probe import parse_python
from gpuwatch.probe.catalogue import folder
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


def test_a_clock_behind_a_branch_is_read_there() -> None:
    kept = "times.save(1, gl.clock() - begun)"
    counts = []
    for body in (kept, "if gl.laneid() > 40:\n        other = gl.clock()\n    " + kept):
        text = PROGRAM.format(**(USUAL | {"leave": body})).replace(
            "begun: gl.u64 = 0\n", "begun: gl.u64 = 0\nother: gl.u64 = 0\n"
        )
        probed = run(
            kernel("\tret;\n"), parse_python(text, "t.py"), (2, 1, 1), (64, 1, 1), known=True
        )
        counts.append(probed.woven.text.count("%clock64;"))
    assert counts == [1, 3]


def test_no_clock_of_a_modelled_gpu_reads_zero(tmp_path: Path) -> None:
    profile = tmp_path / "quick.toml"
    text = (Path(gpuwatch.__file__).parent / "device/sim/profiles/a10.toml").read_text()
    profile.write_text(re.sub(r"(?m)^(launch|block) = \d+", r"\1 = 0", text))
    source = str(folder("kernels") / "gemm.cu")
    options = Options(source, f"sim:{profile}", probe="block_sched", arguments=("64",) * 3)
    session = Session(options)
    session.prepare()
    frame = session.frame()
    session.close()
    assert (frame.records, frame.missing) == (frame.warps, 0)
