"""PTX kernels with probes, through the verifier, the weaver, ptxas and the simulated device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.model import MapLayout, MapPlace, Woven
from gpuwatch.launch.model import Dim3, Launch, Relocation
from gpuwatch.probe import parse_python, parse_toml, verify
from gpuwatch.probe.model import Program
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find
from gpuwatch.trace.decode import Decoded, counts_of, decode

HEADER = ".version 8.0\n.target sm_86\n.address_size 64\n"
PROBE_HEADER = "from gpuwatch import Map, probe\nimport gpuwatch.language as gl\n"

OPENING = """\
	.reg .b64 %a<9>; .reg .b32 %r<20>; .reg .pred %p<9>; .reg .f32 %f<9>;
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mad.lo.u32 %r4, %r2, %r3, %r1;
	ld.param.u64 %a1, [out];
	mad.wide.u32 %a2, %r4, 4, %a1;
"""
"""%r1: thread, %r2: block, %r4: thread of the launch; %a1: the output, %a2: this thread's word."""


STORE = "\tst.global.u32 [%a2], %r4;\n"

WARP_RECORD = """
@Map(level="warp", size=16)
class seen:
    warp: gl.u64
    elapsed: gl.u64

came: gl.u64 = 0

@probe(pos="kernel", level="warp", before=True)
def arrive():
    came = gl.clock()

@probe(pos="kernel", level="warp")
def leave():
    seen.save(gl.warpid(), gl.clock() - came)
"""

LOADS = """
@Map(level="thread", size=8, cap={cap})
class loads:
    address: gl.u64

@probe(pos="{position}", level="thread", before={before})
def at_load():
    loads.save(gl.addr)
"""

COUNT = """
@Map(level="thread", size=4)
class counted:
    times: gl.u32

times: gl.u32 = {initial}

@probe(pos="{position}", level="thread")
def at_access():
    times += 1

@probe(pos="kernel", level="thread")
def leave():
    counted.save(times)
"""


def loop(body: str, times: str) -> str:
    """`body` as often as the register `times` says, at least once."""
    return (
        "\tmov.u32 %r15, 0;\nAGAIN:\n" + body + "\tadd.u32 %r15, %r15, 1;\n"
        f"\tsetp.lt.u32 %p7, %r15, {times};\n\t@%p7 bra AGAIN;\n"
    )


@dataclass
class Watched:
    """`plain` and `outputs` are the launch's buffers after the run without and with probes."""

    woven: Woven
    layout: MapLayout
    plain: list[NDArray[np.uint8]]
    outputs: list[NDArray[np.uint8]]
    maps: dict[str, Decoded]

    @property
    def unchanged(self) -> bool:
        return all(map(np.array_equal, self.plain, self.outputs))

    def column(self, map_: str, field: str) -> list[int]:
        """One field of all records of a map, in order of slot and of saving."""
        return [value.item() for value in self.maps[map_].column(field)]


def kernel(body: str, name: str = "k") -> str:
    """A module with one kernel `name(out)` whose body stands behind OPENING."""
    return HEADER + f".visible .entry {name}(.param .u64 out)\n{{\n{OPENING}{body}}}\n"


def program(text: str) -> Program:
    """A verified probe program in Python form, without its two import lines, or in TOML."""
    if "[probe." in text:
        found = parse_toml(text, "probe.toml")
    else:
        found = parse_python(PROBE_HEADER + text, "probe.py")
    verify(found)
    return found


def watch(
    ptx: str,
    probe: str,
    grid: Dim3 = (2, 1, 1),
    block: Dim3 = (64, 1, 1),
    *,
    outputs: int | None = None,
    parameters: bool = True,
    entry: str = "k",
    arch: str = "sm_86",
    rewritten: Callable[[str], str] = str,
) -> Watched:
    """Weaves, assembles with ptxas and runs `entry(out)` plain and probed.

    `out` has `outputs` u32 of 0xAAAAAAAA, one per thread unless given. What runs as the probed
    kernel is what `rewritten` makes of the woven text.
    """
    threads = int(np.prod(grid) * np.prod(block))
    buffer = np.full(4 * (threads if outputs is None else outputs), 0xAA, np.uint8)
    places = (Relocation(0, 0, 0),) if parameters else ()
    launch = Launch(entry, grid, block, 0, (), bytes(8 * parameters), places, [buffer])
    woven = weave(parse(ptx), entry, program(probe))
    layout = lay_out(woven, grid, block)
    plain, _ = _run(ptx, launch, (), "", arch)
    text = rewritten(woven.text)
    after, buffers = _run(text, launch, layout.buffers, woven.pointer_variable, arch)
    maps = {place.map.name: _decoded(place, buffers) for place in layout.places}
    return Watched(woven, layout, plain, after, maps)


def _decoded(place: MapPlace, buffers: list[NDArray[np.uint8]]) -> Decoded:
    counts = counts_of(place, buffers.__getitem__)
    return decode(place.map, place.slots, buffers[place.records], counts)


def _run(
    ptx: str, launch: Launch, sizes: Sequence[int], variable: str, arch: str
) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.uint8]]]:
    """Buffers and maps after a launch."""
    assembled = assemble(find(), ptx, arch, launch.kernel)
    image = KernelImage(
        launch.kernel,
        ptx,
        assembled.cubin,
        assembled.registers,
        assembled.shared_bytes,
        variable,
    )
    device = open_sim("a10" if arch == "sm_86" else "h200")
    loaded = device.load(image, launch, sizes)
    try:
        loaded.run()
        maps = [loaded.read_map(k).copy() for k in range(len(sizes))]
        return loaded.read_buffers(), maps
    finally:
        loaded.close()
        device.close()
