"""What each preset costs on both matrix products, and whether their counts are exact.

    python tests/benchmarks/presets_gpu.py [DEVICE] [OUTPUT.md]

DEVICE is `cuda` unless given. For every preset: kernel time probed over plain, each the median of
launches in turn, beside the target; registers and resident blocks of both builds; wall time a
launch; whether outputs are the same bit for bit. Then the counts of gmem_traffic beside those
that Nsight Compute gives of the same launches on an H200. Takes about a minute on one.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from gpuwatch.engine.frame import Frame
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError

KERNELS = Path(__file__).parents[2] / "kernels"
PROGRAMS = ("gemm", "gemm_tiled")
TARGETS = {
    "block_sched": (1.01, 1.01),
    "warp_duration": (1.01, 1.01),
    "gmem_traffic": (1.5, 1.3),
    "smem_conflicts": (None, None),
    "instr_mix": (1.1, 1.1),
    "barrier_wait": (1.3, 1.3),
    "divergence": (1.3, 1.3),
    "mem_latency": (None, None),
    "dmat": (None, 3.0),
}
"""Probed over plain at most, by preset, for each of PROGRAMS."""
COUNTED = {
    "gemm": {"global_loads": (67_108_864, 167_772_160), "global_stores": (32_768, 131_072)},
    "gemm_tiled": {"global_loads": (2_097_152, 8_388_608), "global_stores": (32_768, 131_072)},
}
"""Requests and sectors of each program's launch at 1024^3, by map (Nsight Compute, H200)."""
NEUTRINO = {
    "block_sched": ("0.99", "1.01"),
    "gmem_traffic": ("0.98, wrong bytes", "1.00, wrong bytes"),
    "dmat": ("-", "12.3, map of 1,091 MB"),
}
"""What the peer's probe of the same purpose costs there, measured on another H200."""
COLUMNS = ("program", "preset", "ratio", "target", "Neutrino", "spread", "registers", "resident",
           "ms/launch", "outputs")  # fmt: skip
WATCH_SECONDS = 0.7
LIMIT_SECONDS = 80.0


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    begun = time.monotonic()
    lines = [
        "# What each preset costs",
        "",
        "Probed over plain kernel time of both matrix products (1024 x 1024 x 1024, float32) on an",
        "NVIDIA H200, all in one run of `presets_gpu.py`. Neutrino's figures are of its own.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
    ]
    counts = []
    for place, program in enumerate(PROGRAMS):
        session = Session(Options(source=str(KERNELS / f"{program}.cu"), device=device))
        try:
            for preset, targets in TARGETS.items():
                late = time.monotonic() - begun > LIMIT_SECONDS
                if late and not session.info.modelled:
                    lines.append(f"| {program} | {preset} | not begun: time is up ||||||||")
                    continue
                try:
                    frame = watch(session, preset)
                except UserError as error:
                    lines.append(f"| {program} | {preset} | {error.message} ||||||||")
                    continue
                lines.append(row(program, preset, targets[place], frame))
                if preset == "gmem_traffic":
                    counts += comparison(program, frame)
        finally:
            session.close()
    text = "\n".join([*lines, "", *counts]) + "\n"
    print(text)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(text)


def watch(session: Session, preset: str) -> Frame:
    """The frame after some launches with a preset."""
    session.select(probe=preset)
    until = time.monotonic() + WATCH_SECONDS
    session.step()
    while not session.info.modelled and time.monotonic() < until:
        session.step()
    return session.frame()


def row(program: str, preset: str, target: float | None, frame: Frame) -> str:
    ratio = frame.seconds_probed / frame.seconds_plain
    spread = "" if frame.ratio_spread is None else f"{frame.ratio_spread:.3f}"
    aim = "-" if target is None else f"{target:.2f}{'' if ratio <= target else ' MISSED'}"
    same = {True: "identical", False: "DIFFERENT", None: "not compared"}[frame.outputs_identical]
    cells = (
        program,
        preset,
        f"{ratio:.3f}",
        aim,
        NEUTRINO.get(preset, ("-", "-"))[PROGRAMS.index(program)],
        spread,
        f"{frame.registers_plain} -> {frame.registers_probed}",
        f"{frame.resident_plain} -> {frame.resident_blocks}",
        f"{frame.wall_seconds_per_launch * 1e3:.2f}",
        same,
    )
    return f"| {' | '.join(cells)} |"


def comparison(program: str, frame: Frame) -> list[str]:
    """Counts beside the expected ones."""
    lines = []
    for figures in frame.maps:
        totals = {one.name: one.total for one in figures.fields}
        seen = totals.get("requests"), totals.get("sectors")
        expected = COUNTED[program][figures.name]
        verdict = "exact" if seen == expected else f"WRONG, expected {expected}"
        lines.append(f"{program} {figures.name}: requests {seen[0]}, sectors {seen[1]}: {verdict}")
    return lines


if __name__ == "__main__":
    main()
