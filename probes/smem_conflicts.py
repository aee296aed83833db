"""Shared memory: loads and stores per source line, and the bank conflicts of their addresses.

A request is one load or store of a warp. `conflicts` is how many wavefronts it takes beyond those
that it would take if no two lanes met in a bank with different words: 0 for a well laid out
access, 31 for a column of a 32 x 32 tile. Hardware counters of bank conflicts also count waits
that no address explains, so they may be higher.
"""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="line", type="reduce")
class shared_loads:
    requests: gl.u64
    bytes: gl.u64
    conflicts: gl.u64


@Map(level="line", type="reduce")
class shared_stores:
    requests: gl.u64
    bytes: gl.u64
    conflicts: gl.u64


@probe(pos="ld.shared", level="thread", before=True)
def load():
    shared_loads.save(gl.leads, gl.bytes, gl.bank_conflicts())


@probe(pos="st.shared", level="thread", before=True)
def store():
    shared_stores.save(gl.leads, gl.bytes, gl.bank_conflicts())
