"""What gpuwatch costs on a GPU, whether it keeps up, and its occupancy next to Nsight Compute's.

    python tests/benchmarks/gpu.py OUTPUT.md [DEVICE] [--no-ncu]

Needs an NVIDIA GPU, PyCUDA and a CUDA toolkit on PATH; `ncu` where it is there and may count, and
is wanted.
For every program of timing_table.SOURCES: launches per second of the bare plain kernel and of
the watched one, probed over plain time with its spread for two presets, registers, spills,
resident blocks, occupancy. Writes a Markdown file and prints it.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from timing_table import SOURCES

from gpuwatch import __version__
from gpuwatch.device.cuda import load_libcuda
from gpuwatch.device.cuda.kernel import CudaKernel
from gpuwatch.engine.attach import load_plain
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.options import Options
from gpuwatch.engine.report import occupancy_mean
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.toolchain import find, ncu

PROBES = ("block_sched", "warp_duration")
WATCH_SECONDS = 0.8
BARE_LAUNCHES = 2000
BARE_SECONDS = 0.4
LASTING_SECONDS = 30e-6
"""Kernels that take so long are looked at by themselves: of a shorter one what every launch takes,
filling and emptying the SMs, is a good part, and a probe's tail with it."""
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"


@dataclass(slots=True)
class Row:
    """Of one program; rates in launches a second, occupancies in percent."""

    name: str
    bare: float = 0.0
    watched: dict[str, float] = field(default_factory=dict)
    frames: dict[str, Frame] = field(default_factory=dict)
    ncu: float | None = None


def main() -> None:
    output = Path(sys.argv[1])
    counting = "--no-ncu" not in sys.argv
    device = next((word for word in sys.argv[2:] if word != "--no-ncu"), "cuda")
    with TemporaryDirectory() as name:
        built = _build(Path(name), device) if counting else {}
        rows = [_measure(source, device) for source in SOURCES]
        try:
            tool = ncu.find_ncu() if counting else None
        except UserError as problem:
            print(problem, file=sys.stderr)
            tool = None
        for row in rows if tool is not None else ():
            row.ncu = _occupancy(tool, built[row.name])
    text = "\n".join(_lines(rows, device)) + "\n"
    output.write_text(text)
    print(text)


def _build(folder: Path, device: str) -> dict[str, Path]:
    """Every program for Nsight Compute; fills the cache of PTX and captures on the way."""
    nvcc = str(find().nvcc)

    def build(source: Path) -> tuple[str, Path]:
        binary = folder / source.stem
        flags = ["-O3", "-std=c++17", "-arch=native", "-lineinfo"]
        subprocess.run([nvcc, *flags, str(source), "-o", str(binary)], check=True)
        command = [sys.executable, "-m", "gpuwatch", "kernels", str(source), "-d", device]
        subprocess.run(command, check=True, capture_output=True)
        return source.stem, binary

    with ThreadPoolExecutor(8) as pool:
        return dict(pool.map(build, SOURCES))


def _measure(source: Path, device: str) -> Row:
    row = Row(source.stem)
    for probe in PROBES:
        session = Session(Options(str(source), device=device, probe=probe, timeout=60.0))
        try:
            session.prepare()
            if not row.bare:
                row.bare = _bare_rate(session)
            session.reset()
            begun = time.perf_counter()
            while time.perf_counter() - begun < WATCH_SECONDS:
                session.step()
                row.frames[probe] = session.frame()
            row.watched[probe] = session.launches / (time.perf_counter() - begun)
        finally:
            session.close()
    return row


def _bare_rate(session: Session) -> float:
    """The plain kernel launched back to back, nothing else in the stream; the best of three."""
    mangled = session.program.find_kernel("")
    plain = load_plain(session.program, session.device, mangled)
    kernel = plain.runner.loaded
    assert isinstance(kernel, CudaKernel)
    stream = kernel.driver.Stream()
    launches = max(20, min(BARE_LAUNCHES, int(BARE_SECONDS / plain.runner.times.median)))
    best = 0.0
    for _ in range(3):
        begun = time.perf_counter()
        for _ in range(launches):
            kernel.prepared.start(stream)
        stream.synchronize()
        best = max(best, launches / (time.perf_counter() - begun))
    kernel.close()
    return best


def _occupancy(tool: Path, binary: Path) -> float | None:
    try:
        return ncu.count(tool, [binary], [OCCUPANCY], timeout=60.0)[OCCUPANCY]
    except UserError as problem:
        print(f"ncu {binary.name}: {problem}", file=sys.stderr)
        return None


def _lines(rows: list[Row], device: str) -> Iterator[str]:
    first = next(iter(rows[0].frames.values()))
    yield "# Measured on a GPU"
    yield ""
    yield (
        f"{first.device.name}, driver CUDA {load_libcuda()}, nvcc {find().version}, gpuwatch "
        f"{__version__}; by `make bench-gpu` ({device}), all in one run."
    )
    yield ""
    yield "## Cost: probed over plain kernel time, of launches made in turn"
    yield ""
    yield (
        "| program | plain us | " + " | ".join(PROBES) + " | registers | spills | resident blocks |"
    )
    yield "|---|---|" + "---|" * len(PROBES) + "---|---|---|"
    for row in rows:
        frames = [row.frames[probe] for probe in PROBES]
        one = frames[0]
        costs = " | ".join(_cost(frame) for frame in frames)
        registers = f"{one.registers_plain} > " + ", ".join(str(f.registers_probed) for f in frames)
        spills = f"{one.spills_plain} > " + ", ".join(str(f.spills_probed) for f in frames)
        resident = f"{one.resident_plain} > " + ", ".join(str(f.resident_blocks) for f in frames)
        plain = one.seconds_plain * 1e6
        yield f"| {row.name} | {plain:.1f} | {costs} | {registers} | {spills} | {resident} |"
    for probe in PROBES:
        frames = [row.frames[probe] for row in rows]
        lasting = [one for one in frames if one.seconds_plain >= LASTING_SECONDS]
        more = sum(f.registers_probed - f.registers_plain for f in frames) / len(rows)
        yield ""
        yield (
            f"{probe}: geometric mean {_mean_cost(frames):.4f}; of the {len(lasting)} that take "
            f"{LASTING_SECONDS * 1e6:.0f} us and more {_mean_cost(lasting):.4f}; {more:+.1f} "
            "registers on average."
        )
    yield ""
    yield "## Launches observed a second against the bare plain kernel"
    yield ""
    yield "| program | bare/s | " + " | ".join(f"{probe} | part" for probe in PROBES) + " | lost |"
    yield "|---|---|" + "---|---|" * len(PROBES) + "---|"
    for row in rows:
        rates = " | ".join(
            f"{row.watched[probe]:.0f} | {row.watched[probe] / row.bare:.3f}" for probe in PROBES
        )
        lost = sum(
            sums.missing + sums.dropped
            for sums in (frame.reduced for frame in row.frames.values())
            if sums is not None
        )
        yield f"| {row.name} | {row.bare:.0f} | {rates} | {lost} |"
    yield ""
    yield f"## Occupancy in percent, next to `{OCCUPANCY}`"
    yield ""
    yield "| program | " + " | ".join(PROBES) + " | ncu | difference |"
    yield "|---|" + "---|" * len(PROBES) + "---|---|"
    for row in rows:
        ours = [100 * (occupancy_mean(row.frames[probe]) or 0.0) for probe in PROBES]
        shown = " | ".join(f"{value:.1f}" for value in ours)
        ncu = "-" if row.ncu is None else f"{row.ncu:.1f}"
        apart = "-" if row.ncu is None else f"{ours[0] - row.ncu:+.1f}"
        yield f"| {row.name} | {shown} | {ncu} | {apart} |"


def _mean_cost(frames: Sequence[Frame]) -> float:
    """Geometric mean of probed over plain time; 1 of none."""
    logs = [math.log(one.seconds_probed / one.seconds_plain) for one in frames]
    return math.exp(sum(logs) / max(1, len(logs)))


def _cost(frame: Frame) -> str:
    ratio = frame.seconds_probed / frame.seconds_plain
    spread = "" if frame.ratio_spread is None else f" +- {frame.ratio_spread:.3f}"
    return f"{ratio:.3f}{spread}"


if __name__ == "__main__":
    main()
