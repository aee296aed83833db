"""Whether presets count what the hardware's counters count, on many programs.

    python tests/benchmarks/exactness_gpu.py OUTPUT.md [DEVICE]

Needs an NVIDIA GPU, PyCUDA, a CUDA toolkit and Nsight Compute (`ncu`) on PATH, and nvdisasm for
the reasons of differences. Every kernel is launched once under ncu and then watched with each of
PRESETS. Writes OUTPUT.md, and the figures to OUTPUT.json, after each program anew, so that a run
that is cut short leaves a table. DEVICE is cuda unless given. Takes about two minutes.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from exactness_file import Record
from exactness_static import Marks, by_map, static_of
from exactness_table import COUNTERS, Counted
from h200_timing import run

from gpuwatch.engine import report, report_lines
from gpuwatch.engine.machine_code import with_marks
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.toolchain import find

HERE = Path(__file__).parent
KERNELS = HERE / "kernels"
PROGRAMS = (
    KERNELS / "access" / "patterns.cu",
    *sorted((HERE.parents[1] / "kernels").glob("gemm*.cu")),
    *(
        KERNELS / f"{name}.cu"
        for name in (
            *("vector_add", "saxpy_strided", "gather", "spmv", "transpose_naive"),
            *("transpose_shared", "transpose_padded", "reduce_shared", "histogram_shared"),
            *("softmax", "nbody", "stencil", "convolution", "layernorm", "polynomial_fp64"),
            *("atomics_global", "scan", "low_occupancy", "bitonic", "reduce_shuffle"),
        )
    ),
)
PRESETS = ("gmem_traffic", "smem_conflicts", "instr_mix")
LIMIT_SECONDS = 140.0
"""After this no further program is begun."""
_MOST_KERNELS = 64
_UNKNOWN = re.compile(r"[a-z]+\w*__\w+\.\w+")


@dataclass(slots=True)
class Bench:
    output: Path
    device: str
    begun: float = field(default_factory=time.monotonic)
    counted: list[Counted] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=lambda: list(COUNTERS))
    gpu: str = ""
    """And the compiler, once something was measured."""

    def run(self, folder: Path) -> None:
        """Builds programs side by side, then measures one after the other, alone on the GPU."""
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            built = {source: pool.submit(self._build, source, folder) for source in PROGRAMS}
        self._tell("built")
        for source, binary in built.items():
            if time.monotonic() - self.begun > LIMIT_SECONDS:
                self.problems.append(f"{source.stem}: not begun, time is up")
                continue
            self._measure(source, binary)
            self.write()
            self._tell(source.stem)

    def _tell(self, what: str) -> None:
        print(f"{time.monotonic() - self.begun:6.1f} s  {what}", flush=True)

    def _build(self, source: Path, folder: Path) -> Path:
        """The program for ncu; PTX, launches and machine code go to the cache on the way."""
        binary = folder / source.stem
        flags = ["-O3", "-std=c++17", "-arch=native", "-lineinfo"]
        run([str(find().nvcc), *flags, str(source), "-o", str(binary)], 120.0)
        run([sys.executable, "-m", "gpuwatch", "kernels", str(source), "-d", self.device], 120.0)
        return binary

    def _measure(self, source: Path, binary: Future[Path]) -> None:
        try:
            kernels = self._profile(binary.result())
            session = Session(Options(str(source), device=self.device, timeout=60.0))
            try:
                for kernel, counters in kernels.items():
                    name = source.stem if len(kernels) == 1 else kernel
                    self.counted.append(self._watched(session, kernel, name, counters))
            finally:
                session.close()
        except (SystemExit, subprocess.TimeoutExpired, ValueError, UserError) as problem:
            self.problems.append(f"{source.stem}: {problem}")

    def _profile(self, binary: Path) -> dict[str, dict[str, float]]:
        """The counters of each kernel's first launch; counters that ncu does not know are left
        out from then on."""
        while True:
            try:
                return _by_kernel(self._ncu(binary))
            except (SystemExit, ValueError) as problem:
                unknown = [one for one in _UNKNOWN.findall(str(problem)) if one in self.counters]
                if not unknown:
                    raise
                self.counters = [one for one in self.counters if one not in unknown]
                self.problems.append(f"ncu does not know {', '.join(unknown)}")

    def _ncu(self, binary: Path) -> str:
        command = ["ncu", "--csv", "--page", "raw", "--print-units", "base"]
        command += ["--metrics", ",".join(self.counters)]
        count = _MOST_KERNELS if binary.stem == PROGRAMS[0].stem else 1
        output = run([*command, "--launch-count", str(count), str(binary)])
        if '"ID"' not in output:
            raise ValueError(f"ncu counted nothing: {output[-600:]}")
        return output[output.index('"ID"') :]

    def _watched(
        self, session: Session, kernel: str, name: str, counters: dict[str, float]
    ) -> Counted:
        """The same launch with each preset; one that finds nothing to probe counts nothing."""
        figures: dict[str, Any] = {}
        marked: Marks = {}
        same = True
        for preset in PRESETS:
            try:
                session.select(kernel=kernel, probe=preset)
            except UserError as refused:
                if " has no " not in refused.message:
                    raise
                continue
            session.step()
            frame = with_marks(session, session.frame())
            self.gpu = f"{frame.device.name}, nvcc {session.program.toolchain.version}"
            seen = report.as_json(frame)
            figures |= seen["metrics"]
            marked |= by_map(report_lines.seen(frame))
            same = same and bool(seen["outputs_identical"])
            unmarked = [note for note in seen["notes"] if "not marked" in note]
            self.problems += [note for note in unmarked if note not in self.problems]
        _, sizes = static_of(session.program, session.selected[0])
        return Counted(name, counters, figures, marked, sizes, same)

    def write(self) -> None:
        took = time.monotonic() - self.begun
        Record(f"{self.gpu}, {took:.0f} s", self.counted, self.problems).write(self.output)


def _by_kernel(text: str) -> dict[str, dict[str, float]]:
    """What ncu's table says of the first launch of each kernel, by its name without types."""
    names, _units, *rows = csv.reader(io.StringIO(text))
    found: dict[str, dict[str, float]] = {}
    for values in rows:
        row = dict(zip(names, values, strict=True))
        found.setdefault(bare_name(row["Kernel Name"]), dict(_numbers(row)))
    return found


def bare_name(demangled: str) -> str:
    """Without types."""
    return demangled.partition("(")[0].split()[-1]


def _numbers(row: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for name in COUNTERS:
        text = row.get(name, "").replace(",", "")
        if text and text != "n/a":
            yield name, float(text)


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    if shutil.which("ncu") is None:
        raise SystemExit("there is no ncu on PATH")
    bench = Bench(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "cuda")
    with TemporaryDirectory() as folder:
        bench.run(Path(folder))
    bench.write()
    print(bench.output.read_text())


if __name__ == "__main__":
    main()
