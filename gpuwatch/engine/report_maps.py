"""What a probe's maps hold, in a report: as JSON values and as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from gpuwatch.analysis.maps import Buckets, FieldFigures, MapFigures, Number

_EDGE_ROWS = 8
"""Rows of a map of several slots shown from its beginning and from its end."""
_BAR_CELLS = 40


def as_json(figures: MapFigures) -> dict[str, Any]:
    """Where `sample` is above 1, `total`, the buckets' `count` and all of the fields in `estimated`
    are estimates for the whole launch, and other figures those of the sampled records."""
    result: dict[str, Any] = {
        "name": figures.name,
        "level": figures.level,
        "type": figures.kind,
        "slots": figures.slots,
        "records": figures.records,
        "empty": figures.empty,
        "dropped": figures.dropped,
        "sample": figures.sample,
        "estimated": sorted(figures.summed),
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
        console.print(_bucket_table(figures.buckets, estimated=figures.sample > 1))
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
        table.add_row(one.name, *totals_texts(figures, one))
    console.print(table)


def totals_texts(figures: MapFigures, one: FieldFigures) -> tuple[str, str, str, str]:
    """Total, mean, least and greatest; an estimate begins with "~"."""
    total = "-" if one.total is None else number_text(one.total)
    if figures.sample > 1 and one.total is not None:
        total = "~" + total
    mean, least, greatest = row_texts(
        figures, ((one.name, value) for value in (one.mean, one.least, one.greatest))
    )
    return total, mean, least, greatest


def row_texts(figures: MapFigures, values: Iterable[tuple[str, Number]]) -> tuple[str, ...]:
    """Values of a row by field; an estimate begins with "~"."""
    return tuple(
        ("~" if field in figures.summed else "") + number_text(value) for field, value in values
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
        values = [(name, column[row].item()) for name, column in figures.columns.items()]
        table.add_row(str(figures.slot[row]), *row_texts(figures, values))
    return table


def _site_table(figures: MapFigures) -> Table:
    table = Table(box=None)
    for name in ("line", *figures.columns):
        table.add_column(name, justify="right")
    table.add_column("instruction", overflow="fold")
    for row in figures.sites:
        where = f"{row.opcode} in {row.function}" if row.function else row.opcode
        table.add_row(str(row.source_line or "-"), *row_texts(figures, row.values.items()), where)
    return table


def _bucket_rows(buckets: Buckets) -> list[dict[str, Number]]:
    return [
        {"from": float(low), "to": float(high), "count": int(count)}
        for count, low, high in zip(
            buckets.counts, buckets.edges[:-1], buckets.edges[1:], strict=True
        )
    ]


def _bucket_table(buckets: Buckets, *, estimated: bool) -> Table:
    table = Table(box=None)
    for name in ("from", "to below", "count"):
        table.add_column(name, justify="right")
    table.add_column("")
    used = _bucket_rows(buckets)
    filled = [place for place, row in enumerate(used) if row["count"]]
    most = max((row["count"] for row in used), default=0)
    for row in used[filled[0] : filled[-1] + 1] if filled else []:
        bar = "#" * round(row["count"] / most * _BAR_CELLS)
        count = f"{'~' if estimated else ''}{row['count']:,}"
        table.add_row(f"{row['from']:,.0f}", f"{row['to']:,.0f}", count, bar)
    return table
