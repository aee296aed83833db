"""Records that the device keeps in fewer bytes than their map tells."""

from __future__ import annotations

import numpy as np
import pytest
from weaving import kernel, run

from gpuwatch.device.base import FieldPlace
from gpuwatch.engine.reduction import reduction_of
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.model import MapPlace
from gpuwatch.instrument.packing import pack
from gpuwatch.probe import parse_python
from gpuwatch.probe.catalogue import folder, load
from gpuwatch.probe.model import Field, Map
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find
from gpuwatch.trace.decode import folding, read_place

PROGRAM = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe

@Map(level="{level}", type="array", size=32, cap={cap})
class times:
    start: gl.u64
    elapsed: gl.u64
    warp: {warp}
    sm: {sm}

begun: gl.u64 = 0
lasted: {lasted} = 0
other: gl.u32 = 0

@probe(pos="kernel", level="{level}", before=True)
def arrive():
    {arrive}

@probe(pos="kernel", level="{level}")
def leave():
    {first}
    {leave}
"""
MIXED = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe

@Map(level="warp", type="array", size=24, cap=1)
class mixed:
    ratio: gl.f32
    warp: gl.u64
    kind: {kind}

ratio: gl.f32 = 0

@probe(pos="kernel", level="warp")
def leave():
    ratio = gl.f32(gl.laneid()) / 3
    mixed.save({values})
"""
USUAL = {
    "level": "warp",
    "cap": 1,
    "warp": "gl.u64",
    "sm": "gl.u64",
    "lasted": "gl.u64",
    "arrive": "begun = gl.clock()",
    "first": "lasted = gl.clock() - begun",
    "leave": "times.save(begun, lasted, gl.warpid(), gl.smid())",
}
SMALL = {"start": "u64", "elapsed": "u32", "sm": "u32"}


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, SMALL),
        ({"warp": "gl.s64", "sm": "gl.s64"}, SMALL),
        ({"leave": "times.save(begun, gl.clock() - begun, gl.warpid(), gl.cuid())"}, SMALL),
        ({"leave": "times.save(begun, lasted, gl.warpid(), gl.laneid())"}, SMALL),
        ({"warp": "gl.u32", "sm": "gl.u32"}, None),  # a record takes 24 bytes then
        ({"warp": "gl.f32"}, None),
        ({"lasted": "gl.u32"}, None),
        ({"lasted": "gl.s32"}, None),
        ({"level": "thread"}, None),
        ({"cap": 2}, None),
        ({"arrive": "begun = gl.time()"}, None),
        ({"arrive": "begun = gl.clock()\n    begun = begun - 1"}, None),
        (
            {"leave": USUAL["leave"] + "\n    lasted = gl.clock() - begun", "first": "other = 1"},
            None,
        ),
        ({"leave": "times.save(gl.warpid(), lasted, gl.warpid(), gl.smid())"}, SMALL),  # its start
        ({"leave": "lasted = lasted * 2\n    " + USUAL["leave"]}, None),
        ({"leave": "if lasted > 3:\n        " + USUAL["leave"]}, None),
        ({"leave": USUAL["leave"] + "\n    " + USUAL["leave"]}, None),
        ({"leave": "times.save(begun, lasted, gl.warpid() + 1, gl.smid() + 1)"}, None),
    ],
)
def test_what_follows_from_the_rest_is_not_stored(
    changes: dict[str, object], fields: dict[str, str] | None
) -> None:
    program = parse_python(PROGRAM.format(**(USUAL | changes)), "times.py")
    stored = {
        name: {field.name: field.type for field in one.fields}
        for name, one in pack(program).stored.items()
    }
    assert stored == ({} if fields is None else {"times": fields})


def test_nothing_is_packed_where_a_thread_may_run_for_long() -> None:
    module = parse(kernel("\tret;\n"))
    program, shape = load("warp_duration"), ((2, 1, 1), (40, 1, 1))
    long, brief = (weave(module, "k", program, shape, brief=one) for one in (False, True))
    assert long.stored == {} and set(brief.stored) == {"warp_duration"}
    sizes = [lay_out(one, *shape).buffers[0] for one in (long, brief)]
    assert sizes == [4 * 32, 4 * 16]


@pytest.mark.parametrize("shape", [((3, 2, 1), (40, 1, 1)), ((5, 1, 1), (64, 2, 1))])
def test_records_are_the_same_in_both_forms(
    shape: tuple[tuple[int, int, int], tuple[int, int, int]],
) -> None:
    grid, block = shape
    text = kernel("\tst.global.u32 [%a1], %i10;\n\tret;\n")
    whole, packed = (run(text, load("warp_duration"), grid, block, known=one) for one in (0, 1))
    assert packed.woven.stored and not whole.woven.stored
    for name in ("warpid", "sm"):
        columns = [one.maps["warp_duration"].column(name) for one in (whole, packed)]
        assert np.array_equal(*columns)
    assert packed.maps["warp_duration"].records.dtype == whole.maps["warp_duration"].records.dtype


def test_the_example_in_ptx_records_what_the_preset_does() -> None:
    example = load(str(folder("probes") / "examples" / "warp_duration.toml"))
    text = kernel("\tst.global.u32 [%a1], %i10;\n\tret;\n")
    for known in (False, True):
        ours, theirs = (
            run(text, one, (3, 2, 2), (17, 3, 2), known=known).maps["warp_duration"]
            for one in (load("warp_duration"), example)
        )
        assert ours.map.fields == theirs.map.fields
        for name in ("warpid", "sm"):
            assert np.array_equal(ours.column(name), theirs.column(name))


@pytest.mark.parametrize(
    "values",
    [
        ("ratio", "gl.warpid()", "7"),
        ("1.5", "gl.warpid()", "-2"),
        ("1.5", "gl.warpid()", "gl.smid()"),
        ("ratio", "gl.warpid()", "gl.laneid() > 3"),
    ],
)
@pytest.mark.parametrize("kind", ["gl.u32", "gl.s32", "gl.pred"])
def test_ptxas_takes_what_comes_to_lie_side_by_side(values: tuple[str, ...], kind: str) -> None:
    program = parse_python(MIXED.format(values=", ".join(values), kind=kind), "mixed.py")
    module = parse(kernel("\tst.global.u32 [%a1], %i10;\n\tret;\n"))
    for brief in (False, True):
        woven = weave(module, "k", program, ((2, 1, 1), (40, 1, 1)), brief=brief)
        assert bool(woven.stored) == brief
        assert assemble(find(), woven.text, "sm_86", "k").registers > 0


def test_a_record_that_never_arrived_stays_missing() -> None:
    fields = tuple(Field(name, "u64") for name in ("start", "elapsed", "warpid", "sm"))
    declared = Map("times", "warp", "array", 32, 1, fields)
    stored = Map(
        "times", "warp", "array", 16, 1,
        (Field("start", "u64"), Field("elapsed", "u32"), Field("sm", "u32")),
    )  # fmt: skip
    place = MapPlace(declared, 3, 32, 0, 1, mark=0, packed=stored)
    content = np.zeros(3, [("start", "<u8"), ("elapsed", "<u4"), ("sm", "<u4")])
    content[1], content[2] = (5, (1 << 32) - 1, 7), (9, 2, 131)
    buffers = [content.view(np.uint8), np.empty(0, np.uint8)]
    layout = lay_out(
        weave(parse(kernel("\tret;\n")), "k", load("warp_duration")), (3, 1, 1), (32, 1, 1)
    )
    decoded = read_place(layout, place, buffers.__getitem__)
    assert decoded.missing.tolist() == [0]
    assert decoded.records.tolist() == [(5, (1 << 32) - 1, 1, 7), (9, 2, 2, 131)]
    read = folding([place], buffers.__getitem__)
    assert read(0).view("<u8").reshape(3, 4).tolist() == [
        [0, 0, 0, 0], [5, (1 << 32) - 1, 1, 7], [9, 2, 2, 131],
    ]  # fmt: skip
    assert read(1).view(np.uint32).tolist() == [0, 1, 1]
    reduction = reduction_of(place)
    assert (reduction.size, reduction.mark, reduction.start) == (16, 0, FieldPlace(0, 8))
    assert (reduction.elapsed, reduction.sm) == (FieldPlace(8, 4), FieldPlace(12, 4))
