"""Divergence: lanes that come to each conditional branch together, and branches that part them.

Branch efficiency is the share of a warp's branches that all its lanes take the same way. These
are the branches of the PTX: short ones may become predicated instructions in machine code.
"""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="line", type="reduce")
class branches:
    executed: gl.u64
    lanes: gl.u64
    taken: gl.u64
    split: gl.u64


@probe(pos="branch", level="thread", before=True)
def at_branch():
    branches.save(gl.leads, 1, gl.taken, gl.leads and gl.splits)
