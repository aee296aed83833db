"""Latency of loads from global memory: a histogram of cycles, and their sum per source line.

The probe reads the clock in front of a load, and behind it once the value has arrived: it makes
the warp wait right there, as a use of the value in the next instruction would. So it is the time
of one load on its own; loads that the kernel would have had under way together come one after the
other, and the kernel runs longer than without the probe. In a copy with `sample=32` in both
probes one warp in 32 is measured, at less cost.
"""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="kernel", type="hist", scale="log2", cap=24)
class load_latency:
    cycles: gl.u32


@Map(level="line", type="reduce")
class line_latency:
    loads: gl.u64
    cycles: gl.u64


asked: gl.u64 = 0
waited: gl.u64 = 0


@probe(pos="ld.global", level="warp", before=True)
def ask():
    asked = gl.clock()


@probe(pos="ld.global", level="warp")
def receive():
    waited = gl.arrived() - asked
    load_latency.save(waited)
    line_latency.save(1, waited)
