"""Everything that the timing model is calibrated with, measured on a GPU in one go.

    python tests/benchmarks/h200_timing.py FOLDER [DEVICE] [--quick]

Needs an NVIDIA GPU, PyCUDA and a CUDA toolkit on PATH. Runs the microbenchmarks in
kernels/micro, then each program of timing_table.SOURCES through gpuwatch with block_sched, then
(when it is there and may) Nsight Compute on the same programs. Writes FOLDER/timing.json and
FOLDER/sass.txt, prints a short table. `--quick` leaves out Nsight
Compute. DEVICE is cuda unless given.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from timing_table import HERE, SOURCES, Measured

from gpuwatch.errors import UserError
from gpuwatch.toolchain import find, ncu

LAUNCHES = 40
LIMIT_SECONDS = 225.0
"""After this nothing further is begun."""
METRICS = (
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.max",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__inst_executed.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    "l1tex__data_pipe_lsu_wavefronts.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "lts__t_sectors.sum",
    "lts__t_sectors_lookup_hit.sum",
    "dram__bytes.sum",
    "launch__registers_per_thread",
)


def run(command: list[str], seconds: float = 60.0) -> str:
    """Standard output; on failure a SystemExit with what the program said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-600:]
        raise SystemExit(f"{' '.join(command[:4])}: status {done.returncode}: {said}")
    return done.stdout


class Bench:
    """Results so far, and what went wrong, by the name of the step."""

    def __init__(self, folder: Path, build: Path, device: str) -> None:
        self.folder = folder
        self.build = build
        self.device = device
        self.begun = time.monotonic()
        self.results: dict[str, Any] = {"micro": {}, "kernels": [], "ncu": {}, "problems": {}}
        self.binaries: dict[str, Path] = {}

    def attempt(self, name: str, step: Any, *arguments: Any) -> Any:
        """What `step` gives; None, with the reason noted, when it fails or time is up."""
        if time.monotonic() - self.begun > LIMIT_SECONDS:
            self.results["problems"][name] = "not begun: time is up"
            return None
        try:
            return step(*arguments)
        except (SystemExit, subprocess.TimeoutExpired, ValueError, UserError) as problem:
            self.results["problems"][name] = str(problem)
            return None

    def compile(self) -> None:
        """Builds every program, several at a time."""
        sources = [*sorted((HERE / "kernels" / "micro").glob("*.cu")), *SOURCES]
        nvcc = str(find().nvcc)

        def build(source: Path) -> None:
            binary = self.build / source.stem
            flags = ["-O3", "-std=c++17", "-arch=native", "-lineinfo"]
            command = [nvcc, *flags, str(source), "-o", str(binary)]
            if self.attempt(f"nvcc {source.stem}", run, command, 120.0) is not None:
                self.binaries[source.stem] = binary

        def prepare(source: Path) -> None:
            command = [sys.executable, "-m", "gpuwatch", "kernels", str(source), "-d", self.device]
            self.attempt(f"capture {source.stem}", run, command)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for job in [pool.submit(build, s) for s in sources]:
                job.result()
            for job in [pool.submit(prepare, s) for s in SOURCES]:
                job.result()

    def micro(self) -> None:
        for source in sorted((HERE / "kernels" / "micro").glob("*.cu")):
            if source.stem not in self.binaries:
                continue
            output = self.attempt(f"micro {source.stem}", run, [str(self.binaries[source.stem])])
            for line in (output or "").splitlines():
                name, value, unit = line.split()
                self.results["micro"][name] = [float(value), unit]

    def kernels(self) -> None:
        for source in SOURCES:
            table = str(HERE / "timing_table.py")
            command = [sys.executable, table, "--one", str(source), self.device, str(LAUNCHES)]
            output = self.attempt(f"kernel {source.stem}", run, command)
            if output is not None:
                measured = Measured(**json.loads(output.splitlines()[-1]))
                self.results["kernels"].append(asdict(measured))

    def sass(self) -> None:
        """Machine code of every program, for the counts of instructions."""
        tool = shutil.which("cuobjdump")
        if tool is None:
            self.results["problems"]["sass"] = "no cuobjdump"
            return
        texts = []
        for name, binary in sorted(self.binaries.items()):
            text = self.attempt(f"sass {name}", run, [tool, "-sass", str(binary)])
            lines = [line.split("/* 0x")[0].rstrip() for line in (text or "").splitlines()]
            kept = [line for line in lines if line.strip() and not line.startswith("\t\t.")]
            texts.append(f"==== {name}\n" + "\n".join(kept))
        (self.folder / "sass.txt").write_text("\n".join(texts))

    def profile(self) -> None:
        """METRICS of each program's first launch, in base units."""
        tool = self.attempt("ncu", ncu.find_ncu)
        if tool is None:
            return
        count = partial(ncu.count, metrics=METRICS, timeout=60.0)
        for source in SOURCES:
            if source.stem not in self.binaries:
                continue
            found = self.attempt(f"ncu {source.stem}", count, tool, [self.binaries[source.stem]])
            if found is not None:
                self.results["ncu"][source.stem] = found

    def write(self) -> None:
        (self.folder / "timing.json").write_text(json.dumps(self.results, indent=1))


def main() -> None:
    given = [argument for argument in sys.argv[1:] if argument != "--quick"]
    if not given:
        raise SystemExit(__doc__)
    folder = Path(given[0])
    device = given[1] if len(given) > 1 else "cuda"
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as build:
        bench = Bench(folder, Path(build), device)
        steps = [bench.compile, bench.micro, bench.kernels, bench.sass]
        if "--quick" not in sys.argv:
            steps.append(bench.profile)
        for step in steps:
            step()
            bench.write()
            print(f"{time.monotonic() - bench.begun:6.1f} s  {step.__name__}", flush=True)
    for name, (value, unit) in bench.results["micro"].items():
        print(f"{name:<36}{value:>12.2f} {unit}")
    for name, problem in bench.results["problems"].items():
        print(f"problem: {name}: {problem[:300]}")
    for kernel in bench.results["kernels"]:
        plain, probed = kernel["seconds_plain"] * 1e6, kernel["seconds_probed"] * 1e6
        cycles = kernel["elapsed_mean"]
        print(f"{kernel['name']:<18}{plain:>9.1f} us{probed:>9.1f} us probed{cycles:>12.0f} cycles")


if __name__ == "__main__":
    main()
