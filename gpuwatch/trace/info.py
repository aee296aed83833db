"""`kernel.info`: what a trace says of a kernel, as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from gpuwatch.errors import UserError
from gpuwatch.instrument.model import Site
from gpuwatch.probe.language import (
    LEVELS,
    MAP_TYPES,
    REDUCTIONS,
    SAMPLE_UNITS,
    SCALES,
    TYPES,
)
from gpuwatch.probe.model import Field, Map
from gpuwatch.probe.verify_map import verify_map
from gpuwatch.trace.facts import DeviceFacts, Figures, KernelFacts
from gpuwatch.trace.values import Values

NAME = "kernel.info"
HEAD = "# What gpuwatch recorded:"
"""How the file begins."""
_TOP = ("name", "mangled", "grid", "block", "dynamic_shared_bytes")
"""Keys that must be there."""


def write_info(facts: KernelFacts) -> str:
    """The text of `kernel.info`."""
    top = {key: getattr(facts, key) for key in _TOP}
    parts = [
        f"{HEAD} the kernel, how it was launched, where, and with which probe.\n",
        _table("", {**top, "notes": list(facts.notes)}),
        _table("[device]", asdict(facts.device)),
        _table("[figures]", _known(asdict(facts.figures))),
        _table("[probe]", {"name": facts.probe, "title": facts.title}),
        *(_table("[[map]]", _of_map(one, one.name in facts.always)) for one in facts.maps),
        *(_table("[[site]]", asdict(one)) for one in facts.sites),
    ]
    return "\n".join(parts)


def map_values(map_: Map) -> dict[str, Any]:
    """All that a map is, but for its fields and its place in a probe's text."""
    names = [one.name for one in fields(Map) if one.name not in ("fields", "at")]
    return {name: getattr(map_, name) for name in names}


def _of_map(map_: Map, always: bool) -> dict[str, Any]:
    return {
        **map_values(map_),
        "always": always,
        "fields": [[one.name, one.type, one.reduction] for one in map_.fields],
    }


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _table(head: str, values: Mapping[str, Any]) -> str:
    lines = [head] if head else []
    lines += [f"{key} = {toml_value(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """A bool, number, text, or list of these, as TOML. Its basic strings are JSON's, but for one
    control character that JSON leaves as it is."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def is_info(document: Mapping[str, object]) -> bool:
    """Whether a document has what every `kernel.info` must."""
    return all(key in document for key in _TOP)


def read_info(document: Mapping[str, object], path: Path) -> KernelFacts:
    """Raises UserError, naming file and key, for what cannot be."""
    values = Values(document, str(path))
    probe = values.table("probe")
    maps = values.tables("map")
    return KernelFacts(
        name=values.text("name"),
        mangled=values.text("mangled"),
        grid=values.dim3("grid"),
        block=values.dim3("block"),
        dynamic_shared_bytes=values.whole("dynamic_shared_bytes"),
        probe=probe.text("name"),
        title=probe.text("title"),
        maps=tuple(map(read_map, maps)),
        always=frozenset(one.text("name") for one in maps if one.truth("always")),
        sites=tuple(map(_site, values.tables("site"))),
        device=_device(values.table("device")),
        figures=_figures(values.table("figures")),
        notes=values.texts("notes"),
        folder=path.parent.name,
    )


def _device(values: Values) -> DeviceFacts:
    kinds = {kind: kind for kind in ("sim", "cuda")}
    return DeviceFacts(
        name=values.text("name"),
        kind=values.one_of("kind", kinds, "cuda"),
        profile=values.text("profile"),
        arch=values.text("arch"),
        sm_count=values.whole("sm_count", most=1 << 16),
        warps_per_sm=values.whole("warps_per_sm", most=1 << 16),
        clock_hz=values.real("clock_hz"),
        modelled=values.truth("modelled"),
    )


def _figures(values: Values) -> Figures:
    whole = {
        one.name: values.whole(one.name)
        for one in fields(Figures)
        if one.name.startswith(("registers", "spills", "resident", "shared"))
    }
    return Figures(
        **whole,
        seconds_plain=values.real("seconds_plain"),
        seconds_probed=values.real("seconds_probed"),
        outputs_identical=values.maybe_truth("outputs_identical"),
    )


def read_map(values: Values) -> Map:
    """A map from its table. Raises UserError for one that cannot be."""
    found = tuple(
        Field(name, _word(values, type_, TYPES), _word(values, reduction, REDUCTIONS))
        for name, type_, reduction in values.rows("fields", 3)
    )
    if len({one.name for one in found}) != len(found):
        raise values.wrong("fields", "fields of different names")
    map_ = Map(
        name=values.text("name"),
        level=values.one_of("level", LEVELS, LEVELS["warp"]),
        type=values.one_of("type", MAP_TYPES, MAP_TYPES["array"]),
        size=values.whole("size", least=4, most=1 << 30),
        cap=values.whole("cap", default=1, least=1, most=1 << 31),
        fields=found,
        dynamic=values.truth("dynamic"),
        scale=values.one_of("scale", SCALES, SCALES["log2"]),
        low=values.whole("low", least=-(1 << 62)),
        step=values.whole("step", default=1, least=1),
        sample=values.whole("sample", default=1, least=1, most=1 << 31),
        sample_unit=values.one_of("sample_unit", SAMPLE_UNITS, SAMPLE_UNITS["warp"]),
    )
    try:
        verify_map(map_)
    except UserError as problem:
        raise values.refused(problem.message) from problem
    return map_


def _word(values: Values, word: str, known: Mapping[str, Any]) -> Any:
    if word not in known:
        raise values.wrong("fields", f"made of {', '.join(known)}")
    return known[word]


def _site(values: Values) -> Site:
    return Site(
        index=values.whole("index"),
        probe=values.text("probe"),
        opcode=values.text("opcode"),
        ptx_line=values.whole("ptx_line"),
        source_line=values.whole("source_line"),
        function=values.text("function"),
        before=values.truth("before", default=True),
        source_file=values.text("source_file"),
        mix=values.pairs("mix"),
        lines=values.pairs_of_lines("lines"),
    )
