"""Every store to global memory of every thread, in order: where and how many bytes."""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="thread", type="array", size=16, cap="dynamic")
class store_trail:
    address: gl.u64
    bytes: gl.u32
    site: gl.u32


@probe(pos="st.global", level="thread", before=True)
def at_store():
    store_trail.save(gl.addr, gl.bytes, gl.site)
