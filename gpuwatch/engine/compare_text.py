"""A comparison as text, Markdown and JSON values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpuwatch.analysis.comparison import Difference, MedianRange
from gpuwatch.engine.compare import UNJUDGED, Comparison, Run
from gpuwatch.engine.frame import launch_text

_HEADS = ("", "before", "after", "change", "verdict")
_STYLES = {"better": "green", "worse": "red", "differs": ""}
_WORDS = {"same": "same within spread", "unclear": "", "differs": "differs"}


def render(comparison: Comparison, console: Console) -> None:
    """Prints both runs, the table, and what it comes to."""
    for name, run in (("before", comparison.before), ("after", comparison.after)):
        console.print(f"{name}: {_described(run)}", highlight=False)
    table = Table(box=None)
    for place, head in enumerate(_HEADS):
        table.add_column(head, justify="left" if place in (0, 4) else "right", no_wrap=True)
    for row in comparison.rows:
        *cells, verdict = _cells(row)
        table.add_row(*cells, Text(verdict, _STYLES.get(row.verdict, "dim")))
    console.print()
    console.print(table)
    console.print()
    console.print(conclusion(comparison), style="bold")
    for note in comparison.notes:
        console.print(f"note: {note}")


def as_markdown(comparison: Comparison) -> str:
    lines = [
        f"- {name}: {_described(run)}"
        for name, run in (("before", comparison.before), ("after", comparison.after))
    ]
    lines += ["", f"| {' | '.join(_HEADS)} |", "|---|---:|---:|---:|---|"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in comparison.rows]
    lines += ["", f"**{conclusion(comparison)}**"]
    lines += [f"- {note}" for note in comparison.notes]
    return "\n".join(lines)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The keys are an interface: added to, never renamed. `low` and `high` are the range that
    holds the median with 95 % confidence."""
    return {
        "before": _run_json(comparison.before),
        "after": _run_json(comparison.after),
        "figures": [
            {
                "name": row.name,
                "unit": row.unit,
                "wanted": row.wanted,
                "before": None if row.before is None else asdict(row.before),
                "after": None if row.after is None else asdict(row.after),
                "change": row.change,
                "ratio": row.ratio,
                "verdict": row.verdict,
            }
            for row in comparison.rows
        ],
        "conclusion": conclusion(comparison),
        "notes": list(comparison.notes),
    }


def conclusion(comparison: Comparison) -> str:
    """One sentence: whether the second run is faster, by how much, and how sure that is."""
    row = comparison.speed
    if row is None or row.before is None or row.after is None or row.verdict in UNJUDGED:
        same = comparison.before.probe == comparison.after.probe
        more = "look at more launches (-n), or record more"
        advice = more if same else "compare runs with the same probe"
        return f"Which is faster is not clear: {advice}."
    if row.verdict == "same":
        return (
            f"No difference in {row.name}: medians {_value(row.before.median, row.unit)} and "
            f"{_value(row.after.median, row.unit)}, within the spread of the launches."
        )
    word = "faster" if row.verdict == "better" else "slower"
    high = max(row.before.median, row.after.median)
    low = min(row.before.median, row.after.median)
    times = f"{high / low:.2f}x" if low > 0 else "far"
    return (
        f"{times} {word} in {row.name}: {_value(row.before.median, row.unit)} became "
        f"{_value(row.after.median, row.unit)}, beyond the spread of the launches."
    )


def _run_json(run: Run) -> dict[str, Any]:
    return {
        "label": run.label,
        "kernel": run.kernel,
        "probe": run.probe,
        "grid": list(run.grid),
        "block": list(run.block),
        "device": run.device.name,
        "modelled": run.device.modelled,
        "launches": run.launches,
        "outputs_identical": run.outputs_identical,
        "values": {name: series.values.tolist() for name, series in run.series.items()},
    }


def _described(run: Run) -> str:
    shape = launch_text(run.grid, run.block)
    kernel = run.kernel.partition("(")[0]
    return (
        f"{run.label}, {kernel} {shape}, probe {run.probe}, {run.device.name}, "
        f"{run.launches} launches"
    )


def _cells(row: Difference) -> tuple[str, str, str, str, str]:
    ratio = row.ratio
    change = "" if row.verdict == "same" and row.change == 0 else _change(row.change, ratio)
    name = f"{row.name} ({row.unit})" if row.unit else row.name
    before, after = _cell(row.before), _cell(row.after)
    verdict = _WORDS.get(row.verdict, row.verdict)
    if row.verdict == "same" and row.change == 0:
        verdict = "same"
    return name, before, after, change, verdict


def _cell(value: MedianRange | None) -> str:
    if value is None:
        return "-"
    spread = "" if value.low == value.high else f" [{_short(value.low)}, {_short(value.high)}]"
    return _short(value.median) + spread


def _change(change: float | None, ratio: float | None) -> str:
    if change is None:
        return ""
    percent = "" if ratio is None else f" ({100 * (ratio - 1):+.1f} %)"
    sign = "+" if change > 0 else ""
    return f"{sign}{_short(change)}{percent}"


def _value(value: float, unit: str) -> str:
    return f"{_short(value)} {unit}".rstrip()


def _short(value: float) -> str:
    """Whole where it is whole or large, else four digits."""
    if value.is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
