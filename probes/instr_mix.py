"""Instruction mix: executed instructions by class, and floating-point operations.

Counts how often warps and threads run each basic block; what a block is made of is known without
running it, so the report multiplies. These are PTX instructions: the machine code that ptxas
makes of them merges, splits and drops some, so totals differ from a hardware counter's.
"""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="site", type="reduce")
class blocks_run:
    warps: gl.u64
    threads: gl.u64


@probe(pos="basic_block", level="thread", before=True)
def begin():
    blocks_run.save(gl.leads, 1)
