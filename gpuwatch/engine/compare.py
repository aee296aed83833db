"""Two runs, each of a source or of a trace, figure by figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from gpuwatch.analysis.comparison import Difference, Series, Verdict, Wanted, compare
from gpuwatch.analysis.metrics import metrics_of
from gpuwatch.device.base import DeviceInfo
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.replay import ReplaySession
from gpuwatch.engine.report import occupancy_mean
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Dim3

KERNEL_TIME = "kernel time, plain"
PROBED_TIME = "kernel time, probed"
TRAFFIC = "gmem_traffic"
"""The preset that counts traffic with global memory."""
_TRAFFIC_LAUNCHES = 2
"""By which a figure that varies is known from one that does not."""
UNJUDGED: frozenset[Verdict] = frozenset(("unclear", "other probe"))

_Value = Callable[[Frame], float | None]


@dataclass(frozen=True, slots=True)
class _Figure:
    name: str
    unit: str
    value: _Value
    wanted: Wanted = ""
    exact: bool = False


def _percentile(name: str) -> _Value:
    return lambda frame: getattr(frame.elapsed, name) if frame.elapsed is not None else None


def _occupancy(frame: Frame) -> float | None:
    mean = occupancy_mean(frame)
    return None if mean is None else 100 * mean


_FIGURES = (
    _Figure("blocks", "", lambda frame: frame.blocks, exact=True),
    _Figure("tasks", "", lambda frame: frame.tasks, exact=True),
    _Figure("records missing", "", lambda frame: frame.missing, "less", exact=True),
    _Figure("records dropped", "", lambda frame: frame.dropped, "less", exact=True),
    _Figure("registers", "", lambda frame: frame.registers_plain or None, exact=True),
    _Figure("shared memory of a block", "B", lambda frame: frame.shared_bytes, exact=True),
    _Figure("resident blocks per SM", "", lambda frame: frame.resident_plain or None, exact=True),
    _Figure("running, average", "cycles", lambda frame: frame.running_cycles_mean, "less"),
    _Figure("idle, average", "cycles", lambda frame: frame.idle_cycles_mean, "less"),
    _Figure("running, p50", "cycles", _percentile("p50"), "less"),
    _Figure("running, p90", "cycles", _percentile("p90"), "less"),
    _Figure("running, p99", "cycles", _percentile("p99"), "less"),
    _Figure("running, longest", "cycles", _percentile("max"), "less"),
    _Figure("occupancy, mean", "%", _occupancy),
)

_ENDINGS: tuple[tuple[str, str, Wanted], ...] = (
    ("branch_efficiency", "", "more"),
    ("intensity", "", "more"),
    ("sectors", "", "less"),
    ("conflicts", "", "less"),
    ("conflicts_mean", "", "less"),
    ("conflict_share", "", "less"),
    ("branches_split", "", "less"),
    ("cycles", "cycles", "less"),
    ("cycles_mean", "cycles", "less"),
    ("bytes", "B", "less"),
    ("bytes_asked", "B", ""),
)
"""Unit of a named figure, and what is better, by how its name ends."""


@dataclass(frozen=True, slots=True)
class Run:
    """What some launches showed; `series` by name, in the order to show them in."""

    label: str
    """The source or trace."""
    kernel: str
    probe: str
    grid: Dim3
    block: Dim3
    device: DeviceInfo
    launches: int
    series: dict[str, Series]
    outputs_identical: bool | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """`speed` is the kernel time that the verdict rests on, plain where both have it."""

    before: Run
    after: Run
    rows: tuple[Difference, ...]
    speed: Difference | None
    notes: tuple[str, ...]


def run_of_source(session: Session, launches: int, told: Callable[[int], None]) -> Run:
    """Looks at so many launches of a prepared session; then at its traffic, if its probe does not
    count that, with a probe of its own, so that the cycles are not those of counting."""
    frames = []
    for number in range(launches):
        if number or not session.launches:
            session.step()
        frames.append(session.frame())
        told(number + 1)
    mangled, _ = session.selected
    plain = session.build.plains[mangled].runner.times.values
    probed = session.build.probeds[session.selected].runner.times.values
    traffic, problem = _traffic(session, frames[0])
    run = _run(session.source, frames, plain, probed, traffic)
    return replace(run, notes=(f"no traffic of {run.label}: {problem}",)) if problem else run


def _traffic(session: Session, frame: Frame) -> tuple[list[Frame], str]:
    """Launches with the preset that counts traffic, and why it could not attach; neither where
    the frame's own probe counts it."""
    if any(name.startswith("global_load") for name in metrics_of(frame.maps)):
        return [], ""
    _, former = session.selected
    try:
        session.select(probe=TRAFFIC)
        frames = []
        for _ in range(_TRAFFIC_LAUNCHES):
            session.step()
            frames.append(session.frame())
        session.select(probe=former)
    except UserError as problem:
        if problem.fatal:
            raise
        return [], problem.message
    return frames, ""


def run_of_trace(session: ReplaySession) -> Run:
    """Looks at every recorded launch of a prepared replay."""
    frames, probed = [], []
    for number in range(session.count):
        if number:
            session.step()
        frames.append(session.frame())
        probed.append(session.kernel_seconds)
    known = session.facts.figures.seconds_plain
    plain = (known,) if known > 0 else ()
    return _run(str(session.trace.path), frames, plain, [one for one in probed if one > 0], [])


def comparison_of(before: Run, after: Run) -> Comparison:
    names = list(dict.fromkeys((*before.series, *after.series)))
    rows = tuple(compare(before.series.get(name), after.series.get(name)) for name in names)
    if before.probe != after.probe:
        rows = tuple(map(_unjudged, rows))
    by_name = {row.name: row for row in rows}
    return Comparison(before, after, rows, _speed(by_name), _notes(before, after))


def _unjudged(row: Difference) -> Difference:
    """A row of two probes: times that hold what the probe itself costs have no verdict."""
    costs = row.name == PROBED_TIME or row.unit == "cycles"
    if not costs or row.before is None or row.after is None:
        return row
    return replace(row, verdict="other probe")


def _run(
    label: str,
    frames: list[Frame],
    plain: Iterable[float],
    probed: Iterable[float],
    traffic: list[Frame],
) -> Run:
    first = frames[0]
    modelled = first.device.modelled  # what is modelled is the same in every launch
    series = [
        _series(KERNEL_TIME, "us", [1e6 * one for one in plain], "less", modelled),
        _series(PROBED_TIME, "us", [1e6 * one for one in probed], "less", modelled),
    ]
    for figure in _FIGURES:
        values = [figure.value(frame) for frame in frames]
        exact = figure.exact or modelled
        series.append(_series(figure.name, figure.unit, values, figure.wanted, exact))
    series += _named(frames) + _named(traffic) + _totals(frames)
    return Run(
        label=label,
        kernel=first.kernel,
        probe=first.probe,
        grid=first.grid,
        block=first.block,
        device=first.device,
        launches=len(frames),
        series={one.name: one for one in series if one is not None},
        outputs_identical=first.outputs_identical,
    )


def _series(
    name: str,
    unit: str,
    values: Iterable[float | None],
    wanted: Wanted = "",
    exact: bool = False,
) -> Series | None:
    known = np.array([value for value in values if value is not None], np.float64)
    return Series(name, unit, known, wanted, exact) if len(known) else None


def _named(frames: list[Frame]) -> list[Series | None]:
    """The figures of the presets' maps that have a name of their own: traffic and other counts."""
    values: dict[str, list[float | None]] = {}
    for frame in frames:
        for name, value in metrics_of(frame.maps).items():
            if not isinstance(value, dict):
                values.setdefault(name, []).append(float(value))
    return [
        _series(name.replace("_", " "), unit, found, wanted)
        for name, found in values.items()
        for unit, wanted in (unit_and_wanted(name),)
    ]


def unit_and_wanted(name: str) -> tuple[str, Wanted]:
    """Of a figure of `analysis.metrics`."""
    for ending, unit, wanted in _ENDINGS:
        if name.endswith(ending):
            return unit, wanted
    return "", ""


def _totals(frames: list[Frame]) -> list[Series | None]:
    """Totals of the fields of other maps that keep no times."""
    values: dict[str, list[float | None]] = {}
    for frame in frames:
        for map_ in (one for one in frame.maps if not metrics_of([one])):
            for field in map_.fields:
                if field.total is not None and "start" not in map_.columns:
                    name = f"{map_.name}.{field.name}, total"
                    values.setdefault(name, []).append(float(field.total))
    return [_series(name, "", found) for name, found in values.items()]


def _speed(rows: dict[str, Difference]) -> Difference | None:
    """Plain times unless a trace has too few of them to tell."""
    plain, probed = rows.get(KERNEL_TIME), rows.get(PROBED_TIME)
    if plain is not None and plain.verdict not in UNJUDGED:
        return plain
    return probed if probed is not None and probed.verdict not in UNJUDGED else plain


def _notes(before: Run, after: Run) -> tuple[str, ...]:
    notes = []
    if before.device.name != after.device.name:
        notes.append(f"on different devices: {before.device.name}, {after.device.name}")
    if before.device.modelled or after.device.modelled:
        notes.append("times and cycles of a simulated GPU are modelled")
    if before.probe != after.probe:
        notes.append(f"with different probes: {before.probe}, {after.probe}")
    notes += [*before.notes, *after.notes]
    changed = [run.label for run in (before, after) if run.outputs_identical is False]
    notes += [f"the probe changed the outputs of {label}" for label in changed]
    return tuple(notes)
