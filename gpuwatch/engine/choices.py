"""The probes that can be chosen."""

from __future__ import annotations

from gpuwatch.engine.frame import ProbeChoice
from gpuwatch.probe import load
from gpuwatch.probe.catalogue import presets


def probe_choices(own: str = "") -> list[ProbeChoice]:
    """The presets in the order of their keys, then `own` when it is none of them.

    Raises UserError for a probe that cannot be read.
    """
    choices = [ProbeChoice(name, load(name).title, key) for key, name, _path in presets()]
    if own and own not in {choice.name for choice in choices}:
        choices.append(ProbeChoice(own, load(own).title, 0))
    return choices
