"""The kernels of a program that has run: as JSON values and as text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from gpuwatch.engine.frame import launch_text
from gpuwatch.engine.program_kernels import ProgramKernel
from gpuwatch.engine.program_process import ended_words
from gpuwatch.engine.program_session import ProgramSession

_NAME = 60
_NAMED = 8
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def kernels_of(session: ProgramSession) -> list[ProgramKernel]:
    """All that was launched, by the time that it took."""
    found = [one for process in session.processes.values() for one in process.listed()]
    return sorted(found, key=lambda one: (-(one.total_seconds or 0.0), -one.launches, one.key))


def as_json(session: ProgramSession) -> dict[str, Any]:
    """Plain values: seconds of the GPU, shared memory in bytes; null where nothing measures."""
    return {
        "command": list(session.options.command),
        "status": session.status,
        "processes": [asdict(process.shown()) for process in session.processes.values()],
        "kernels": [_kernel_as_json(one) for one in kernels_of(session)],
    }


def render(session: ProgramSession, console: Console) -> None:
    """A table, and what was not seen."""
    kernels = kernels_of(session)
    several = len({one.process for one in kernels}) > 1
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("kernel", *(["process"] if several else [])):
        table.add_column(name, overflow="ellipsis", no_wrap=True, max_width=_NAME)
    numbers = ("launches", "grid x block", "total", "mean", "registers", "shared", "occupancy")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("PTX", no_wrap=True)
    for one in kernels:
        table.add_row(*_cells(one, several=several))
    if kernels:
        console.print(table)
    else:
        console.print(_none_words(session))
    if any(one.estimated for one in kernels):
        console.print("~ launches came so fast that a part was seen and stands for the others")
    for process in session.processes.values():
        for text in _lost(process.link.table.lost if process.link.table else (0, 0)):
            console.print(f"process {process.pid}: {text}")
    for text in _unheard(session):
        console.print(text)
    if session.options.kernel and not any(one.probed for one in kernels):
        console.print(f"no launch was probed: {nothing_words(session)}")


def event_lines(session: ProgramSession) -> list[str]:
    """What a trace says of all kernels: launches, times, and why one was not probed."""
    lines = [f"program ends with {ended_words(session.status)}"]
    for one in kernels_of(session):
        shape = launch_text(one.grid, one.block, one.dynamic_shared)
        took = _seconds(one.total_seconds)
        text = f"process {one.process}: {one.launches} launches of {one.name} {shape}, {took}"
        lines.append(f"{text}, {one.probed} probed" + (f"; {one.why}" if one.why else ""))
    return lines + _unheard(session)


def _cells(one: ProgramKernel, *, several: bool) -> list[str]:
    shape = launch_text(one.grid, one.block, one.dynamic_shared)
    cells = [one.name.partition("(")[0], *([str(one.process)] if several else [])]
    about = "~" if one.estimated else ""
    cells += [f"{about}{one.launches:,}", shape + (f" +{one.shapes - 1}" if one.shapes > 1 else "")]
    cells += [about + _seconds(one.total_seconds), _seconds(one.mean_seconds)]
    shared = f"{one.static_shared + one.dynamic_shared:,} B" if one.registers else "-"
    cells += [str(one.registers or "-"), shared]
    cells += ["" if one.occupancy is None else f"{one.occupancy:.0%}"]
    graphs = f", {one.in_graphs:,} in graphs" if one.in_graphs else ""
    return [*cells, (one.why or one.origin) + graphs]


def _kernel_as_json(one: ProgramKernel) -> dict[str, object]:
    """What the driver has not told is null."""
    values = asdict(one) | {"probeable": one.probeable}
    return values if one.registers else values | {"registers": None, "static_shared": None}


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    unit, name = next((pair for pair in _UNITS if value >= pair[0]), _UNITS[-1])
    return f"{value / unit:.1f} {name}"


def _none_words(session: ProgramSession) -> str:
    if not session.processes:
        return (
            "the program does not use CUDA: no process of it has called the driver "
            "(if it should have: `gpuwatch doctor`)"
        )
    seen = all(process.said_bye and not process.problem for process in session.processes.values())
    return "the program launched no kernel" if seen else "no kernel of the program was seen"


def nothing_words(session: ProgramSession) -> str:
    """Why no launch of the program was probed."""
    options, kernels = session.options, kernels_of(session)
    matching = [one for one in kernels if session.is_wanted(one.name, one.mangled)]
    if not kernels:
        return _none_words(session)
    if not matching:
        return f"no kernel has {options.kernel!r} in its name; launched were " + ", ".join(
            sorted({one.name.partition("(")[0] for one in kernels})[:_NAMED]
        )
    reasons = sorted({one.why for one in matching if one.why})
    if reasons:
        return "; ".join(reasons)
    if options.first or options.last < max(one.launches for one in matching):
        return f"there were {max(one.launches for one in matching)} launches of it, counted from 0"
    return "what went wrong stands above" if session.attachments else "no launch was probed"


def _unheard(session: ProgramSession) -> list[str]:
    """Of processes that ended without telling their last launches."""
    found = []
    for process in session.processes.values():
        if not process.said_bye and process.status is not None:
            how = f", by {process.status}" if process.status.startswith("signal") else ""
            found.append(
                f"process {process.pid} has ended at once{how}: launches of its last moments may "
                "be missing"
            )
    return found


def _lost(lost: tuple[int, int]) -> list[str]:
    rows, records = lost
    words = ((rows, "launches of further kernels or shapes were not counted"),
             (records, "launches were not counted, CUPTI had no room for them"))  # fmt: skip
    return [f"{number:,} {text}" for number, text in words if number]
