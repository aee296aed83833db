"""What the presets' figures say: sections of rows, for the report and the screen to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gpuwatch.analysis.maps import MapFigures, Number
from gpuwatch.analysis.metrics import by_share, lines_of, metrics_of, percentiles, ratio

Form = Literal["count", "whole", "mean", "share"]
"""A count is an estimate where a map is sampled; `whole` is written without a fraction."""
Values = tuple[Number | None, ...]

_WORST = 5
"""Lines of a section; all of them are in the lists of the maps."""


@dataclass(frozen=True, slots=True)
class Column:
    """`words` has {} where the number goes; `key` ends its name among the metrics. On a narrow
    screen columns of the highest `rank` go first."""

    title: str
    words: str
    key: str = ""
    form: Form = "count"
    rank: int = 0
    over: str = ""
    """What a share above 100 % means."""

    def text(self, value: Number | None, *, estimated: bool = False) -> str:
        """The number in full, "" for None."""
        if value is None:
            return ""
        if self.form == "share":
            return share_text(value)
        if self.form == "mean":
            return f"{value:,.2f}"
        return f"{'~' if estimated and self.form == 'count' else ''}{value:,.0f}"


@dataclass(frozen=True, slots=True)
class Row:
    """`values` by column, None where there is none."""

    name: str
    values: Values
    note: str = ""
    estimated: bool = False
    """Whether its map is sampled."""
    line: int = 0
    """Of a row of a source line its number, 0 for none, and "" or the called function."""
    function: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """`totals` are rows of the launch, `parts` rows of its classes, lines or ranges of cycles.
    Where `barred`, the last column is a share, 0..1, to be drawn as a bar."""

    title: str
    columns: tuple[Column, ...]
    totals: tuple[Row, ...]
    parts: tuple[Row, ...] = ()
    parts_are: Literal["", "class", "line", "cycles"] = ""
    left_out: int = 0
    """Further rows like the parts."""
    barred: bool = True
    timed: bool = False
    """Whether there are cycles, which may be modelled."""
    sample: int = 1

    @property
    def estimated(self) -> bool:
        return any(row.estimated for row in (*self.totals, *self.parts))

    @property
    def remark(self) -> str:
        """What is to be known of some of its figures, "" for nothing."""
        for row in (*self.totals, *self.parts):
            for column, value in zip(self.columns, row.values, strict=True):
                if column.over and value is not None and value > 1:
                    return column.over
        return ""

    def sentences(self) -> Iterator[str]:
        """The totals in words."""
        for row in self.totals:
            said = (
                column.words.format(column.text(value, estimated=row.estimated))
                + (f" ({column.over})" if column.over and value > 1 else "")
                for column, value in zip(self.columns, row.values, strict=True)
                if value is not None
            )
            yield f"{self.title}{' ' + row.name if row.name else ''}: {', '.join(said)}"


def share_text(share: float) -> str:
    """84.3%; what is nearly all or nearly nothing does not become 100.0% or 0.0%."""
    nearly = {"100.0%": ">99.9%", "0.0%": "<0.1%"} if share not in (0, 1) else {}
    text = f"{share:.1%}"
    return nearly.get(text, text)


def sections_of(maps: Sequence[MapFigures], most: int | None = _WORST) -> tuple[Section, ...]:
    """What is known by name of these maps, with so many lines of each kind, None for all; nothing
    for maps of other probes."""
    metrics, lines = metrics_of(maps), lines_of(maps)
    samples = {one.name: one.sample for one in maps}
    found = [_section(kind, metrics, lines, samples, most) for kind in _KINDS]
    sections = [section for section in found if section is not None]
    if "warp_instructions" in metrics:
        sections.append(_mix(metrics, samples["blocks_run"]))
    return (*sections, *_latency(maps, metrics, lines, most))


# ---- rows of the launch, and its worst lines


@dataclass(frozen=True, slots=True)
class _Kind:
    """`rows` are names of rows, what the keys of their metrics begin with, and their maps.
    `weight` of a line's metrics (with the beginnings of their keys) says how bad it is."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, str, str], ...]
    weight: Callable[[Any, str], tuple[Number, ...]]
    timed: bool = False


def _section(
    kind: _Kind,
    metrics: Mapping[str, Any],
    lines: Iterable[Any],
    samples: Mapping[str, int],
    most: int | None,
) -> Section | None:
    first = kind.columns[0].key
    there = [row for row in kind.rows if row[1] + first in metrics]
    if not there:
        return None
    totals = tuple(
        Row(name, _values(kind, metrics, start), estimated=samples[of] > 1)
        for name, start, of in there
    )
    all_of = {start: kind.weight(metrics, start)[0] for _, start, _ in there}
    weighed = [
        (
            kind.weight(line, start),
            _line_row(kind, line, name, start, all_of[start], estimated=samples[of] > 1),
        )
        for line in lines
        for name, start, of in there
        if line.get(start + first)
    ]
    weighed.sort(key=lambda one: one[0], reverse=True)
    return Section(
        title=kind.title,
        columns=kind.columns,
        totals=totals,
        parts=tuple(row for _, row in weighed[:most]),
        parts_are="line",
        left_out=len(weighed[most:]) if most is not None else 0,
        timed=kind.timed,
        sample=max(samples[name] for _, _, name in there),
    )


def _values(kind: _Kind, metrics: Mapping[str, Any], start: str) -> Values:
    return tuple(metrics[start + one.key] if one.key else None for one in kind.columns)


def _line_row(
    kind: _Kind, line: Any, name: str, start: str, whole: Number, *, estimated: bool
) -> Row:
    """A column without a key is the line's share of the whole weight."""
    share = ratio(kind.weight(line, start)[0], whole)
    values = _values(kind, line, start)
    shown = tuple(share if value is None else value for value in values)
    title = f"{place_text(line['line'], line['function'])} {name}".rstrip()
    return Row(title, shown, estimated=estimated, line=line["line"], function=line["function"])


def place_text(line: int, function: str) -> str:
    """A line of the source, with the function if that is not the kernel."""
    number = f"line {line}" if line else "no line"
    return f"{number} in {function}" if function else number


def _wasted(m: Any, start: str) -> tuple[Number, ...]:
    moved = m[f"{start}_bytes"]
    return max(0, moved - m[f"{start}_bytes_asked"]), moved


_KINDS = (
    _Kind(
        "Global memory",
        (
            Column("requests", "{} requests", "_requests"),
            Column("bytes asked", "{} bytes asked", "_bytes_asked", rank=2),
            Column("sectors", "{} sectors", "_sectors", rank=3),
            Column("bytes moved", "{} bytes moved", "_bytes", rank=1),
            Column("coalescing", "coalescing efficiency {}", "_efficiency", "share",
                   over="over 100 %: lanes share words"),
        ),
        (("loads", "global_load", "global_loads"), ("stores", "global_store", "global_stores")),
        _wasted,
    ),
    _Kind(
        "Shared memory",
        (
            Column("requests", "{} requests", "_requests"),
            Column("extra wavefronts", "{} wavefronts beyond the least", "_conflicts"),
            Column("a request", "{} a request", "_conflicts_mean", "mean", rank=1),
            Column("extra share", "{} of all (bank conflicts by address)", "_conflict_share",
                   "share"),
        ),
        (("loads", "shared_load", "shared_loads"), ("stores", "shared_store", "shared_stores")),
        lambda m, start: (m[f"{start}_conflicts"], m[f"{start}_requests"]),
    ),
    _Kind(
        "Branches",
        (
            Column("by warps", "{} by warps", "branches"),
            Column("split", "{} of them split", "branches_split"),
            Column("lanes", "{} lanes on average", "active_lanes_mean", "mean", rank=1),
            Column("efficiency", "branch efficiency {}", "branch_efficiency", "share"),
        ),
        (("", "", "branches"),),
        lambda m, _: (m["branches_split"], -m["active_lanes_mean"], m["branches"]),
    ),
    _Kind(
        "Barriers",
        (
            Column("passes", "{} passes of warps", "barrier_passes", rank=1),
            Column("cycles", "{} cycles", "barrier_cycles", rank=2),
            Column("mean", "{} each", "barrier_cycles_mean", "mean"),
            Column("of all cycles", "{} of all", form="share"),
        ),
        (("", "", "barrier_waits"),),
        lambda m, _: (m["barrier_cycles"],),
        timed=True,
    ),
)  # fmt: skip


# ---- instruction mix

_CLASS = Column("share of warps", "{}", form="share")
_FLOP = Column("FLOP", "{} floating-point operations", rank=2)
_INTENSITY = Column("FLOP/byte", "{} of them a byte of global sectors", form="mean", rank=1)


def _mix(m: Mapping[str, Any], sample: int) -> Section:
    columns = (
        Column("by warps", "{} of warps"),
        Column("by threads", "{} of threads", rank=3),
        _FLOP,
        *((_INTENSITY,) if "arithmetic_intensity" in m else ()),
        _CLASS,
    )
    blank = (None,) * (len(columns) - 3)
    threads = m["thread_instructions_by_class"]
    known = (m["flop"], *((m["arithmetic_intensity"],) if len(blank) > 1 else ()))
    whole = (m["warp_instructions"], m["thread_instructions"], *known, None)
    unsure = sample > 1
    return Section(
        title="Instructions (PTX)",
        columns=columns,
        totals=(Row("", whole, estimated=unsure),),
        parts=tuple(
            Row(name, (count, threads[name], *blank, share), estimated=unsure)
            for name, count, share in by_share(m["warp_instructions_by_class"])
        ),
        parts_are="class",
        sample=sample,
    )


# ---- latency of loads


def _latency(
    maps: Sequence[MapFigures],
    metrics: Mapping[str, Any],
    lines: Iterable[Any],
    most: int | None,
) -> Iterator[Section]:
    """The figures of all loads, the histogram, and the lines that wait longest."""
    samples = {one.name: one.sample for one in maps}
    if "load_latency" in metrics:
        counts = next(one for one in maps if one.name == "load_latency")
        yield _all_loads(metrics, counts)
        yield _histogram(counts)
    if "loads_measured" in metrics:
        section = _section(_LATENCY, metrics, lines, samples, most)
        assert section is not None
        yield section if "load_latency" not in metrics else replace(section, totals=())


def _all_loads(metrics: Mapping[str, Any], figures: MapFigures) -> Section:
    assert figures.buckets is not None
    found = percentiles(figures.buckets)
    columns = [Column("loads", "{} loads")]
    values: list[Number | None] = [int(figures.buckets.counts.sum())]
    for name, (least, below) in found.items():
        last = below == figures.buckets.edges[-1]
        end = f"{name} from" if last else f"{name} below"
        columns.append(Column(end, f"{end} {{}} cycles", form="whole"))
        values.append(least if last else below)
    if metrics.get("loads_measured"):
        columns.insert(1, Column("mean", "{} cycles on average", form="mean", rank=1))
        values.insert(1, metrics["load_cycles_mean"])
    return Section(
        title="Latency of a load on its own",
        columns=tuple(columns),
        totals=(Row("", tuple(values), estimated=figures.sample > 1),),
        barred=False,
        timed=True,
        sample=figures.sample,
    )


def _histogram(figures: MapFigures) -> Section:
    """From the first used bucket to the last, with the percentiles that lie in each. The last of
    all also counts what lies beyond."""
    assert figures.buckets is not None
    counts, edges = figures.buckets.counts, figures.buckets.edges
    used = counts.nonzero()[0].tolist()
    total, found = int(counts.sum()), percentiles(figures.buckets)
    rows = []
    for place in range(used[0], used[-1] + 1) if used else ():
        low, high, count = edges[place], edges[place + 1], int(counts[place])
        marks = (name for name, (least, _) in found.items() if least == low)
        last = place == len(counts) - 1
        name = f"from {low:,.0f}" if last else f"{low:,.0f} to {high - 1:,.0f}"
        shown = (count, ratio(count, total))
        rows.append(Row(name, shown, " ".join(marks), figures.sample > 1))
    return Section(
        title="Cycles of a load",
        columns=(Column("loads", "{}"), Column("of all loads", "{}", form="share")),
        totals=(),
        parts=tuple(rows),
        parts_are="cycles",
        timed=True,
        sample=figures.sample,
    )


_LATENCY = _Kind(
    "Waiting for loads",
    (
        Column("loads", "{} loads", "loads_measured", rank=1),
        Column("mean", "{} cycles on average", "load_cycles_mean", "mean"),
        Column("of all cycles", "{} of all", form="share"),
    ),
    (("", "", "line_latency"),),
    lambda m, _: (m["loads_measured"] * m["load_cycles_mean"],),
    timed=True,
)
