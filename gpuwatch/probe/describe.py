"""Probes and maps in words."""

from __future__ import annotations

from gpuwatch.probe.language import layout_of
from gpuwatch.probe.model import Map, Probe


def describe_probe(probe: Probe) -> str:
    """Where and for what it runs: `begin: before kernel, once per warp`."""
    when = "before" if probe.before else "after"
    sampled = f", for one {probe.sample_unit} in {probe.sample}" if probe.sample > 1 else ""
    return f"{probe.name}: {when} {probe.position}, once per {probe.level}{sampled}"


def describe_slot(map_: Map) -> str:
    """What a slot holds: `16 bytes x 1`, `65 buckets, by powers of 2`."""
    if map_.type == "hist":
        if map_.scale == "log2":
            return f"{map_.cap} buckets, by powers of 2"
        return f"{map_.cap} buckets of {map_.step} from {map_.low}"
    if map_.dynamic:
        return f"{map_.size} bytes, as many as are saved"
    return f"{map_.size} bytes x {map_.cap}"


def describe_fields(map_: Map) -> str:
    """The fields with their types and, of records, their places: `start u64 0, sm u32 8`. Of
    reduced ones also how they are combined."""
    if map_.type == "hist":
        return ", ".join(f"{field.name} {field.type}" for field in map_.fields)
    parts = []
    for field, offset in zip(map_.fields, layout_of(map_.fields)[0], strict=True):
        how = f" {field.reduction}" if map_.type == "reduce" else ""
        parts.append(f"{field.name} {field.type}{how} {offset}")
    return ", ".join(parts)
