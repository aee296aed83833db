"""What each kind of map holds after a launch, against the same figures computed with numpy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from weaving import HEADER, SHARED, Probed, kernel, launch_of, run

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.layout import index_of
from gpuwatch.probe import parse_python, parse_toml, verify
from gpuwatch.ptx import parse
from gpuwatch.trace import bucket_edges

HEAD = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe

"""
STORES = kernel(
    "\t.reg .b32 %v<3>; .reg .pred %p<2>;\n"
    "\tmul.lo.u32 %v1, %i10, 2654435761;\n"
    "\tst.global.u32 [%a1], %v1;\n"
    "\tsetp.lt.u32 %p1, %i1, 3;\n"
    "\t@%p1 st.global.u32 [%a1], %v1;\n"
    "\tret;\n"
)
"""Each thread stores the hash of its number; the first three of a block twice."""
GRID, BLOCK = (3, 1, 1), (40, 1, 1)
THREADS = 120
HASHES = (np.arange(THREADS, dtype=np.uint64) * 2654435761 & 0xFFFFFFFF).astype(np.uint32)
BLOCKS = np.repeat(np.arange(3), 40)
TWICE = np.arange(THREADS) % 40 < 3
SAVED = np.concatenate((HASHES, HASHES[TWICE]))
SAVERS = np.concatenate((np.arange(THREADS), np.arange(THREADS)[TWICE]))


def program(map_: str, saved: str, options: str = 'level="thread"', where: str = "st.global"):
    text = HEAD + f'{map_}\n\n@probe(pos="{where}", {options})\ndef f():\n    m.save({saved})\n'
    parsed = parse_python(text, "t.py")
    verify(parsed)
    return parsed


def stores(map_: str, saved: str, options: str = 'level="thread"') -> Probed:
    probed = run(STORES, program(map_, saved, options), GRID, BLOCK)
    assert np.array_equal(probed.plain, probed.output)
    return probed


def reduce_map(level: str, fields: str) -> str:
    return f'@Map(level="{level}", type="reduce")\nclass m:\n' + "".join(
        f"    {field}\n" for field in fields.split("; ")
    )


SLOT_OF: dict[str, Callable[[NDArray[np.int64]], NDArray[np.int64]]] = {
    "thread": lambda thread: thread,
    "warp": lambda thread: thread // 40 * 2 + thread % 40 // 32,
    "block": lambda thread: thread // 40,
    "kernel": lambda thread: thread * 0,
}


@pytest.mark.parametrize("level", SLOT_OF)
def test_reductions_of_every_level(level: str) -> None:
    fields = "total: gl.u64 = sum; least: gl.u32 = min; most: gl.u32 = max; number: gl.u32"
    got = stores(reduce_map(level, fields), "gl.in1, gl.in1, gl.in1, 1").maps["m"]
    slots = SLOT_OF[level](SAVERS)
    expected = [
        (int(part.sum(dtype=np.uint64)), int(part.min()), int(part.max()), len(part))
        for slot in np.unique(slots)
        for part in [SAVED[slots == slot]]
    ]
    assert got.records.tolist() == expected
    assert got.slots.tolist() == np.unique(slots).tolist()


@pytest.mark.parametrize("level", [*SLOT_OF, "site"])
def test_lanes_that_save_the_same_are_counted_one_by_one(level: str) -> None:
    fields = "number: gl.u64; down: gl.s32 = sum; bytes: gl.u32 = sum; most: gl.s32 = max"
    probed = stores(reduce_map(level, fields), "1, -3, gl.bytes, gl.bytes - 5")
    slots = np.repeat([0, 1], [120, 9]) if level == "site" else SLOT_OF[level](SAVERS)
    expected = [(count, -3 * count, 4 * count, -1) for count in np.bincount(slots).tolist()]
    assert probed.maps["m"].records.tolist() == expected
    per_lane = probed.woven.text.count("red.global") if level == "thread" else 0
    assert probed.woven.text.count("popc.b32") == (0 if per_lane else 2)


SHARING = (
    HEAD
    + """\
@Map(level="kernel", type="reduce")
class ends:
    number: gl.u32 = max

@Map(level="warp", type="array")
class warps:
    number: gl.u32

@Map(level="warp", type="array")
class sampled:
    number: gl.u32

@probe(pos="kernel", level="thread")
def count():
    ends.save(1)

@probe(pos="kernel", level="warp")
def warp():
    warps.save(gl.warpid())

@probe(pos="kernel", level="warp", sample=2, sample_unit="block")
def some():
    sampled.save(gl.warpid())
"""
)


def test_what_a_place_knows_of_its_warp_is_found_once() -> None:
    parsed = parse_python(SHARING, "t.py")
    verify(parsed)
    probed = run(STORES, parsed, GRID, BLOCK)
    assert probed.maps["ends"].records.tolist() == [(1,)]
    assert probed.maps["warps"].column("number").tolist() == list(range(6))
    assert probed.maps["sampled"].column("number").tolist() == [0, 1, 4, 5]
    assert probed.woven.text.count("popc.b32") == 1
    assert probed.woven.text.count("shr.u32") == 2


def test_signed_values_and_floats_are_combined_in_their_own_order() -> None:
    fields = (
        "a: gl.s32 = min; b: gl.s32 = max; c: gl.s64 = min; d: gl.s64 = max; "
        "e: gl.f32 = min; f: gl.f32 = max; g: gl.s32 = sum; h: gl.f32"
    )
    number = "(gl.s32(gl.thread) - 20)"
    wide = "(gl.s64(gl.thread) - 20) * 10000000000"
    real = "gl.f32(gl.s32(gl.thread) - 20) / 4"
    saved = f"{number}, {number}, {wide}, {wide}, {real}, {real}, {number}, {real}"
    got = stores(reduce_map("kernel", fields), saved).maps["m"].records[0]
    numbers = np.concatenate([np.arange(40) - 20, np.arange(3) - 20])
    total = 3 * int(numbers.sum())
    assert got.item() == (-20, 19, -200000000000, 190000000000, -5.0, 4.75, total, total / 4)


@pytest.mark.parametrize(("shift", "expected"), [(5, (5, 44)), (-60, (-60, -21))])
def test_zeroed_buffers_do_not_spoil_the_least_and_the_greatest(
    shift: int, expected: tuple[int, int]
) -> None:
    map_ = reduce_map(
        "kernel", "a: gl.s32 = min; b: gl.s32 = max; c: gl.f32 = min; d: gl.f32 = max"
    )
    value = f"gl.s32(gl.thread) + {shift}"
    got = stores(map_, f"{value}, {value}, gl.f32({value}), gl.f32({value})").maps["m"]
    assert got.records[0].item() == (*expected, *expected)


def test_no_number_counts_for_nothing_among_numbers() -> None:
    map_ = reduce_map("block", "a: gl.f32 = min; b: gl.f32 = max")
    value = "gl.f32(gl.thread_x + 0 * gl.block) / gl.f32(gl.thread_x)"
    got = stores(map_, f"{value}, {value}").maps["m"]
    assert got.records.tolist() == [(1.0, 1.0)] * 3
    never = "gl.f32(0 * gl.thread) / gl.f32(0 * gl.thread)"
    for record in stores(map_, f"{never}, {never}").maps["m"].records:
        assert all(math.isnan(value) for value in record)


def test_a_slot_per_site() -> None:
    probed = stores(reduce_map("site", "number: gl.u64; which: gl.u32 = max"), "1, gl.site")
    assert probed.maps["m"].records.tolist() == [(120, 0), (9, 1)]
    assert [site.ptx_line for site in probed.woven.sites] == [
        line for line, text in enumerate(STORES.splitlines(), 1) if "st.global" in text
    ]


def test_a_slot_per_sm() -> None:
    probed = stores(reduce_map("sm", "number: gl.u64; sm: gl.u32 = max"), "1, gl.smid()")
    got = probed.maps["m"]
    assert got.column("number").sum() == 129
    assert got.column("sm").tolist() == got.slots.tolist()
    assert len(got.missing) == probed.sm_count - len(got)
    assert got.dropped == 0


@pytest.mark.parametrize("options", ['type="reduce"', "cap=99", 'cap="dynamic"', 'type="hist"'])
def test_saves_on_sms_beyond_the_map_are_counted_as_dropped(options: str) -> None:
    parsed = program(
        f'@Map(level="sm", {options})\nclass m:\n    number: gl.u64\n', "gl.thread + 1"
    )
    probed = run(STORES, parsed, GRID, BLOCK, sm_count=1)
    assert np.array_equal(probed.plain, probed.output)
    got = probed.maps["m"]
    kept = 43 if options != 'type="reduce"' else len(got)
    assert got.dropped == 86
    assert (got.column("count").sum() if got.map.type == "hist" else len(got)) == kept
    assert set(got.slots.tolist()) == {0}


@pytest.mark.parametrize("cap", ["2", '"dynamic"'])
def test_no_number_of_saves_brings_a_full_slot_back_to_its_beginning(cap: str) -> None:
    parsed = program(f'@Map(level="kernel", cap={cap})\nclass m:\n    n: gl.u64\n', "gl.site")
    woven = weave(parse(STORES), "k", parsed)
    layout = lay_out(woven, GRID, BLOCK)
    already = np.array([2**31 - 10], np.uint32).view(np.uint8)
    device = open_sim("a10", threads=1)
    image = KernelImage("k", woven.text, b"", 40, SHARED, woven.pointer_variable)
    contents = {**layout.fixed, 1: already}
    loaded = device.load(image, launch_of(GRID, BLOCK, 0), layout.buffers, contents)
    loaded.run()
    assert loaded.read_map(1).view(np.uint32).tolist() == [2**31]
    assert not loaded.read_map(0).any()
    loaded.close()
    device.close()


HIST = '@Map(level="{level}", type="hist", {options})\nclass {name}:\n    value: gl.{type}\n\n'
VALUES = {
    "u32": ("gl.u32(gl.in1) >> (gl.thread & 31)", SAVED >> (SAVERS % 40 & 31).astype(np.uint32)),
    "s32": ("gl.s32(gl.thread) * 3 - 40", SAVERS % 40 * 3 - 40),
    "u64": ("gl.u64(gl.in1) << (gl.thread & 31)",
            SAVED.astype(np.uint64) << (SAVERS % 40 & 31).astype(np.uint64)),
    "s64": ("gl.s64(gl.thread) * 100000000000 - 500000000000",
            SAVERS % 40 * 100000000000 - 500000000000),
    "f32": ("gl.f32(gl.thread) * 0.75 - 2.5", SAVERS % 40 * 0.75 - 2.5),
}  # fmt: skip
SCALES = [
    'scale="log2"',
    'scale="log2", cap=9',
    'scale="linear", cap=10, step=7',
    'scale="linear", cap=5, low=10, step=8',
    'scale="linear", cap=64, step=100000000',
]


@pytest.mark.parametrize("type_", VALUES)
def test_histograms(type_: str) -> None:
    saved, values = VALUES[type_]
    text, saves = HEAD, ""
    for number, options in enumerate(SCALES):
        options = options.replace("low=10", "low=-30") if type_.startswith("s") else options
        text += HIST.format(level="kernel", options=options, name=f"m{number}", type=type_)
        saves += f"    m{number}.save({saved})\n"
    text += f'@probe(pos="st.global", level="thread")\ndef f():\n{saves}'
    parsed = parse_python(text, "t.py")
    verify(parsed)
    for name, got in run(STORES, parsed, GRID, BLOCK).maps.items():
        edges = bucket_edges(got.map)
        buckets = np.searchsorted(edges, values.astype(np.float64), side="right") - 1
        expected = np.bincount(np.clip(buckets, 0, got.map.cap - 1), minlength=got.map.cap)
        assert got.column("count").tolist() == expected.tolist(), name


def test_a_histogram_per_block() -> None:
    options = 'scale="linear", cap=4, step=16'
    map_ = HIST.format(level="block", options=options, name="m", type="u32")
    got = stores(map_, "gl.thread").maps["m"]
    assert got.column("count").tolist() == [16 + 3, 16, 8, 0] * 3


DYNAMIC = '@Map(level="{level}", type="array", size=8, cap="dynamic")\nclass m:\n    n: gl.u64\n'


@pytest.mark.parametrize("level", [*SLOT_OF, "site", "sm"])
def test_dynamic_maps_hold_every_record(level: str) -> None:
    got = stores(DYNAMIC.format(level=level), "gl.thread + gl.block * 40").maps["m"]
    assert got.dropped == 0
    assert sorted(got.column("n").tolist()) == sorted(SAVERS.tolist())
    if level in SLOT_OF:
        slots = SLOT_OF[level](got.column("n").astype(np.int64))
        assert got.slots.tolist() == slots.tolist()


ARRAY = '@Map(level="{level}", type="array", cap=2)\nclass m:\n    number: gl.u64\n'
PARTED = ("warp", "block")
"""Blocks have sampled warps and others."""
NUMBERS = {"thread": "gl.block * 40 + gl.thread", "warp": "gl.warpid()", "block": "gl.block"}


@pytest.mark.parametrize("kind", ["array", "dynamic"])
@pytest.mark.parametrize(
    ("unit", "level"),
    [(unit, level) for level in NUMBERS for unit in ("warp", "block") if (unit, level) != PARTED],
)
def test_sampled_maps_have_slots_for_the_sample_only(unit: str, level: str, kind: str) -> None:
    sample = 2 if kind == "array" else 3
    text = ARRAY.format(level=level)
    if kind == "dynamic":
        text = text.replace("cap=2", 'cap="dynamic"')
    wanted = "warp" if level == "warp" else "thread"
    options = f'level="{wanted}", sample={sample}, sample_unit="{unit}"'
    parsed = program(text, NUMBERS[level], options, "kernel")
    probed = run(STORES, parsed, GRID, BLOCK)
    assert np.array_equal(probed.plain, probed.output)
    got = probed.maps["m"]
    layout = lay_out(probed.woven, GRID, BLOCK)
    (place,) = layout.places
    assert place.sample == sample
    assert got.column("number").tolist() == index_of(layout, place, got.slots).tolist()
    units = SLOT_OF[unit](np.arange(THREADS)) % sample == 0
    assert len(np.unique(got.column("number"))) == len(
        np.unique(SLOT_OF[level](np.arange(THREADS)[units]))
    )
    assert len(got.missing) == 0
    assert place.slots < len(np.unique(SLOT_OF[level](np.arange(THREADS))))


def test_sampled_totals_know_their_scale() -> None:
    options = 'level="thread", sample=2, sample_unit="block"'
    probed = stores(reduce_map("kernel", "number: gl.u64"), "1", options)
    assert probed.maps["m"].records.tolist() == [(2 * 43,)]
    assert probed.maps["m"].map.sample == 2


def test_a_sample_is_decided_once_at_the_kernels_entry() -> None:
    whole = program(reduce_map("kernel", "number: gl.u64"), "1")
    sampled = program(reduce_map("kernel", "number: gl.u64"), "1", 'level="thread", sample=64')
    plain, some = (weave(parse(STORES), "k", one).text for one in (whole, sampled))
    assert plain.count("%ctaid.x;") == STORES.count("%ctaid.x;")
    assert some.count("%ctaid.x;") == STORES.count("%ctaid.x;") + 1


CALLED = HEADER + (
    ".visible .global .u32 word;\n"
    ".func leaf()\n{\n\t.reg .b32 %x<2>;\n\tld.global.u32 %x1, [word];\n\tret;\n}\n"
    ".visible .entry k()\n{\n\t.reg .b32 %x<2>;\n\tcall leaf;\n"
    "\tld.global.u32 %x1, [word];\n\tret;\n}\n"
)


@pytest.mark.parametrize("sample", [1, 2])
def test_samples_hold_in_called_functions_too(sample: int) -> None:
    options = f'level="thread", sample={sample}, sample_unit="block"'
    parsed = program(reduce_map("site", "number: gl.u64"), "1", options, "ld.global")
    probed = run(CALLED, parsed, GRID, BLOCK)
    assert {site.function for site in probed.woven.sites} == {"", "leaf"}
    assert probed.maps["m"].records.tolist() == [(120 if sample == 1 else 80,)] * 2


TOML = '''\
regs = 1
[probe.p]
level = "thread"
pos = "st.global"
sample = 2
sample_unit = "block"
before = """
mov.u32 %v, IN1; cvt.u64.u32 %NR0, %v; .reg .b32 %v; .reg .pred %odd; .reg .b16 %h;
and.b32 %v, %v, 1; setp.eq.u32 %odd, %v, 1; cvt.u16.u32 %h, %v;
@%odd SAVE [ odd ] { %NR0, %h, IN1, BYTES, ADDR };
"""
[map.odd]
level = "block"
type = "reduce"
regs = { total = ["u64", "sum"], bit = ["u32", "min"], least = ["u32", "min"], bytes = "u32", \
most = ["u64", "max"] }
'''


def test_the_toml_form_says_the_same() -> None:
    parsed = parse_toml(TOML, "t.toml")
    verify(parsed)
    probed = run(STORES, parsed, GRID, BLOCK)
    assert np.array_equal(probed.plain, probed.output)
    got = probed.maps["odd"]
    assert got.slots.tolist() == [0, 1]
    for block, record in zip((0, 2), got.records.tolist(), strict=True):
        values = SAVED[(BLOCKS[SAVERS] == block) & (SAVED % 2 == 1)]
        assert record[:4] == (
            int(values.sum(dtype=np.uint64)),
            1,
            int(values.min()),
            4 * len(values),
        )
