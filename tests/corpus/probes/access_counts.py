"""How many global and shared accesses each thread made, summed per warp: exact on every device."""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="warp", type="reduce")
class access_counts:
    accesses: gl.u64
    bytes: gl.u64
    most: gl.u64 = max


accesses: gl.u32 = 0
moved: gl.u32 = 0


@probe(pos="ld.global:st.global:ld.shared:st.shared:atom:red", level="thread")
def at_access():
    accesses += 1
    moved += gl.bytes


@probe(pos="kernel", level="thread")
def leave():
    access_counts.save(accesses, moved, accesses)
