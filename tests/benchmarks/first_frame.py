"""Time from the command to the first frame, and from a probe key to its first frame.

    python tests/benchmarks/first_frame.py [DEVICE]

Prints seconds for a cache filled by a first, uncounted run. Targets: 2 s and 0.5 s.
"""

from __future__ import annotations

import statistics
import sys
import time

from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.options import Options
from gpuwatch.probe.catalogue import folder

RUNS = 5


def _wait(watch: WorkerClient) -> None:
    while watch.latest() is None:
        problem = watch.status().error
        if problem is not None:
            raise problem
        time.sleep(0.002)


def once(kernel: str, device: str) -> tuple[float, float, float]:
    """Seconds to the first frame, of the first switch, of the switch back."""
    begun = time.perf_counter()
    options = Options(str(folder("kernels") / f"{kernel}.cu"), device=device)
    with WorkerClient(options) as watch:
        _wait(watch)
        first = time.perf_counter()
        watch.select(probe="warp_duration")
        _wait(watch)
        switched = time.perf_counter()
        watch.select(probe="block_sched")
        _wait(watch)
        back = time.perf_counter()
    return first - begun, switched - first, back - switched


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "sim:a10"
    print(f"{'kernel':<12}{'first frame':>14}{'first switch':>14}{'switch back':>14}   ({device})")
    for kernel in ("gemm", "gemm_tiled"):
        once(kernel, device)
        columns = zip(*(once(kernel, device) for _ in range(RUNS)), strict=True)
        medians = [statistics.median(column) for column in columns]
        print(f"{kernel:<12}" + "".join(f"{value:>12.2f} s" for value in medians))


if __name__ == "__main__":
    main()
