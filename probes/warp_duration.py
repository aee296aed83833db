"""Warp durations: start, cycles, persistent warp ID and SM of every warp.

One record per warp, written when its last lane leaves the kernel. The warp ID is that of the
launch, not the hardware's: block * ceil(threads per block / 32) + thread / 32.
"""

import gpuwatch.language as gl

from gpuwatch import Map, probe

CALLBACK = "warp_duration_callback.py"


@Map(level="warp", type="array", size=32, cap=1)
class warp_duration:
    start: gl.u64
    elapsed: gl.u64
    warpid: gl.u64
    sm: gl.u64


started: gl.u64 = 0
lasted: gl.u64 = 0


@probe(pos="kernel", level="warp", before=True)
def arrive():
    started = gl.clock()


@probe(pos="kernel", level="warp")
def leave():
    lasted = gl.clock() - started
    warp_duration.save(started, lasted, gl.warpid(), gl.smid())
