"""What is said of probes and maps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.probe import load
from gpuwatch.probe.describe import describe_fields, describe_probe, describe_slot
from gpuwatch.probe.model import Field, Map

PLAIN = Map("m", "warp", "array", 16, 3, (Field("a", "u32"), Field("b", "u64", "max")))
HIST = Map("m", "warp", "hist", 8, 65, (Field("a", "s32"),))


@pytest.mark.parametrize(
    ("map_", "slot", "fields"),
    [
        (PLAIN, "16 bytes x 3", "a u32 0, b u64 8"),
        (replace(PLAIN, dynamic=True), "16 bytes, as many as are saved", "a u32 0, b u64 8"),
        (replace(PLAIN, type="reduce"), "16 bytes x 3", "a u32 sum 0, b u64 max 8"),
        (HIST, "65 buckets, by powers of 2", "a s32"),
        (replace(HIST, scale="linear", low=-4, step=8), "65 buckets of 8 from -4", "a s32"),
    ],
)
def test_maps(map_: Map, slot: str, fields: str) -> None:
    assert (describe_slot(map_), describe_fields(map_)) == (slot, fields)


def test_probes() -> None:
    arrive, leave = load("block_sched").probes
    assert describe_probe(arrive) == "arrive: before kernel, once per warp"
    sampled = replace(leave, sample=8, sample_unit="block")
    assert describe_probe(sampled) == "leave: after kernel, once per warp, for one block in 8"
