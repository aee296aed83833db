"""Traces that Neutrino wrote: the same folder and binary form, told by `probe.toml` alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuwatch.errors import UserError
from gpuwatch.probe.model import Map
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.info import read_map
from gpuwatch.trace.result import Result
from gpuwatch.trace.values import Values, check_plain, harmless

NOTE = "this trace does not say on which device it was recorded"


class ForeignProbe:
    """The probe of such a trace, as far as its records need it."""

    def __init__(self, document: Mapping[str, object], path: Path) -> None:
        """Raises UserError for maps that cannot be."""
        tables = document.get("map")
        if not isinstance(tables, dict) or not tables:
            raise UserError(f"{path} has no maps", hint="a probe has a [map.NAME] for its records")
        self.name = harmless(_only_key(document.get("probe")) or next(iter(tables)))
        self.maps = tuple(_map(name, table, path) for name, table in tables.items())
        self.always = frozenset(one.name for one in self.maps if _at_kernel(document, one))

    def facts(self, result: Result, kernels: Path) -> KernelFacts:
        """The kernel of one result file, whose name is known when the trace has only one."""
        folders = sorted(kernels.iterdir()) if kernels.is_dir() else []
        name = _first_line(folders[0] / "kernel.info") if len(folders) == 1 else ""
        return KernelFacts(
            name=name or "a kernel",
            mangled=f"{result.grid} {result.block}",
            grid=result.grid,
            block=result.block,
            dynamic_shared_bytes=result.shared_bytes,
            probe=self.name,
            maps=self.maps,
            always=self.always,
            notes=(NOTE,),
        )


def _map(name: str, table: object, path: Path) -> Map:
    values: dict[str, Any] = dict(table) if isinstance(table, dict) else {}
    regs = values.pop("regs", None)
    if not isinstance(regs, dict):
        raise UserError(f"{path}: map {name} has no fields", hint=f"write [map.{name}.regs]")
    for key in ("size", "cap"):
        if isinstance(values.get(key), str) and values[key].isdecimal():
            values[key] = int(values[key])
    fields = [[key, one[0] if isinstance(one, list) and one else one] for key, one in regs.items()]
    values |= {"name": name, "fields": [[*one, "sum"] for one in fields]}
    return read_map(Values(values, f"{path}, map {name}"))


def _at_kernel(document: Mapping[str, object], map_: Map) -> bool:
    """Whether a probe at the kernel's begin or end saves to the map, which takes one record."""
    probes = document.get("probe")
    tables = probes.values() if isinstance(probes, dict) else ()
    return map_.cap == 1 and any(
        isinstance(one, dict)
        and one.get("pos", one.get("position")) == "kernel"
        and map_.name in f"{one.get('before', '')} {one.get('after', '')}"
        for one in tables
    )


def _only_key(table: object) -> str:
    return next(iter(table)) if isinstance(table, dict) and len(table) == 1 else ""


def _first_line(path: Path) -> str:
    check_plain(path)
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return harmless(file.readline(4096).strip())
    except OSError:
        return ""
