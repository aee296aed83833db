"""What each load and store of global memory moved, by instruction."""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="site", type="reduce")
class access_sites:
    times: gl.u64
    bytes: gl.u64
    lowest: gl.u64 = min


@probe(pos="ld.global:st.global", level="thread", before=True)
def at_access():
    access_sites.save(1, gl.bytes, gl.addr)
