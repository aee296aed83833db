"""The texts of a trace for the screen's source and log panes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from gpuwatch.engine.frame import Listing, LogEntry
from gpuwatch.engine.listing import FILE, source_lines
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.values import harmless
from gpuwatch.trace.writer import EVENTS, KERNELS

_MOST_TEXT = 16 << 20
"""Bytes of a text that are shown."""


@lru_cache(maxsize=4)
def listing_of_trace(trace: Path, facts: KernelFacts) -> Listing | None:
    """The recorded PTX; None where the trace has none. A trace does not hold the source."""
    folder = trace / KERNELS / facts.folder
    original, probed = _text(folder / "original.ptx"), _text(folder / "probed.ptx")
    if not facts.folder or not probed:
        return None
    named = FILE.search(probed)
    return Listing(
        build=0,
        kernel=facts.mangled,
        probe=facts.probe,
        source="",
        ptx=probed,
        inserted=inserted_lines(original, probed),
        lines=source_lines(probed, Path(named[2] if named else "")),
        sites=tuple((site.source_line, site.opcode) for site in facts.sites),
    )


def inserted_lines(original: str, probed: str) -> tuple[int, ...]:
    """Numbers from 1 of the lines of `probed` that `original`, in which nothing but whole lines
    were inserted, does not have."""
    wanted = iter(original.split("\n"))
    following = next(wanted, None)
    found = []
    for number, line in enumerate(probed.split("\n"), 1):
        if line == following:
            following = next(wanted, None)
        else:
            found.append(number)
    return tuple(found)


def log_of_trace(trace: Path) -> list[LogEntry]:
    """What happened while it was recorded, and what the assembler said."""
    entries = []
    events = trace / EVENTS
    if events.is_file():
        entries.append(LogEntry(events.stat().st_mtime, "worker", _text(events).rstrip()))
    logs = [(log, _text(log).rstrip()) for log in sorted((trace / KERNELS).glob("*/process.log"))]
    entries += [LogEntry(log.stat().st_mtime, "toolchain", said) for log, said in logs if said]
    return entries


def _text(path: Path) -> str:
    """Up to _MOST_TEXT bytes, harmless to a terminal; "" for what is no file."""
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            return harmless(file.read(_MOST_TEXT).decode("utf-8", "replace"), lines=True)
    except OSError:
        return ""
