"""What a probe's maps hold, in a report: as JSON values and as tables."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from gpuwatch.analysis.maps import Buckets, FieldFigures, MapFigures, Number

_EDGE_ROWS = 8
"""Rows of a map of several slots shown from its beginning and from its end."""
_BAR_CELLS = 40


def as_json(figures: MapFigures) -> dict[str, Any]:
    """`total` is an estimate where `sample` is above 1."""
    result: dict[str, Any] = {
        "name": figures.name,
        "level": figures.level,
        "type": figures.kind,
        "slots": figures.slots,
        "records": figures.records,
        "empty": figures.empty,
        "dropped": figures.dropped,
        "sample": figures.sample,
        "fields": {
            one.name: {
                "total": one.total,
                "min": one.least,
                "max": one.greatest,
                "mean": one.mean,
            }
            for one in figures.fields
        },
    }
    if figures.buckets is not None:
        result["buckets"] = _bucket_rows(figures.buckets)
    if figures.sites:
        result["sites"] = [
            {"line": row.source_line, "opcode": row.opcode, "function": row.function, **row.values}
            for row in figures.sites
        ]
    return result


def render(figures: MapFigures, console: Console) -> None:
    """Prints one map: its totals, then its rows, sites or buckets."""
    console.print()
    console.print(_title(figures), style="bold")
    if figures.buckets is not None:
        console.print(_bucket_table(figures.buckets))
    elif figures.sites:
        console.print(_site_table(figures))
        _print_totals(figures, console)
    else:
        _print_totals(figures, console)
        if len(figures.slot) > 1:
            console.print(_row_table(figures))


def _title(figures: MapFigures) -> str:
    parts = []
    if figures.kind == "array":
        parts.append(f"{figures.records:,} records in {figures.slots:,} slots")
    if figures.empty and figures.level not in ("site", "line", "kernel"):
        parts.append(f"{figures.empty:,} slots empty")
    if figures.dropped:
        parts.append(f"{figures.dropped:,} dropped")
    if figures.sample > 1:
        parts.append(f"sampled 1 in {figures.sample}, totals are estimates")
    title = f"map {figures.name} ({figures.kind}, per {figures.level})"
    return f"{title}: {', '.join(parts)}" if parts else title


def _print_totals(figures: MapFigures, console: Console) -> None:
    if not figures.fields:
        console.print("nothing was saved")
        return
    table = Table(box=None)
    for name in ("field", "total", "mean", "min", "max"):
        table.add_column(name, justify="left" if name == "field" else "right")
    for one in figures.fields:
        table.add_row(*_totals(one, estimated=figures.sample > 1))
    console.print(table)


def _totals(one: FieldFigures, *, estimated: bool) -> tuple[str, ...]:
    total = "-" if one.total is None else number_text(one.total)
    return (
        one.name,
        f"~{total}" if estimated and one.total is not None else total,
        number_text(one.mean),
        number_text(one.least),
        number_text(one.greatest),
    )


def number_text(value: Number) -> str:
    """Large numbers whole, others to six digits."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:,.6g}"


def _row_table(figures: MapFigures) -> Table:
    count = len(figures.slot)
    edges = count > 2 * _EDGE_ROWS
    rows = [*range(_EDGE_ROWS), *range(count - _EDGE_ROWS, count)] if edges else range(count)
    table = Table(box=None)
    for name in (figures.level, *figures.columns):
        table.add_column(name, justify="right")
    for place, row in enumerate(rows):
        if edges and place == _EDGE_ROWS:
            table.add_row("...")
        values = [column[row].item() for column in figures.columns.values()]
        table.add_row(str(figures.slot[row]), *map(number_text, values))
    return table


def _site_table(figures: MapFigures) -> Table:
    table = Table(box=None)
    for name in ("line", *figures.columns):
        table.add_column(name, justify="right")
    table.add_column("instruction")
    for row in figures.sites:
        where = f"{row.opcode} in {row.function}" if row.function else row.opcode
        table.add_row(str(row.source_line or "-"), *map(number_text, row.values.values()), where)
    return table


def _bucket_rows(buckets: Buckets) -> list[dict[str, Number]]:
    return [
        {"from": float(low), "to": float(high), "count": int(count)}
        for count, low, high in zip(
            buckets.counts, buckets.edges[:-1], buckets.edges[1:], strict=True
        )
    ]


def _bucket_table(buckets: Buckets) -> Table:
    table = Table(box=None)
    for name in ("from", "to below", "count"):
        table.add_column(name, justify="right")
    table.add_column("")
    used = _bucket_rows(buckets)
    filled = [place for place, row in enumerate(used) if row["count"]]
    most = max((row["count"] for row in used), default=0)
    for row in used[filled[0] : filled[-1] + 1] if filled else []:
        bar = "#" * round(row["count"] / most * _BAR_CELLS)
        table.add_row(f"{row['from']:,.0f}", f"{row['to']:,.0f}", f"{row['count']:,}", bar)
    return table
