"""A table of warps: how long each ran, how often, and when it first began.

python warp_duration_callback.py DIR/result/5.111352.bin
"""

import sys
from collections import defaultdict

from gpuwatch.trace import read_result

NAMED = 20
"""Warps without a record that are named."""

launch = read_result(sys.argv[1])
records = launch.maps["warp_duration"]
of_warp = defaultdict(list)
for start, elapsed, warp in records.records[["start", "elapsed", "warpid"]].tolist():
    of_warp[warp].append((start, elapsed))

modelled = " (modelled cycles)" if launch.kernel.device.modelled else ""
print(f"--- Warp Execution Duration Summary{modelled} ---")
print(f"{'Warp ID':<10}{'Elapsed Cycles (avg)':<22}{'Count':<8}{'Start (first)'}")
for warp, runs in sorted(of_warp.items(), key=lambda item: (min(item[1])[0], item[0])):
    average = sum(elapsed for _, elapsed in runs) / len(runs)
    print(f"{warp:<10}{average:<22.2f}{len(runs):<8}{min(runs)[0]}")

if len(records.missing):
    named = ", ".join(map(str, records.missing[:NAMED].tolist()))
    print(f"\n{len(records.missing)} records never arrived; the first are of warps {named}")
