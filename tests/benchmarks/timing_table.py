"""Modelled against measured: kernel time and mean elapsed cycles of many kernels.

    python tests/benchmarks/timing_table.py [MEASURED] [DEVICE] > tests/benchmarks/timing.md

MEASURED is what h200_timing.py wrote on the GPU, h200_timing.json beside this file unless given;
DEVICE is sim:h200 unless given. Prints the table in Markdown, the median errors and the rank
correlation (Spearman's).
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session

HERE = Path(__file__).parent
SOURCES = (
    *sorted((HERE.parents[1] / "kernels").glob("gemm*.cu")),
    *sorted((HERE / "kernels").glob("*.cu")),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One kernel under the block_sched probe; seconds are medians, cycles those of its warps."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    seconds_plain: float
    seconds_probed: float
    elapsed_mean: float
    elapsed_min: float
    elapsed_median: float
    elapsed_max: float
    idle_mean: float
    registers_plain: int
    registers_probed: int
    resident_blocks: int
    blocks_per_sm: tuple[int, int]
    """Fewest and most."""
    occupancy: float
    outputs_identical: bool | None
    missing: int


def measure(source: Path, device: str, launches: int) -> Measured:
    """The medians of `launches` launches of the program's first kernel."""
    session = Session(Options(str(source), device=device, timeout=60.0))
    try:
        session.prepare()
        for _ in range(launches):
            session.step()
        frame = session.frame()
    finally:
        session.close()
    elapsed, sms = frame.elapsed, frame.sms
    if elapsed is None or sms is None or frame.running_cycles_mean is None:
        raise SystemExit(f"{source.name}: no records")
    return Measured(
        name=source.stem,
        grid=frame.grid,
        block=frame.block,
        seconds_plain=frame.seconds_plain,
        seconds_probed=frame.seconds_probed,
        elapsed_mean=frame.running_cycles_mean,
        elapsed_min=float(elapsed.min),
        elapsed_median=float(elapsed.p50),
        elapsed_max=float(elapsed.max),
        idle_mean=frame.idle_cycles_mean or 0.0,
        registers_plain=frame.registers_plain,
        registers_probed=frame.registers_probed,
        resident_blocks=frame.resident_blocks,
        blocks_per_sm=(int(sms.blocks.min()), int(sms.blocks.max())),
        occupancy=float(np.mean(sms.occupancy)),
        outputs_identical=frame.outputs_identical,
        missing=frame.missing,
    )


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's, for values without ties."""
    first, second = (np.argsort(np.argsort(values)) for values in (a, b))
    return float(np.corrcoef(first, second)[0, 1])


def table(measured: Sequence[Measured], modelled: Sequence[Measured]) -> str:
    """Markdown: one row a kernel, then the medians."""
    lines = [
        "| kernel | measured us | modelled | error | measured cycles | modelled | error |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    errors: tuple[list[float], list[float]] = ([], [])
    for real, model in zip(measured, modelled, strict=True):
        pairs = (
            (real.seconds_plain * 1e6, model.seconds_plain * 1e6),
            (real.elapsed_mean, model.elapsed_mean),
        )
        cells = []
        for (wanted, got), kept, digits in zip(pairs, errors, (1, 0), strict=True):
            kept.append(got / wanted - 1)
            cells.append(f"{wanted:,.{digits}f} | {got:,.{digits}f} | {kept[-1]:+.0%}")
        lines.append(f"| {real.name} | {' | '.join(cells)} |")
    lines.append("")
    for name, kept, key in (
        ("kernel time", errors[0], "seconds_plain"),
        ("mean elapsed cycles", errors[1], "elapsed_mean"),
    ):
        correlation = rank_correlation(
            [getattr(m, key) for m in measured], [getattr(m, key) for m in modelled]
        )
        median = statistics.median(abs(error) for error in kept)
        lines.append(
            f"{name}: median error {median:.0%}, rank correlation {correlation:.3f} "
            f"over {len(kept)} kernels  "
        )
    return "\n".join(lines)


def read_measured(path: Path) -> list[Measured]:
    """The kernels of a file that h200_timing.py wrote."""
    return [Measured(**kernel) for kernel in json.loads(path.read_text())["kernels"]]


_INTRODUCTION = """\
# Modelled and measured time

Kernel time without a probe, and mean elapsed cycles of its warps under `block_sched`, of the
simulated H200 (`{device}`) against one NVIDIA H200 (medians of 40 launches, events around each).
The figures of the profile `gpuwatch/device/sim/profiles/h200.toml` come from the data sheet and
from the small programs in `kernels/micro`. Only the overheads of a launch and of a block, and
three constants of the model (`balance.SHARPNESS`, `timing.WINDOW` and
`layout.SCATTERED_ATOMIC_TURNS`), were chosen with these kernels in view. Measured times vary by a
few per cent between runs. This file is the output of `timing_table.py`.
"""


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        source, device, launches = sys.argv[2:]
        print(json.dumps(asdict(measure(Path(source), device, int(launches)))))
        return
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "h200_timing.json"
    device = sys.argv[2] if len(sys.argv) > 2 else "sim:h200"
    measured = read_measured(path)
    by_name = {source.stem: source for source in SOURCES}
    print(_INTRODUCTION.format(device=device))
    print(table(measured, [measure(by_name[m.name], device, 1) for m in measured]))


if __name__ == "__main__":
    main()
