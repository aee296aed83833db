"""Running small PTX kernels plain and probed on the simulated device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import KernelImage, LoadedKernel
from gpuwatch.device.sim import open_sim
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.model import MapLayout, Woven
from gpuwatch.launch.model import Dim3, Launch, Relocation
from gpuwatch.probe.model import Program
from gpuwatch.ptx import parse
from gpuwatch.trace.decode import Decoded, counts_of, read_place

HEADER = ".version 8.0\n.target sm_86\n.address_size 64\n"

SHARED = 4096
"""Bytes of static shared memory that a kernel here may declare."""

INDEX = """\
	.reg .b32 %i<12>;
	mov.u32 %i1, %tid.z; mov.u32 %i2, %ntid.y; mov.u32 %i3, %tid.y;
	mad.lo.u32 %i1, %i1, %i2, %i3;
	mov.u32 %i4, %ntid.x; mov.u32 %i3, %tid.x;
	mad.lo.u32 %i1, %i1, %i4, %i3;
	mul.lo.u32 %i5, %i4, %i2; mov.u32 %i6, %ntid.z; mul.lo.u32 %i5, %i5, %i6;
	mov.u32 %i7, %ctaid.z; mov.u32 %i8, %nctaid.y; mov.u32 %i9, %ctaid.y;
	mad.lo.u32 %i7, %i7, %i8, %i9;
	mov.u32 %i8, %nctaid.x; mov.u32 %i9, %ctaid.x;
	mad.lo.u32 %i7, %i7, %i8, %i9;
	mad.lo.u32 %i10, %i7, %i5, %i1;
"""
"""%i1: thread in its block, %i5: threads per block, %i7: block, %i10: thread in the launch."""

OUT = """\
	.reg .b64 %a<3>;
	ld.param.u64 %a1, [out];
	mad.wide.u32 %a1, %i10, 4, %a1;
	ld.param.u32 %i11, [n];
"""
"""%a1: this thread's word of the output, %i11: the parameter n."""


def kernel(body: str) -> str:
    """A kernel `k(out, n)` whose body finds its index, output address and n in registers."""
    return HEADER + (
        ".visible .entry k(.param .u64 out, .param .u32 n\n)\n{\n" + INDEX + OUT + body + "}\n"
    )


@dataclass
class Probed:
    """`plain` and `output` are the launch's output (u32 per thread) without and with probes."""

    woven: Woven
    plain: NDArray[np.uint32]
    output: NDArray[np.uint32]
    maps: dict[str, Decoded]
    counts: dict[str, NDArray[np.uint32]]
    sm_count: int
    warps: int


def launch_of(grid: Dim3, block: Dim3, n: int, parameters: bool = True) -> Launch:
    """A launch of `k` with one u32 of output per thread, filled with 0xAAAAAAAA."""
    output = np.full(4 * prod(grid) * prod(block), 0xAA, np.uint8)
    values = bytes(8) + n.to_bytes(4, "little") if parameters else b""
    places = (Relocation(0, 0, 0),) if parameters else ()
    return Launch("k", grid, block, 0, (), values, places, [output])


@lru_cache
def run_plain(text: str, grid: Dim3, block: Dim3, n: int) -> NDArray[np.uint32]:
    """The output of `k` without probes."""
    launch = launch_of(grid, block, n, bool(parse(text).entries()[0].parameters))
    device = open_sim("a10", threads=1)
    loaded = device.load(KernelImage("k", text, b"", 32, SHARED), launch, [])
    try:
        loaded.run()
        return loaded.read_buffers()[0].view(np.uint32)
    finally:
        loaded.close()
        device.close()


def run(
    text: str,
    program: Program,
    grid: Dim3,
    block: Dim3,
    n: int = 0,
    sm_count: int = 0,
    *,
    known: bool = False,
) -> Probed:
    """Weaves `program` into `k`, with `known` for this shape and short launches alone, and
    launches it plain and probed; a program with dynamic maps twice, first to count. Maps per SM
    have `sm_count` slots, as many as there are SMs if it is 0. Device memory behind a map or
    buffer that changed is an error."""
    module = parse(text)
    woven = weave(module, "k", program, (grid, block) if known else None, brief=known)
    launch = launch_of(grid, block, n, bool(module.entries()[0].parameters))
    device = open_sim("a10", threads=1)
    image = KernelImage("k", woven.text, b"", 40, SHARED, woven.pointer_variable)
    saved: dict[str, NDArray[np.uint32]] = {}
    try:
        for _ in range(2 if any(map_.dynamic for map_ in program.maps) else 1):
            sms = sm_count or device.info.sm_count
            layout = lay_out(woven, grid, block, sm_count=sms, counts=saved)
            probed = device.load(image, launch, layout.buffers, layout.fixed)
            probed.run()
            output = probed.read_buffers()[0].view(np.uint32)
            maps, saved = read_maps(probed, layout)
            probed.close()
        plain = run_plain(text, grid, block, n)
        return Probed(woven, plain, output, maps, saved, device.info.sm_count, layout.warps)
    finally:
        device.close()


def read_maps(
    probed: LoadedKernel, layout: MapLayout
) -> tuple[dict[str, Decoded], dict[str, NDArray[np.uint32]]]:
    """Records and save counts of each map after a launch."""
    maps, counts = {}, {}
    for place in layout.places:
        counts[place.map.name] = counts_of(place, probed.read_map).copy()
        maps[place.map.name] = read_place(layout, place, lambda one: probed.read_map(one).copy())
    return maps, counts
