"""Waiting at barriers: cycles between a warp's arrival and its leaving, per line and per warp.

The warps of a block that wait least are those that come last: who is late has few cycles in
`warp_waits`, who waits for it has many. Includes the few cycles that a barrier takes anyway.
"""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="line", type="reduce")
class barrier_waits:
    passes: gl.u64
    cycles: gl.u64


@Map(level="warp", type="reduce")
class warp_waits:
    cycles: gl.u64


came: gl.u64 = 0
waited: gl.u64 = 0


@probe(pos="bar.sync:bar.red:barrier.sync:barrier.red", level="warp", before=True)
def arrive():
    came = gl.clock()


@probe(pos="bar.sync:bar.red:barrier.sync:barrier.red", level="warp")
def leave():
    waited = gl.clock() - came
    barrier_waits.save(1, waited)
    warp_waits.save(waited)
