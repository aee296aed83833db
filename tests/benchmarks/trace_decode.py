"""Reading a recorded launch: decoder and read.py against readers that take records one by one.

    python tests/benchmarks/trace_decode.py [DEVICE] [RUNS]

Records the naive GEMM with block_sched (33,024 records on sim:a10) and reads its result file:

- flat: read, unpack one record, append it; on from the first map's offset to the end of the file;
- nested: the same into named tuples in lists in lists, by block and warp;
- read_result, and records_of in an opened trace: what every command and pane reads with;
- read and parse of the trace's own read.py, with numpy and without.

All in one process, each RUNS times in a row; prints median milliseconds and how many times as
fast as both hand-written readers. Target: records_of 50 times as fast as either.
"""

from __future__ import annotations

import runpy
import statistics
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

from gpuwatch.engine.options import Options
from gpuwatch.engine.recording import record
from gpuwatch.engine.session import Session
from gpuwatch.probe.catalogue import folder
from gpuwatch.trace import Trace, read_result, records_of

RUNS = 15
TARGET = 50


class Record(NamedTuple):
    start: int
    elapsed: int
    cuid: int


def flat(path: Path) -> list[tuple[int, int, int]]:
    found = []
    with path.open("rb") as file:
        file.seek(40)
        (offset,) = struct.unpack("i", file.read(4))
        file.seek(offset)
        while len(piece := file.read(16)) == 16:
            start, elapsed, sm = struct.unpack("qii", piece)
            found.append((start, elapsed, sm))
    return found


def nested(path: Path) -> list[list[list[Record]]]:
    with path.open("rb") as file:
        grid_x, grid_y, grid_z, *block, _, _ = struct.unpack("8i", file.read(32))
        size, divisor, offset = struct.unpack("IIQ", file.read(16))
        file.seek(offset)
        blocks: list[list[list[Record]]] = []
        for _ in range(grid_x * grid_y * grid_z):
            warps = []
            for _ in range(block[0] * block[1] * block[2] // divisor):
                read = (struct.unpack("qII", file.read(16)) for _ in range(size // 16))
                warps.append([Record(*values) for values in read])
            blocks.append(warps)
    return blocks


def recorded(device: str, target: Path) -> Path:
    session = Session(Options(str(folder("kernels") / "gemm.cu"), device=device))
    try:
        session.prepare()
        return record(session, target, 1)
    finally:
        session.close()


def reader_script(trace: Path) -> dict[str, Any]:
    return runpy.run_path(str(trace / "read.py"), run_name="read")


def readers(trace: Trace) -> dict[str, Callable[[], object]]:
    result = trace.results[0]
    fast = reader_script(trace.path)
    with patch.dict(sys.modules, {"numpy": None}):
        plain = reader_script(trace.path)
    return {
        "flat": lambda: flat(result),
        "nested": lambda: nested(result),
        "records_of": lambda: records_of(trace.launch(0)),
        "read_result": lambda: read_result(result),
        "read.py read": lambda: fast["read"](str(result)),
        "read.py parse": lambda: fast["parse"](str(result)),
        "read.py read, no numpy": lambda: plain["read"](str(result)),
        "read.py parse, no numpy": lambda: plain["parse"](str(result)),
    }


def check(trace: Trace) -> int:
    """That all read the same; the number of records."""
    result = trace.results[0]
    ours = records_of(trace.launch(0)).maps["block_sched"].records.tolist()
    by_hand = flat(result)
    assert by_hand == ours
    assert [record for block in nested(result) for warp in block for record in warp] == ours
    return len(ours)


def timed(cases: dict[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """Median seconds of each."""
    found = {}
    for name, read in cases.items():
        seconds = []
        for _ in range(runs):
            begun = time.perf_counter()
            read()
            seconds.append(time.perf_counter() - begun)
        found[name] = statistics.median(seconds)
    return found


def main(words: list[str]) -> None:
    device = words[0] if words else "sim:a10"
    runs = int(words[1]) if len(words) > 1 else RUNS
    with TemporaryDirectory() as name:
        trace = Trace(recorded(device, Path(name) / "trace"))
        count = check(trace)
        found = timed(readers(trace), runs)
    print(f"{count:,} records, {device}, median of {runs}")
    print(f"{'reader':<26}{'ms':>9}{'records/s':>16}{'x flat':>9}{'x nested':>10}")
    for name, seconds in found.items():
        over_flat, over_nested = found["flat"] / seconds, found["nested"] / seconds
        rate = f"{count / seconds:,.0f}"
        print(f"{name:<26}{seconds * 1e3:>9.2f}{rate:>16}{over_flat:>9.1f}{over_nested:>10.1f}")
    ratio = min(found["flat"], found["nested"]) / found["records_of"]
    print(f"records_of: {ratio:.0f} times as fast as either (target {TARGET})")


if __name__ == "__main__":
    main(sys.argv[1:])
