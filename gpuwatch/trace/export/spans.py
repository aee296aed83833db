"""Launches as spans of time on tracks, for viewers of timelines.

The clocks of two SMs cannot be compared, so each SM's time begins at its own first start; launches
follow one another with a gap. A track is one slot of an SM, as in `analysis.timeline.lanes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.timeline import block_spans, lanes
from gpuwatch.analysis.warps import Intervals, intervals, is_timed
from gpuwatch.errors import UserError
from gpuwatch.probe.model import Map
from gpuwatch.trace.buffers import MOST_SMS
from gpuwatch.trace.export.rows import shape_of
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.reading import LaunchRecords
from gpuwatch.trace.result import wrong

_GAP = 0.05
"""Part of a launch's span that is left free behind it."""
NO_SM = -1
"""SM of records that name none."""
_LATEST = 1 << 62
"""Nanoseconds that no span reaches; timelines count them in 64 bits."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of one kind on one SM in one launch, in order of begin; all (n,).

    `number` is the warp ID or the block, `begin` and `end` are nanoseconds from the beginning of
    the first launch.
    """

    launch: int
    sm: int
    kind: str
    """ "block" or "warp"."""
    number: NDArray[np.int64]
    lane: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    elapsed: NDArray[np.int64]
    """Cycles of the SM."""


def timed_map(facts: KernelFacts) -> Map:
    """The map that times are taken from. Raises UserError when there is none."""
    for map_ in facts.maps:
        names = tuple(field.name for field in map_.fields)
        if map_.type == "array" and map_.level in ("warp", "thread") and is_timed(names):
            return map_
    raise UserError(
        f"the probe {facts.probe} records no start and elapsed, so there is no timeline",
        hint="export to csv, json, npz or parquet, or record with -p block_sched",
    )


def spans_of(launches: Iterable[LaunchRecords]) -> Iterator[Spans]:
    """The spans of every launch, SM by SM: its blocks, then its warps. Raises UserError for SMs
    that no GPU has and for times that no launch takes."""
    begins = 0
    for found in launches:
        map_ = timed_map(found.kernel)
        decoded = found.maps[map_.name]
        seen = intervals(decoded.records, found.index[map_.name], shape_of(found, map_))
        if seen is None or not len(seen):
            continue
        nanoseconds = 1e9 / (found.kernel.device.clock_hz or 1e9)
        longest = 0
        for spans in _of_launch(found, seen, nanoseconds, begins):
            longest = max(longest, int(spans.end.max()) - begins)
            yield spans
        begins += int(longest * (1 + _GAP)) + 1


def _of_launch(
    found: LaunchRecords, seen: Intervals, nanoseconds: float, begins: int
) -> Iterator[Spans]:
    sms = seen.sm if seen.sm is not None else np.full(len(seen), NO_SM, np.int32)
    if seen.sm is not None and (sms.min() < 0 or sms.max() >= MOST_SMS):
        raise wrong(found.path, "a record names an SM that no GPU has")
    blocks = seen.warp // found.layout.warps_per_block
    order = np.lexsort((seen.start, sms))
    bounds = np.flatnonzero(np.diff(sms[order])) + 1
    for rows in np.split(order, bounds):
        sm = int(sms[rows[0]])
        start, elapsed = seen.start[rows], seen.elapsed[rows]
        origin = int(start[0])

        def spans(
            kind: str,
            number: NDArray[np.int64],
            begin: NDArray[np.int64],
            end: NDArray[np.int64],
            *,
            sm: int = sm,
        ) -> Spans:
            latest = begins + float(end.max()) * nanoseconds
            if begin.min() < 0 or (end < begin).any() or latest >= _LATEST:
                raise wrong(found.path, f"a {kind} of SM {sm} ran at a time that cannot be")
            return Spans(
                launch=found.launch.number,
                sm=sm,
                kind=kind,
                number=number,
                lane=lanes(begin, end),
                begin=begins + (begin * nanoseconds).astype(np.int64),
                end=begins + (end * nanoseconds).astype(np.int64),
                elapsed=end - begin,
            )

        by_block = rows[np.argsort(blocks[rows], kind="stable")]
        held = block_spans(
            np.zeros(len(rows), np.int32),
            blocks[by_block],
            seen.start[by_block],
            seen.elapsed[by_block],
            1,
        )
        yield spans("block", held.block, held.begin, held.end)
        begin = start - origin
        yield spans("warp", seen.warp[rows], begin, begin + elapsed)
