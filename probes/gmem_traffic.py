"""Traffic with global memory: requests, bytes asked for and 32-byte sectors, per source line.

A request is one load or store of a warp, whatever its lanes. `bytes` is what they ask for,
`sectors` how many distinct 32-byte sectors they touch, which is what the L1 cache moves: 32 bytes
each. Coalescing efficiency is bytes / (32 * sectors); it exceeds 1 where lanes share words.

Every lane adds its share, so that sums are exact however lanes part. Equal to Nsight Compute's
l1tex__t_{requests,sectors}_pipe_lsu_mem_global_op_{ld,st}, wherever ptxas leaves an access whole.
"""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="line", type="reduce")
class global_loads:
    requests: gl.u64
    bytes: gl.u64
    sectors: gl.u64


@Map(level="line", type="reduce")
class global_stores:
    requests: gl.u64
    bytes: gl.u64
    sectors: gl.u64


@probe(pos="ld.global", level="thread", before=True)
def load():
    global_loads.save(gl.leads, gl.bytes, gl.sectors())


@probe(pos="st.global", level="thread", before=True)
def store():
    global_stores.save(gl.leads, gl.bytes, gl.sectors())
