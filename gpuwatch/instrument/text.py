"""PTX text of the TOML form, with its names replaced by woven ones."""

from __future__ import annotations

import re

from gpuwatch.instrument.names import IDENTIFIER
from gpuwatch.instrument.scene import Scene, Shared
from gpuwatch.probe.model import Probe, Ptx

_LABEL = re.compile(r"(?:^|(?<=[;}\n]))\s*([$A-Za-z_][\w$]*):(?!:)")
_NUMBERED = re.compile(r"(.*?)(\d+)$")


def declare(shared: Shared, probe: Probe) -> list[str]:
    """The `.reg` lines of a probe's own declarations, renamed."""
    lines = []
    for action in probe.body:
        if isinstance(action, Ptx):
            for type_, name, count in action.declarations:
                renamed = own_name(shared, probe, name)
                shared.own[probe.name, name] = renamed
                shared.counted[probe.name, name] = count
                lines.append(f"\t.reg .{type_} \t{renamed}{f'<{count}>' if count else ''};")
    return lines


def own_name(shared: Shared, probe: Probe, name: str) -> str:
    """A probe's own register under a name that the module and other probes do not use.

    Both halves of a TOML probe carry its name and share what either declares.
    """
    plain = re.sub(r"\W", "_", probe.name)
    return f"{shared.names.registers}x_{plain}_{name.lstrip('%')}"


def substitute(scene: Scene, action: Ptx) -> list[str]:
    """The lines of a run of PTX for one place; labels are new at each place."""
    shared = scene.shared
    labels = {name: shared.names.label() for name in _LABEL.findall(action.text)}

    def replaced(match: re.Match[str]) -> str:
        name = match[0]
        if name in shared.registers:
            return shared.registers[name].text
        return labels.get(name) or _own(scene, name) or name

    text = IDENTIFIER.sub(replaced, action.text)
    return [f"\t{line.strip()}" for line in text.splitlines() if line.strip()]


def _own(scene: Scene, name: str) -> str | None:
    own, probe = scene.shared.own, scene.probe.name
    if (probe, name) in own:
        return own[probe, name]
    numbered = _NUMBERED.match(name)
    if numbered and scene.shared.counted.get((probe, numbered[1])):
        return own[probe, numbered[1]] + numbered[2]
    return None
