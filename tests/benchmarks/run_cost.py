"""What `gpuwatch run` costs a program, as ratios of times made in turn; writes a table.

    python tests/benchmarks/run_cost.py [tests/benchmarks/run.md]

Needs an NVIDIA GPU. `bare` is the program alone; `listed` has its kernels listed; `another probed`
has the probe on a kernel that is not the one being timed.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from gpuwatch.toolchain import find

PROGRAMS = Path(__file__).parents[1] / "inject" / "programs"
ROUNDS = 3
RUN = (sys.executable, "-m", "gpuwatch", "run", "--no-screen")
WAYS: dict[str, tuple[str, ...]] = {
    "bare": (),
    "listed": (*RUN, "--"),
    "another probed": (*RUN, "-k", "other", "--"),
}
RATES = {"as fast as it can": ("400000",), "100,000 a second": ("100000", "100000")}
PROBES = ("block_sched", "warp_duration", "gmem_traffic")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        many, products = built("many", Path(name)), built("products", Path(name))
        lines = [machine(), "", *launches(many), "", *probed(products, Path(name))]
    text = "\n".join(["# What `gpuwatch run` costs", "", *lines, ""])
    print(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text)


def machine() -> str:
    words = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    asked = subprocess.run(words, capture_output=True, text=True, check=True)
    return f"{asked.stdout.splitlines()[0]} (driver), nvcc {find().version}, all in one run."


def built(name: str, folder: Path) -> Path:
    program = folder / name
    source = PROGRAMS / f"{name}.cu"
    asked = subprocess.run(
        ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    arch = "sm_" + asked.stdout.split()[0].replace(".", "")
    words = [find().nvcc, "-O2", f"-arch={arch}", source, "-o", program]
    subprocess.run(list(map(str, words)), check=True)
    return program


def launches(program: Path) -> list[str]:
    """Launches of a kernel that no probe is on."""
    lines = [
        f"Wall time of a launch of a kernel that is not probed, us, median of {ROUNDS} runs made "
        "in turn, and its ratio to bare:",
        "",
        f"| program | {' | '.join(WAYS)} |",
        "|---" * (len(WAYS) + 1) + "|",
    ]
    for rate, arguments in RATES.items():
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way, words in WAYS.items():
                times[way].append(timed([*words, str(program), *arguments]))
        bare = statistics.median(times["bare"])
        cells = [
            f"{statistics.median(values):.3f} ({statistics.median(values) / bare:.3f})"
            for values in times.values()
        ]
        lines.append(f"| launches {rate} | {' | '.join(cells)} |")
    return lines


def timed(words: list[str]) -> float:
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = re.search(r"([\d.]+) us a launch", done.stdout)
    assert found, done.stderr
    return float(found[1])


def probed(program: Path, folder: Path) -> list[str]:
    """The tiled product with a probe in every other launch."""
    bare = statistics.median(timed([str(program)]) for _ in range(ROUNDS))
    lines = [
        f"The tiled product of 1024 x 1024 matrices, 2,200 launches, bare {bare:.1f} us each. "
        "Kernel times are medians of the last launches, probed and plain in turn. Wall is that of "
        "a launch where every one may be probed: the program queues launches far ahead, and while "
        "records of eight are under way the others run plain.",
        "",
        "| probe | kernel plain, us | probed | ratio | wall, us | ratio to bare | probed |",
        "|---|---|---|---|---|---|---|",
    ]
    for probe in PROBES:
        report = folder / "run.json"
        words = [*RUN[:-1], "--json", str(report), "-k", "product", "-p", probe]
        subprocess.run([*words, "--plain-every", "1", "--", str(program)], check=True)
        seconds = json.loads(report.read_text())["frames"][0]["kernel_seconds"]
        wall = timed([*words, "--max-rate", "1e9", "--", str(program)])
        seen = json.loads(report.read_text())["frames"][0]["attached"]
        plain, with_probe = seconds["plain"] * 1e6, seconds["probed"] * 1e6
        lines.append(
            f"| {probe} | {plain:.1f} | {with_probe:.1f} | {with_probe / plain:.3f} | {wall:.1f} | "
            f"{wall / bare:.3f} | {seen['probed']:,} of {seen['seen']:,} |"
        )
    return lines


if __name__ == "__main__":
    main()
