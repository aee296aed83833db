"""The probes and kernels that can be chosen."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.engine.frame import ProbeChoice
from gpuwatch.errors import UserError
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


def find_kernel(wanted: str, kernels: Mapping[str, tuple[str, str]], where: str) -> str:
    """The key of the kernel that `wanted` means, of mangled and readable names by key.

    Exact names, readable ones with or without parameters, win over parts. Raises UserError,
    listing the kernels of `where`, when none or several match.
    """
    exact = [key for key, names in kernels.items() if wanted in _whole_names(*names)]
    part = [key for key, names in kernels.items() if any(wanted in name for name in names)]
    found = exact or part
    if len(found) == 1:
        return found[0]
    listed = "\n".join(f"  {kernels[key][1]}" for key in found or kernels)
    problem = "matches several kernels" if found else "matches no kernel"
    raise UserError(
        f"{wanted!r} {problem} of {where}",
        detail=listed,
        hint="pass -k with one of these names, or a part that only one of them has",
    )


def _whole_names(mangled: str, demangled: str) -> tuple[str, str, str]:
    return mangled, demangled, demangled.partition("(")[0]
