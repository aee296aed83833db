"""How often each thread reached memory of any kind, parameters too, summed per warp."""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="warp", type="reduce")
class access_counts:
    accesses: gl.u64
    bytes: gl.u64
    most: gl.u64 = max


accesses: gl.u32 = 0
moved: gl.u32 = 0


@probe(pos="ld:st:atom:red", level="thread")
def at_access():
    accesses += 1
    moved += gl.bytes


@probe(pos="kernel", level="thread")
def leave():
    access_counts.save(accesses, moved, accesses)
