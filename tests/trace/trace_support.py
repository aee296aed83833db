"""Traces of random maps with random records, and readers of the article's binary form."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from gpuwatch.instrument.layout import lay_out
from gpuwatch.instrument.model import MapLayout, Site, Woven
from gpuwatch.probe.language import default_size
from gpuwatch.probe.model import Field, Map
from gpuwatch.trace.facts import DeviceFacts, KernelFacts, LaunchFacts
from gpuwatch.trace.reader_script import reader_script
from gpuwatch.trace.writer import Build, TraceWriter

SM_COUNT = 5
SITES = tuple(
    Site(
        k,
        "p",
        "ld.global",
        10 + k,
        5 + k,
        mix=(("fma", 2), ("ld", k)),
        lines=((5 + k, "fma", 2), (9, "ld", k)),
    )
    for k in range(3)
)
DEVICE = DeviceFacts("A GPU", "cuda", "0", "sm_90", SM_COUNT, 64, 1.7e9, False)
BLOCK_SCHED = Map(
    "block_sched",
    "warp",
    "array",
    16,
    1,
    (Field("start", "u64"), Field("elapsed", "u32"), Field("cuid", "u32")),
)
WARP_DURATION = Map(
    "warp_duration",
    "warp",
    "array",
    32,
    1,
    (Field("start", "u64"), Field("elapsed", "u64"), Field("warpid", "u64")),
)


@dataclass
class Launched:
    """A launch's map buffers by number."""

    facts: KernelFacts
    layout: MapLayout
    buffers: list[np.ndarray]

    def read_map(self, index: int) -> np.ndarray:
        return self.buffers[index]


def kernel_facts(maps, grid=(3, 2, 1), block=(64, 1, 1), **changes) -> KernelFacts:
    return KernelFacts(
        name="copy(int *)",
        mangled="_Z4copyPi",
        grid=grid,
        block=block,
        dynamic_shared_bytes=128,
        probe="p",
        maps=tuple(maps),
        sites=SITES,
        device=DEVICE,
        **changes,
    )


def launched(facts: KernelFacts, random: np.random.Generator, *, full=False) -> Launched:
    """Random records; every slot has one with `full`. Records that no save wrote are zeros."""
    woven = Woven("", "", "", facts.maps, facts.sites, ())
    shape = (facts.grid, facts.block)
    layout = lay_out(woven, *shape, sm_count=facts.device.sm_count)
    rooms = {
        place.map.name: random.integers(0, 4, place.slots).astype(np.uint32)
        for place in layout.places
        if place.map.dynamic
    }
    layout = lay_out(woven, *shape, sm_count=facts.device.sm_count, counts=rooms)
    buffers = [np.zeros(size, np.uint8) for size in layout.buffers]
    for index, content in layout.fixed.items():
        buffers[index] = content
    for place in layout.places:
        counts = buffers[place.counts].view(np.uint32)
        counts[:] = random.integers(int(full), 2 if full else place.map.cap + 3, len(counts))
        counts[place.absent] = 0
        records = buffers[place.records]
        records[:] = random.integers(0, 256, len(records))
        if not place.map.dynamic and place.map.type == "array":
            rows = records.reshape(place.slots, place.map.cap, place.map.size)
            saved = np.arange(place.map.cap) < counts[: place.slots, None]
            rows[~saved] = 0
    return Launched(facts, layout, buffers)


def write_trace(target: Path, launches: list[Launched]) -> Path:
    """A whole trace of launches of one kernel."""
    writer = TraceWriter(target)
    facts = launches[0].facts
    writer.text("probe.toml", "# a probe\n")
    writer.text("read.py", reader_script(facts.probe, facts.maps))
    build = Build(".version 8.0\n", b"\x7fELF", "ptxas info\n")
    folder = writer.kernel(0, facts, dict.fromkeys(("original", "pruned", "probed"), build))
    for number, launch in enumerate(launches):
        told = LaunchFacts(folder, number, 1e-5 * (number + 1), 1000, "hello\n")
        writer.launch(facts, launch.layout, launch.read_map, told)
    return writer.finish()


def events_of(path: Path) -> list[tuple[int, ...]]:
    """Records as the article's first reader takes them: from the first map's offset, cut to 32
    bits, to the end of the file."""
    content = path.read_bytes()
    _, _, offset = struct.unpack_from("iii", content, struct.calcsize("iiiiiiii"))
    form = struct.Struct("qii")
    whole = (len(content) - offset) // form.size * form.size
    return list(form.iter_unpack(content[offset : offset + whole]))


def nested_records(path: Path, form: str) -> tuple[list, list[list[list[tuple[int, ...]]]]]:
    """Records as the article's second reader takes them: by block, warp or thread, and number."""
    content = path.read_bytes()
    header = struct.unpack_from("iiiiiiii", content)
    sections = [struct.unpack_from("IIQ", content, 32 + 16 * k) for k in range(header[7])]
    size, divisor, at = sections[0]
    step = struct.calcsize(form)
    blocks = []
    for _ in range(header[0] * header[1] * header[2]):
        slots = []
        for _ in range(header[3] * header[4] * header[5] // divisor):
            rows = [struct.unpack_from(form, content, at + k * step) for k in range(size // step)]
            slots.append(rows)
            at += size
        blocks.append(slots)
    return sections, blocks


# ---- random maps

_NAMES = ("start", "elapsed", "value", "cuid", "other")


@st.composite
def fields(draw, most=4, reductions=False):
    count = draw(st.integers(1, most))
    types = st.sampled_from(("u32", "u64", "s32", "s64", "f32", "pred"))
    how = st.sampled_from(("sum", "min", "max") if reductions else ("sum",))
    return tuple(Field(name, draw(types), draw(how)) for name in _NAMES[:count])


@st.composite
def maps(draw, name="m"):
    kind = draw(st.sampled_from(("array", "array", "reduce", "hist")))
    level = draw(st.sampled_from(("thread", "warp", "block", "sm", "site", "kernel")))
    sampled = draw(st.sampled_from((1, 1, 2, 3)))
    unit = draw(st.sampled_from(("warp", "block")))
    found = draw(fields(most=1 if kind == "hist" else 4, reductions=kind == "reduce"))
    if kind == "hist":
        found = (replace(found[0], type="u32"),)
    spare = 4 * draw(st.integers(0, 3)) if kind == "array" else 0
    map_ = Map(
        name,
        level,
        kind,
        size=default_size(kind, found) + spare,
        cap=draw(st.integers(1, 3)) if kind == "array" else 1,
        fields=found,
        sample=sampled,
        sample_unit=unit,
    )
    if kind == "hist":
        linear = draw(st.booleans())
        return replace(map_, cap=draw(st.integers(2, 5)), scale="linear" if linear else "log2")
    dynamic = kind == "array" and draw(st.booleans()) and draw(st.booleans())
    return replace(map_, dynamic=True, cap=1) if dynamic else map_


@st.composite
def kernels(draw):
    """Facts of a kernel with one to three random maps and any shape of block."""
    count = draw(st.integers(1, 3))
    sizes = st.integers(1, 3)
    grid = (draw(sizes), draw(sizes), draw(sizes))
    block = (draw(st.sampled_from((1, 31, 32, 33, 40, 64))), draw(st.integers(1, 2)), 1)
    found = [draw(maps(name=f"map_{number}")) for number in range(count)]
    return kernel_facts(found, grid, block)
