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
        "kernels": [asdict(one) | {"probeable": one.probeable} for one in kernels_of(session)],
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
        console.print("~ launches came so fast that one in five was seen and stands for the others")
    for process in session.processes.values():
        for text in _lost(process.link.table.lost if process.link.table else (0, 0)):
            console.print(f"process {process.pid}: {text}")


def event_lines(session: ProgramSession) -> list[str]:
    """What a trace says of all kernels: launches, times, and why one was not probed."""
    lines = [f"program ends with {ended_words(session.status)}"]
    for one in kernels_of(session):
        shape = launch_text(one.grid, one.block, one.dynamic_shared)
        took = _seconds(one.total_seconds)
        text = f"process {one.process}: {one.launches} launches of {one.name} {shape}, {took}"
        lines.append(f"{text}, {one.probed} probed" + (f"; {one.why}" if one.why else ""))
    return lines


def _cells(one: ProgramKernel, *, several: bool) -> list[str]:
    shape = launch_text(one.grid, one.block, one.dynamic_shared)
    cells = [one.name.partition("(")[0], *([str(one.process)] if several else [])]
    about = "~" if one.estimated else ""
    cells += [f"{about}{one.launches:,}", shape + (f" +{one.shapes - 1}" if one.shapes > 1 else "")]
    cells += [about + _seconds(one.total_seconds), _seconds(one.mean_seconds)]
    cells += [str(one.registers or ""), f"{one.static_shared + one.dynamic_shared:,} B"]
    cells += ["" if one.occupancy is None else f"{one.occupancy:.0%}"]
    return [*cells, one.why or one.origin]


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    unit, name = next((pair for pair in _UNITS if value >= pair[0]), _UNITS[-1])
    return f"{value / unit:.1f} {name}"


def _none_words(session: ProgramSession) -> str:
    if not session.processes:
        return "the program does not use CUDA: no process of it has called the driver"
    return "the program launched no kernel"


def _lost(lost: tuple[int, int]) -> list[str]:
    rows, records = lost
    words = ((rows, "launches of further kernels or shapes were not counted"),
             (records, "launches were not counted, CUPTI had no room for them"))  # fmt: skip
    return [f"{number:,} {text}" for number, text in words if number]
