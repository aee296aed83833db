"""Block scheduling: when each warp ran, for how long, and on which SM.

One record per warp, written when its last lane leaves the kernel. `start` is in cycles of the
SM's own clock, so starts compare only within one `cuid`; `elapsed` is in the same cycles.
"""

import gpuwatch.language as gl

from gpuwatch import Map, probe

CALLBACK = "block_sched_callback.py"


@Map(level="warp", type="array", size=16, cap=1)
class block_sched:
    start: gl.u64
    elapsed: gl.u32
    cuid: gl.u32


started: gl.u64 = 0
lasted: gl.u64 = 0


@probe(pos="kernel", level="warp", before=True)
def arrive():
    started = gl.clock()


@probe(pos="kernel", level="warp")
def leave():
    lasted = gl.clock() - started
    block_sched.save(started, lasted, gl.cuid())
