"""Time from saving a source to the first frame of the new kernel, and of switching probes.

    python tests/benchmarks/save_to_frame.py [DEVICE] [-- ARGUMENTS]

Every save is of a text that was never compiled before. Prints seconds to the first frame, for
saves that follow each other at once and after a rest, and then to the frame that says whether
the outputs are identical; with -v the parts that a build consists of. Targets: 1.5 s from save
to frame; 0.1 s (GPU) and 0.3 s (simulator) from a probe key to its first frame once the probes
were prepared.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.options import Options
from gpuwatch.probe.catalogue import folder

SAVES = 5
RESTS = (0.0, 3.0)
"""Seconds between a frame and the next save."""
MARK = "        float sum = 0.0f;"


def _frame(watch: WorkerClient, build: int = 0) -> float:
    """Waits for a frame of another build than `build`; the time when it came."""
    while (frame := watch.latest()) is None or frame.build == build:
        problem = watch.status().error
        if problem is not None:
            raise problem
        time.sleep(0.001)
    return time.perf_counter()


def _compared(watch: WorkerClient) -> float:
    """Waits for a frame whose outputs were compared; the time when it came."""
    while (frame := watch.latest()) is None or frame.outputs_identical is None:
        time.sleep(0.001)
    return time.perf_counter()


def saves(watch: WorkerClient, text: str, source: Path, rest: float) -> list[tuple[float, float]]:
    """Seconds to the first frame and, where there is a `rest`, to the first that is compared."""
    found = []
    for number in range(SAVES):
        frame = watch.latest()
        assert frame is not None
        salt = f"{MARK} if (M == -{uuid.uuid4().int % 10**9}) sum = {number + 1};"
        begun = time.perf_counter()
        source.write_text(text.replace(MARK, salt))
        shown = _frame(watch, frame.build) - begun
        found.append((shown, _compared(watch) - begun if rest else shown))
        time.sleep(rest)
    return found


def _is_logged(watch: WorkerClient, probe: str) -> bool:
    """Whether it was woven in; of the first build only."""
    return any(f": {probe} woven into" in entry.text for entry in watch.log())


def switches(watch: WorkerClient) -> dict[str, float]:
    """Seconds to the first frame of each preset that can attach, once all are prepared."""
    while not all(probe.problem or _is_logged(watch, probe.name) for probe in watch.probes()):
        time.sleep(0.2)
    found = {}
    for probe in watch.probes()[1:]:
        if probe.problem:
            print(f"   {probe.name:<20}{probe.problem}")
            continue
        begun = time.perf_counter()
        watch.select(probe=probe.name)
        found[probe.name] = _frame(watch) - begun
    return found


def main(words: list[str]) -> None:
    at = words.index("--") if "--" in words else len(words)
    device, arguments = words[0] if at else "sim:a10", tuple(words[at + 1 :])
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "gemm.cu"
        source.write_text((folder("kernels") / "gemm.cu").read_text())
        with WorkerClient(Options(str(source), device=device, arguments=arguments)) as watch:
            _frame(watch)
            for probe, seconds in switches(watch).items():
                print(f"to {probe:<20}{seconds * 1000:8.0f} ms")
            watch.select(probe="block_sched")
            _frame(watch)
            text = source.read_text()
            series = {rest: saves(watch, text, source, rest) for rest in RESTS}
            said = [f"{entry.at % 1000:8.2f} {entry.text}" for entry in watch.log()]
    for rest, times in series.items():
        shown, compared = (statistics.median(column) for column in zip(*times, strict=True))
        each = "".join(f"{one:8.2f} s" for one, _ in times)
        then = f", compared {compared:.2f} s" if rest else ""
        print(f"save to frame, rest {rest:.0f} s{each}   median {shown:.2f} s{then}   ({device})")
    if "-v" in words:
        print("\n".join(line for line in said if "ptxas" not in line))


if __name__ == "__main__":
    main(sys.argv[1:])
