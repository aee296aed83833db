"""What the presets' figures say, in sentences and tables of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from gpuwatch.analysis.access_map import (
    COLUMN_NANOSECONDS,
    PAGE_BYTES,
    access_map,
    shrunk,
)
from gpuwatch.analysis.maps import MapFigures
from gpuwatch.analysis.metrics import Metrics, by_share, metrics_of

_SHADES = " .:-=+*#%@"
_MAP_ROWS, _MAP_COLUMNS = 32, 96


def render(maps: Sequence[MapFigures], console: Console) -> None:
    """Prints what is known by name of these maps; nothing for maps of other probes."""
    metrics = metrics_of(maps)
    sampled = any(one.sample > 1 for one in maps)
    sentences = [line for key, say in _SENTENCES.items() if key in metrics for line in say(metrics)]
    if sentences:
        console.print()
        if sampled:
            console.print("Of a sample, totals are estimates:")
    for line in sentences:
        console.print(line, highlight=False)
    if "warp_instructions_by_class" in metrics:
        console.print(_mix_table(metrics))
    for one in maps:
        if is_access_map(one):
            _print_access_map(one, console)


def is_access_map(figures: MapFigures) -> bool:
    """Whether a map is a memory access timeline, which is a picture and no histogram."""
    return figures.name == "page_by_time" and figures.buckets is not None


def _traffic(what: str, words: str) -> Callable[[Any], Iterator[str]]:
    def say(m: Any) -> Iterator[str]:
        yield (
            f"{words}: {m[f'{what}_requests']:,} requests ask for {m[f'{what}_bytes_asked']:,} "
            f"bytes and move {m[f'{what}_sectors']:,} sectors, {m[f'{what}_bytes']:,} bytes: "
            f"coalescing efficiency {m[f'{what}_efficiency']:.1%}"
        )

    return say


def _conflicts(what: str, words: str) -> Callable[[Any], Iterator[str]]:
    def say(m: Any) -> Iterator[str]:
        yield (
            f"{words}: {m[f'{what}_requests']:,} requests, {m[f'{what}_conflicts']:,} wavefronts "
            "beyond the least (bank conflicts by address)"
        )

    return say


def _mix(m: Any) -> Iterator[str]:
    yield (
        f"Instructions (PTX): {m['warp_instructions']:,} of warps, "
        f"{m['thread_instructions']:,} of threads; {m['flop']:,} floating-point operations"
    )


def _branches(m: Any) -> Iterator[str]:
    yield (
        f"Branches: {m['branches']:,} by warps, {m['branches_split']:,} of them split: branch "
        f"efficiency {m['branch_efficiency']:.2%}, {m['active_lanes_mean']:.2f} lanes on average"
    )


def _barriers(m: Any) -> Iterator[str]:
    yield (
        f"Barriers: {m['barrier_passes']:,} passes of warps, {m['barrier_cycles']:,} cycles, "
        f"{m['barrier_cycles_mean']:,.1f} each"
    )


def _latency(m: Any) -> Iterator[str]:
    shown = ", ".join(f"{name} {value:,.0f}" for name, value in m["load_latency"].items())
    yield f"Latency of a load on its own, cycles: {shown or 'nothing was loaded'}"


_SENTENCES: dict[str, Callable[[Any], Iterator[str]]] = {
    "global_load_requests": _traffic("global_load", "Global loads"),
    "global_store_requests": _traffic("global_store", "Global stores"),
    "shared_load_requests": _conflicts("shared_load", "Shared loads"),
    "shared_store_requests": _conflicts("shared_store", "Shared stores"),
    "warp_instructions": _mix,
    "branches": _branches,
    "barrier_passes": _barriers,
    "load_latency": _latency,
}
"""By the key of `metrics_of` that has to be there."""


def _mix_table(metrics: Metrics) -> Table:
    warps, threads = (metrics[f"{unit}_instructions_by_class"] for unit in ("warp", "thread"))
    assert isinstance(warps, dict) and isinstance(threads, dict)
    table = Table(box=None)
    for name in ("class", "warp instructions", "share", "thread instructions"):
        table.add_column(name, justify="left" if name == "class" else "right")
    for name, count, share in by_share(warps):
        table.add_row(name, f"{count:,}", f"{share:.1%}", f"{threads[name]:,}")
    return table


def _print_access_map(figures: MapFigures, console: Console) -> None:
    found = access_map(figures)
    console.print()
    if found is None:
        console.print("No access to global memory was seen.")
        return
    pages, columns = found.counts.shape
    picture = shrunk(found.counts, _MAP_ROWS, _MAP_COLUMNS)
    most = max(int(picture.max()), 1)
    span = columns * COLUMN_NANOSECONDS / 1000
    console.print(
        f"Pages by time: {pages} pages of {PAGE_BYTES // 1024} KiB from row {found.first_page}, "
        f"{span:,.0f} us; {int(found.counts.sum()):,} accesses of warps, up to {most:,} in a cell"
        + (", time is folded" if found.folded else ""),
        highlight=False,
    )
    last = len(_SHADES) - 1
    for row in picture:
        shades = (_SHADES[-(-int(count) * last // most)] for count in row)
        console.print(f"  {''.join(shades)}".rstrip(), markup=False, highlight=False)
