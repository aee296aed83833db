"""The line of probes: each with its digit, the chosen one, and why one cannot attach."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.engine.frame import ProbeChoice
from gpuwatch.tui.glyphs import Glyphs
from gpuwatch.tui.paint import Span, as_many, width_of
from gpuwatch.tui.theme import CHOSEN, KEY, QUIET, TEXT

_GAP: Span = ("  ", QUIET)
_LEAST_REASON = 24
"""Cells below which a reason says nothing."""


def probe_line(
    probes: Sequence[ProbeChoice], chosen: str, refused: str, glyphs: Glyphs, width: int
) -> list[Span]:
    """Where `width` is too small for all names, digits alone stand for those not chosen."""
    groups: list[list[Span]] = []
    for probe in probes:
        digit = str(probe.key) if probe.key else "file"
        if probe.name == chosen:
            groups.append([(f" {digit} {probe.name} ", CHOSEN)])
        elif probe.problem:
            groups.append([(digit + glyphs.cross, QUIET), (f" {probe.name}", QUIET)])
        else:
            groups.append([(digit, KEY), (f" {probe.name}", TEXT)])
    room = width - 2
    if width_of(span for group in groups for span in group) + 2 * len(groups) > room:
        groups = [group if group[0][1] is CHOSEN else group[:1] for group in groups]
    line = [(" ", TEXT), *as_many(groups, room, _GAP)]
    return [*line, *_reasons(probes, refused, glyphs, room - width_of(line))]


def _reasons(probes: Sequence[ProbeChoice], refused: str, glyphs: Glyphs, room: int) -> list[Span]:
    """Why the preset pressed last, or else the first, cannot attach, as far as there is room."""
    reasons = {one.name: f"{one.name}: {one.problem}" for one in probes if one.problem}
    if not reasons or room < _LEAST_REASON:
        return []
    reason = reasons.get(refused, next(iter(reasons.values())))
    text = f"   {glyphs.cross} {reason}"
    return [(text if len(text) <= room else text[: room - 1] + glyphs.ellipsis, QUIET)]
