"""The `probe.toml` of a trace."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from gpuwatch.probe.model import (
    Action,
    Expression,
    Helper,
    Map,
    Probe,
    Program,
    Ptx,
    Read,
    Save,
)
from gpuwatch.syntax import module_tree
from gpuwatch.trace.info import toml_value

NAME = "probe.toml"
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def probe_text(program: Program, sources: Sequence[tuple[str, str]]) -> str:
    """The probe as TOML; `sources` are name and text of the files that it was read from.

    A single TOML file is kept as it is. Otherwise maps and probes are written out, each probe
    with its statements as the Python form has them.
    """
    if len(sources) == 1 and program.form == "toml":
        return sources[0][1]
    written = _statements([text for name, text in sources if name.endswith(".py")])
    lines = [f"# {program.title}" if program.title else f"# {program.name}"]
    lines.append("# Written out from " + ", ".join(name for name, _ in sources) + ".")
    if program.callback:
        lines.append(f"CALLBACK = {toml_value(program.callback)}")
    for name, probes in _by_name(program.probes).items():
        lines += ["", *_probe(name, probes, written.get(probes[0].name, ""))]
    for map_ in program.maps:
        lines += ["", *_map(map_)]
    return "\n".join(lines) + "\n"


def _statements(sources: Sequence[str]) -> dict[str, str]:
    """The body of each function of the Python form, by its name."""
    return {
        node.name: "\n".join(ast.get_source_segment(text, one) or "" for one in node.body)
        for text in sources
        for node in module_tree(text).body
        if isinstance(node, ast.FunctionDef)
    }


def _by_name(probes: Sequence[Probe]) -> dict[str, list[Probe]]:
    """Probes of one table: those before and behind a position that share a name."""
    tables: dict[str, list[Probe]] = {}
    for probe in probes:
        name, number = probe.name, 1
        while any(one.before == probe.before for one in tables.get(name, ())):
            number += 1
            name = f"{probe.name}_{number}"
        tables.setdefault(name, []).append(probe)
    return tables


def _probe(name: str, probes: Sequence[Probe], statements: str) -> list[str]:
    first = probes[0]
    lines = [
        f"[probe.{_key(name)}]",
        f"level = {toml_value(first.level)}",
        f"pos = {toml_value(first.position)}",
    ]
    for probe in probes:
        text = statements or "\n".join(map(_action, probe.body))
        lines.append(f"{'before' if probe.before else 'after'} = {_block(text)}")
    if first.sample > 1:
        lines += [f"sample = {first.sample}", f"sample_unit = {toml_value(first.sample_unit)}"]
    return lines


def _action(action: Action) -> str:
    """PTX and saves of the TOML form as that writes them."""
    if isinstance(action, Ptx):
        return action.text.strip()
    if isinstance(action, Save):
        return f"SAVE [ {action.map} ] {{ {', '.join(map(_value, action.values))} }};"
    return f"// {action}"


def _value(value: Expression) -> str:
    match value:
        case Read(register):
            return register
        case Helper(name):
            return name.upper()
    return str(value)


def _block(text: str) -> str:
    if "'''" in text or "\r" in text:
        return toml_value(text)
    return f"'''\n{text}\n'''"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_value(name)


def _map(map_: Map) -> list[str]:
    name = _key(map_.name)
    lines = [
        f"[map.{name}]",
        f"level = {toml_value(map_.level)}",
        f"type = {toml_value(map_.type)}",
        f"size = {map_.size}",
        f"cap = {toml_value('dynamic' if map_.dynamic else map_.cap)}",
    ]
    if map_.type == "hist":
        lines.append(f"scale = {toml_value(map_.scale)}")
        if map_.scale == "linear":
            lines += [f"low = {map_.low}", f"step = {map_.step}"]
    lines += ["", f"[map.{name}.regs]"]
    for one in map_.fields:
        how = one.reduction if map_.type == "reduce" else "None"
        lines.append(f"{_key(one.name)} = {toml_value([one.type, how])}")
    return lines
