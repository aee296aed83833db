"""Timelines as Chrome's trace events (JSON), which Perfetto opens too."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from gpuwatch.trace.export.spans import NO_SM, Spans, spans_of
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.reading import LaunchRecords

BLOCK_LANES = 1 << 16
"""Thread numbers of the tracks of warps begin here; those of blocks are below."""


def write_chrome(path: Path, facts: KernelFacts, launches: Iterable[LaunchRecords]) -> int:
    """A process for each SM, a thread for each of its slots, an event for each block and warp;
    gives the number of events."""
    known: set[tuple[int, int]] = set()
    count = 0
    with path.open("w", encoding="utf-8") as file:
        about = {"kernel": facts.name, "device": facts.device.name, "probe": facts.probe}
        file.write(json.dumps({"displayTimeUnit": "ns", "otherData": about})[:-1])
        file.write(', "traceEvents": [')
        for spans in spans_of(launches):
            events = [*_names(spans, known), *_events(spans)]
            file.write(",\n" if count else "\n")
            file.write(",\n".join(map(json.dumps, events)))
            count += len(spans.number)
        file.write("\n]}\n")
    return count


def sm_name(sm: int) -> str:
    return "SM unknown" if sm == NO_SM else f"SM {sm}"


def _thread(spans: Spans, lane: int) -> int:
    return lane + (BLOCK_LANES if spans.kind == "warp" else 0)


def _names(spans: Spans, known: set[tuple[int, int]]) -> list[dict[str, object]]:
    """Names of tracks that were not named before."""
    events: list[dict[str, object]] = []
    process = spans.sm + 1
    if not any(named == process for named, _ in known):
        events.append(_name("process_name", process, 0, sm_name(spans.sm)))
    for lane in sorted(set(spans.lane.tolist())):
        thread = _thread(spans, lane)
        if (process, thread) not in known:
            known.add((process, thread))
            events.append(_name("thread_name", process, thread, f"{spans.kind} slot {lane}"))
    return events


def _name(what: str, process: int, thread: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _events(spans: Spans) -> list[dict[str, object]]:
    rows = zip(
        spans.number.tolist(), spans.lane.tolist(), spans.begin.tolist(), spans.end.tolist(),
        spans.elapsed.tolist(), strict=True,
    )  # fmt: skip
    return [
        {
            "ph": "X",
            "name": f"{spans.kind} {number}",
            "cat": spans.kind,
            "pid": spans.sm + 1,
            "tid": _thread(spans, lane),
            "ts": begin / 1000,
            "dur": (end - begin) / 1000,
            "args": {"launch": spans.launch, "cycles": cycles},
        }
        for number, lane, begin, end, cycles in rows
    ]
