"""Threads by how often they reached global memory, in buckets of powers of two."""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="kernel", type="hist", cap=16, scale="log2")
class access_spread:
    times: gl.u32


times: gl.u32 = 0


@probe(pos="ld.global:st.global:atom.global:red.global", level="thread")
def at_access():
    times += 1


@probe(pos="kernel", level="thread")
def leave():
    access_spread.save(times)
