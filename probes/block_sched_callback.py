"""Blocks, tasks, and how long tasks ran and SMs' warp slots stood idle, on average.

python block_sched_callback.py DIR/result/0.297500.bin
"""

import heapq
import sys
from collections import defaultdict

from gpuwatch.trace import read_result

NAMED = 20
"""Warps without a record that are named."""


def idle_cycles(spans):
    """Idle cycles of one SM: `spans` are (start, end) of its tasks. In order of start, each takes
    over the slot that has been free for longest; the slot idled in between."""
    free = []
    idle = 0
    for start, end in sorted(spans):
        if free and free[0] <= start:
            idle += start - heapq.heappop(free)
        heapq.heappush(free, end)
    return idle


launch = read_result(sys.argv[1])
unit = "modelled cycles" if launch.kernel.device.modelled else "cycles"
tasks = launch.maps["block_sched"]
spans_of = defaultdict(list)
running = 0
for start, elapsed, sm in tasks.records[["start", "elapsed", "cuid"]].tolist():
    spans_of[sm].append((start, start + elapsed))
    running += elapsed
idle = sum(map(idle_cycles, spans_of.values()))

print(f"Total Blocks: {launch.layout.blocks}, Total Tasks: {len(tasks)}")
if len(tasks):
    print(f"Average Running Time: {running // len(tasks)} ({unit})")
    print(f"Average Idle Time: {idle // len(tasks)} ({unit})")
if len(tasks.missing):
    named = ", ".join(map(str, tasks.missing[:NAMED].tolist()))
    print(f"{len(tasks.missing)} records never arrived; the first are of warps {named}")
