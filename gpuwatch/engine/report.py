"""What a session saw over some launches: as JSON values and as text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from gpuwatch.analysis.access_map import is_access_map
from gpuwatch.analysis.metrics import metrics_of
from gpuwatch.analysis.occupancy import SmColumns
from gpuwatch.analysis.warps import is_timed
from gpuwatch.engine import report_lines, report_maps, report_time_axis, summaries
from gpuwatch.engine.frame import Frame, Reduced, launch_text

_BAR_CELLS = 20
_EDGE_ROWS = 12
"""Rows of the warp table shown from its beginning and from its end."""


def as_json(frame: Frame) -> dict[str, Any]:
    """The frame as plain values; the keys are an interface: added to, never renamed.

    Cycles are those of each SM's clock; `kernel_seconds` are modelled where
    `device.modelled` says so; a figure that the probe does not record is null.
    `all_launches` is there where the device sums up every launch, with `elapsed_*` where the
    probe records elapsed cycles. `time_axis` places SMs in us since the first start of all, none
    where it is not `usable`; null where their clocks do not lie on one axis.
    """
    device = frame.device
    result: dict[str, Any] = {
        "kernel": frame.kernel,
        "mangled": frame.mangled,
        "probe": frame.probe,
        "device": {
            "name": device.name,
            "kind": device.kind,
            "profile": device.profile,
            "sm_count": device.sm_count,
            "modelled": device.modelled,
        },
        "launch": {
            "grid": list(frame.grid),
            "block": list(frame.block),
            "shared_bytes": frame.shared_bytes,
        },
        "launches": frame.launches,
        "blocks": frame.blocks,
        "warps": frame.warps,
        "records": frame.records,
        "missing": frame.missing,
        "dropped": frame.dropped,
        "running_cycles_mean": frame.running_cycles_mean,
        "idle_cycles_mean": frame.idle_cycles_mean,
        "elapsed": _spread(frame),
        "sm": [] if frame.sms is None else _sm_rows(frame.sms),
        "occupancy_mean": occupancy_mean(frame),
        "outputs_identical": frame.outputs_identical,
        "registers": {
            "plain": frame.registers_plain or None,
            "probed": frame.registers_probed or None,
        },
        "kernel_seconds": {
            "plain": frame.seconds_plain or None,
            "probed": frame.seconds_probed or None,
            "ratio": frame.ratio,
        },
        "wall_seconds_per_launch": frame.wall_seconds_per_launch,
        "metrics": metrics_of(frame.maps),
        "lines": report_lines.as_json(frame),
        "maps": [report_maps.as_json(figures) for figures in frame.maps],
        "time_axis": report_time_axis.as_json(frame),
        "notes": list(frame.notes),
    }
    if device.kind == "sim" or frame.thread_instructions is not None:
        result["thread_instructions"] = frame.thread_instructions
    if frame.attached is not None:
        result["attached"] = asdict(frame.attached)
    if frame.reduced is not None:
        timed = any(is_timed(tuple(one.columns)) for one in frame.maps if one.kind == "array")
        result["all_launches"] = _all_launches(frame.reduced, timed)
    return result


def _all_launches(reduced: Reduced, timed: bool) -> dict[str, int]:
    names = ["launches"]
    if reduced.records and timed:
        names += ["elapsed_sum", "elapsed_min", "elapsed_max"]
    return {name: getattr(reduced, name) for name in names}


def occupancy_mean(frame: Frame) -> float | None:
    """Mean occupancy (0..1) over the SMs that ran a warp; None where no SM is recorded."""
    return None if frame.sms is None else frame.sms.mean_occupancy


def render(frame: Frame, console: Console, *, lines: bool = False) -> None:
    """Prints the report as text, with the figures of all source lines where `lines`."""
    unit = "modelled cycles" if frame.device.modelled else "cycles"
    _print_head(frame, console)
    console.print()
    console.print(f"Total Blocks: {frame.blocks}, Total Tasks: {frame.tasks}")
    if frame.running_cycles_mean is not None:
        console.print(f"Average Running Time: {frame.running_cycles_mean:.0f} ({unit})")
    if frame.idle_cycles_mean is not None:
        console.print(f"Average Idle Time: {frame.idle_cycles_mean:.0f} ({unit})")
    if frame.elapsed is not None:
        e = frame.elapsed
        console.print(
            f"Elapsed per warp ({unit}): min {e.min:,}  p50 {e.p50:,.0f}  p90 {e.p90:,.0f}  "
            f"p99 {e.p99:,.0f}  max {e.max:,}"
        )
    if frame.sms is not None:
        console.print()
        console.print(_occupancy_table(frame, frame.sms))
        console.print(report_time_axis.sentence(frame))
    elif frame.warps_table is not None and not (frame.warps_table.sm >= 0).any():
        console.print(f"The probe {frame.probe} records no SM: no occupancy.")
    if frame.warps_table is not None and "warpid" in frame.warps_table.fields:
        console.print()
        console.print(_warp_table(frame, unit))
    summaries.render(frame.maps, console, modelled=frame.device.modelled)
    for figures in frame.maps:
        if not is_access_map(figures) and not is_timed(tuple(figures.columns)):
            report_maps.render(figures, console)
    if lines:
        report_lines.render_lines(frame, console)
    report_lines.render_marked(frame, console)


def _print_head(frame: Frame, console: Console) -> None:
    shape = launch_text(frame.grid, frame.block)
    console.print(f"{frame.kernel}  {shape}", style="bold", highlight=False)
    console.print(
        f"probe {frame.probe} on {frame.device.name} ({frame.device.kind}:{frame.device.profile})"
    )
    console.print(_times_words(frame))
    counted = f"records {frame.records:,}, missing {frame.missing:,}, dropped {frame.dropped:,}"
    if frame.attached is None:
        same = {True: "identical", False: "DIFFERENT", None: "not compared"}
        counted = f"outputs {same[frame.outputs_identical]} (probed against plain); {counted}"
    wrong = frame.outputs_identical is False or frame.missing or frame.dropped
    console.print(counted, style="red" if wrong else "")
    if frame.outputs_identical is False:
        console.print(
            "a probe changes nothing but time: results that differ hang on which warp comes first "
            "(a race), or on memory that was never written",
            style="red",
        )
    for note in frame.notes:
        console.print(f"note: {note}")


def _times_words(frame: Frame) -> str:
    seen = frame.attached
    count = f"{frame.launches} launches"
    if seen is not None:
        count = f"{seen.seen:,} launches by process {seen.process}, {seen.probed:,} with the probe"
    registers = f"registers {frame.registers_plain} plain, {frame.registers_probed} probed"
    if frame.ratio is not None:
        modelled = " (modelled)" if frame.device.modelled else ""
        return (
            f"{count}, kernel {frame.seconds_probed * 1e6:,.1f} us probed, "
            f"{frame.seconds_plain * 1e6:,.1f} us plain{modelled}, ratio {frame.ratio:.3f}; "
            f"{registers}"
        )
    if not frame.registers_probed and not frame.seconds_probed:
        return f"{count}; kernel times and registers are not known"
    took = f", kernel {frame.seconds_probed * 1e6:,.1f} us probed" if frame.seconds_probed else ""
    return f"{count}{took}, none plain to compare with; {registers}"


def _spread(frame: Frame) -> dict[str, float] | None:
    if frame.elapsed is None:
        return None
    names = ("min", "p50", "p90", "p99", "max", "mean")
    return {name: getattr(frame.elapsed, name) for name in names}


def _sm_rows(sms: SmColumns) -> list[dict[str, float]]:
    names = ("sm", "blocks", "warps", "occupancy", "busy_cycles", "idle_cycles")
    columns = [getattr(sms, name).tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _occupancy_table(frame: Frame, sms: SmColumns) -> Table:
    mean = occupancy_mean(frame) or 0.0
    table = Table(title=f"SM occupancy, mean {mean:.1%}", title_justify="left", box=None)
    for name in ("SM", "blocks", "warps", "occupancy", "busy cycles", "idle cycles"):
        table.add_column(name, justify="right")
    table.add_column("")
    rows = _sm_rows(sms)
    used = [row for row in rows if row["warps"]]
    if len(used) < len(rows):
        table.caption = f"{len(rows) - len(used)} SMs ran nothing"
        table.caption_justify = "left"
    for row in used:
        cells = round(row["occupancy"] * _BAR_CELLS)
        table.add_row(
            str(row["sm"]),
            f"{row['blocks']:,}",
            f"{row['warps']:,}",
            f"{row['occupancy']:.1%}",
            f"{row['busy_cycles']:,}",
            f"{row['idle_cycles']:,}",
            "#" * cells,
        )
    return table


def _warp_table(frame: Frame, unit: str) -> Table:
    columns = frame.warps_table
    if columns is None:
        raise ValueError("the frame has no warp table")
    order = columns.start.argsort(kind="stable")
    rows = order if len(order) <= 2 * _EDGE_ROWS else [*order[:_EDGE_ROWS], *order[-_EDGE_ROWS:]]
    table = Table(title=f"Warps in order of start ({unit})", title_justify="left", box=None)
    for name in ("Warp ID", "Elapsed Cycles(avg)", "Count", "Start(first)"):
        table.add_column(name, justify="right")
    for place, row in enumerate(rows):
        if place == _EDGE_ROWS and len(order) > 2 * _EDGE_ROWS:
            table.add_row("...", "", "", "")
        table.add_row(
            str(columns.warp[row]),
            f"{columns.average[row]:.2f}",
            str(columns.count[row]),
            str(columns.start[row]),
        )
    return table
