"""What Nsight Compute counts of the launch that is watched, next to what the probe says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gpuwatch.analysis.metrics import metrics_of
from gpuwatch.device.cuda.gpus import machine_number
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.errors import UserError
from gpuwatch.launch import is_program
from gpuwatch.launch.build import build_for_gpu
from gpuwatch.toolchain import ncu

SECONDS = 300.0
"""Longest run of the program under ncu."""


@dataclass(frozen=True, slots=True)
class _Counter:
    """A figure of ours (None where the frame lacks it), the metric that it stands beside, and
    why the two may differ."""

    figure: str
    metric: str
    ours: Callable[[Frame], float | None]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class CounterRow:
    figure: str
    metric: str
    ours: float
    ncu: float
    remark: str


@dataclass(frozen=True, slots=True)
class Counters:
    """A launch as ncu saw it; `launch` is its index among the program's."""

    tool: str
    launch: int
    rows: tuple[CounterRow, ...]


def as_json(counted: Counters | UserError | None) -> dict[str, Any]:
    """The key "ncu" and its values, or why there are none; {} where nobody asked."""
    if counted is None:
        return {}
    if isinstance(counted, UserError):
        return {"ncu": {"error": counted.message, "hint": counted.hint}}
    figures = [
        {
            "figure": row.figure,
            "metric": row.metric,
            "ours": row.ours,
            "ncu": row.ncu,
            "difference": row.ours - row.ncu,
        }
        for row in counted.rows
    ]
    return {"ncu": {"tool": counted.tool, "launch": counted.launch, "figures": figures}}


def _occupancy(frame: Frame) -> float | None:
    mean = None if frame.sms is None else frame.sms.mean_occupancy
    return None if mean is None else 100 * mean


def _of_metric(name: str) -> Callable[[Frame], float | None]:
    def ours(frame: Frame) -> float | None:
        value = metrics_of(frame.maps).get(name)
        return None if value is None or isinstance(value, dict) else float(value)

    return ours


_SPLIT = "ptxas may split an access or leave out a part of it"
_WAITS = "ncu's also counts waits that no address explains"
_MACHINE = "ours are PTX instructions, ncu's machine instructions"
_METRICS = (
    ("global_load_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", _SPLIT),
    ("global_load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", _SPLIT),
    ("global_store_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", _SPLIT),
    ("global_store_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", _SPLIT),
    ("shared_load_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", _WAITS),
    ("shared_store_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", _WAITS),
    ("warp_instructions", "smsp__inst_executed.sum", _MACHINE),
    ("thread_instructions", "smsp__thread_inst_executed.sum", _MACHINE),
)
_COUNTERS = (
    _Counter("occupancy, %", "sm__warps_active.avg.pct_of_peak_sustained_active", _occupancy),
    *(_Counter(name.replace("_", " "), metric, _of_metric(name), remark)
      for name, metric, remark in _METRICS),
    _Counter("registers", "launch__registers_per_thread", lambda frame: frame.registers_plain),
)  # fmt: skip


def count(watched: WatchedProgram, frame: Frame) -> Counters:
    """Runs the program under ncu, which counts the launch of `frame`.

    Raises UserError when ncu is missing or may not count, and where there is no program to run
    on a GPU.
    """
    if frame.device.kind != "cuda":
        raise UserError(
            "ncu counts on a real GPU, and this one is simulated",
            hint="choose a GPU with -d cuda, or leave out --ncu",
        )
    if watched.capture is None:
        raise UserError(
            "ncu needs the program's own launch, and this one was given",
            hint="name a source with a main(), or leave out --ncu",
        )
    tool = ncu.find_ncu()
    wanted = [(one, ours) for one in _COUNTERS if (ours := one.ours(frame)) is not None]
    launch = watched.launch(frame.mangled).index
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as folder:
        found = ncu.count(
            tool,
            [_program(watched, Path(folder)), *watched.options.arguments],
            [counter.metric for counter, _ in wanted],
            kernel=frame.mangled,
            skip=_earlier(watched, frame.mangled, launch),
            timeout=SECONDS,
            environment={"CUDA_VISIBLE_DEVICES": machine_number(int(frame.device.profile))},
        )
    rows = [
        CounterRow(one.figure, one.metric, ours, found[one.metric], one.remark)
        for one, ours in wanted
        if one.metric in found
    ]
    return Counters(str(tool), launch, tuple(rows))


def _program(watched: WatchedProgram, folder: Path) -> Path:
    """The program that a GPU runs: as it is, or built in `folder` with the flags of the capture."""
    options = watched.options
    sources = [Path(name).resolve() for name in (options.source, *options.link)]
    if is_program(sources[0]):
        return sources[0]
    number = watched.arch.removeprefix("sm_")
    return build_for_gpu(watched.toolchain, sources, options.nvcc_flags, number, folder)


def _earlier(watched: WatchedProgram, kernel: str, launch: int) -> int:
    """How many launches of the kernel the program makes before the one with this index."""
    listed = watched.capture.listed if watched.capture is not None else ()
    return sum(one.kernel == kernel and not one.error and one.index < launch for one in listed)


def render(counters: Counters, console: Console) -> None:
    """Prints ours and ncu's side by side, and why they may differ."""
    title = f"Next to {counters.tool}, launch {counters.launch} of the program"
    table = Table(title=title, title_justify="left", box=None)
    for name in ("", "gpuwatch", "ncu", "difference"):
        table.add_column(name, justify="right" if name else "left")
    table.add_column("ncu's metric")
    for row in counters.rows:
        apart = row.ours - row.ncu
        shown = [_number(row.ours), _number(row.ncu), f"{'+' if apart > 0 else ''}{_number(apart)}"]
        table.add_row(row.figure, *shown, row.metric)
    console.print()
    console.print(table)
    for remark in dict.fromkeys(row.remark for row in counters.rows if row.ours != row.ncu):
        if remark:
            console.print(f"note: {remark}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"
