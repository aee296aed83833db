"""Speed of the simulated device against `gcc -O3` on one thread, and what starting costs.

    python tests/benchmarks/sim_speed.py [DEVICE]

For each kernel: the best wall seconds of one probed launch (block_sched; cycles and bounds checks
included), those of the C of the same work in kernels/reference.c, and their ratio. Then, over all
benchmark kernels, the seconds to load one whose machine code must be made, and one whose machine
code is cached. Targets on two cores: naive GEMM of 1024 0.3 s, tiled 0.6 s; load 0.4 s (median).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from timing_table import HERE, SOURCES

from gpuwatch.device import open_device
from gpuwatch.device.base import KernelImage
from gpuwatch.engine.options import Options
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.toolchain import assemble

RUNS = 5
CASES = (
    ("gemm", 512, ("512", "512", "512")),
    ("gemm", 1024, ()),
    ("gemm_tiled", 512, ("512", "512", "512")),
    ("gemm_tiled", 1024, ()),
    ("vector_add", 1 << 23, ()),
    ("nbody", 16384, ()),
    ("mandelbrot", 1024, ()),
)
"""Kernel, size of the C program, arguments of the CUDA program for that size."""


def simulated(source: Path, device: str, arguments: tuple[str, ...]) -> tuple[float, float]:
    """Best wall seconds of a probed launch, and 10**9 thread instructions a second."""
    session = Session(Options(str(source), device=device, arguments=arguments, timeout=120.0))
    try:
        session.prepare()
        times = []
        for _ in range(RUNS):
            begun = time.perf_counter()
            session.step()
            times.append(time.perf_counter() - begun)
        executed = session.frame().thread_instructions or 0
    finally:
        session.close()
    return min(times), executed / min(times) / 1e9


def compiled(binary: Path, name: str, size: int) -> float:
    """Best seconds of the C program."""
    command = [str(binary), name, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return float(done.stdout.split()[0])


def load_seconds(source: Path, device: str) -> tuple[float, float]:
    """Of a plain kernel: with its machine code to be made, then with it cached."""
    opened, _ = open_device(device, 60.0)
    program = WatchedProgram(Options(str(source), device=device), opened, lambda _text: None)
    name = program.find_kernel("")
    text = program.module.text
    built = assemble(program.toolchain, text, program.arch, name)
    image = KernelImage(name, text, built.cubin, built.registers, built.shared_bytes)
    times = []
    for _ in range(2):
        begun = time.perf_counter()
        loaded = opened.load(image, program.launch(name), ())
        loaded.ready()
        times.append(time.perf_counter() - begun)
        loaded.close()
    return times[0], times[1]


def print_speed(device: str, folder: Path) -> None:
    binary = folder / "reference"
    source = str(HERE / "kernels" / "reference.c")
    subprocess.run(["gcc", "-O3", source, "-lm", "-o", str(binary)], check=True, timeout=120)
    by_name = {source.stem: source for source in SOURCES}
    print(
        f"{'kernel':<14}{'size':>9}{'simulated':>12}{'gcc -O3':>12}{'C / sim':>9}{'G instr/s':>11}"
    )
    for name, size, arguments in CASES:
        ours, rate = simulated(by_name[name], device, arguments)
        theirs = compiled(binary, name, size)
        ratio = f"{theirs / ours:.2f}"
        print(f"{name:<14}{size:>9}{ours:>10.3f} s{theirs:>10.3f} s{ratio:>9}{rate:>11.1f}")


def print_starts(device: str) -> None:
    made, cached = [], []
    for source in SOURCES:
        try:
            first, second = load_seconds(source, device)
        except UserError as problem:
            print(f"{source.stem}: {problem}")
            continue
        made.append((first, source.stem))
        cached.append(second)
    worst, slowest = max(made)
    print(
        f"\nload of {len(made)} kernels: median {statistics.median(t for t, _ in made):.2f} s, "
        f"worst {worst:.2f} s ({slowest}); cached: median {statistics.median(cached):.2f} s"
    )


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "sim:h200"
    with TemporaryDirectory() as folder:
        os.environ["GPUWATCH_CACHE_DIR"] = folder
        print_speed(device, Path(folder))
        print_starts(device)


if __name__ == "__main__":
    main()
