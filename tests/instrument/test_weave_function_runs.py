"""Probes in functions that a kernel calls count exactly, on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from test_weave_functions import DIRECT, ENDS, EXITING, LOADS, NESTED, POINTER, functions
from weaving import run

from gpuwatch.probe import load, parse_python


@pytest.mark.parametrize("text", [DIRECT, NESTED, POINTER], ids=["direct", "nested", "pointer"])
def test_sites_in_functions_count(text: str) -> None:
    probed = run(text, LOADS, (2, 1, 1), (48, 1, 1))
    assert np.array_equal(probed.plain, probed.output)
    seen = probed.maps["seen"]
    per_thread = sum(name != "" for name in functions(probed.woven)) if text == NESTED else 1
    slots = [slot for slot, size in zip(seen.slots, seen.column("size"), strict=True) if size == 4]
    assert np.bincount(slots).tolist() == [per_thread] * 96


@pytest.mark.parametrize("level", ["thread", "warp"])
def test_ends_in_functions_are_recorded(level: str) -> None:
    probed = run(EXITING, parse_python(ENDS.format(level=level), "ends.py"), (1, 1, 1), (48, 1, 1))
    assert np.array_equal(probed.plain, probed.output)
    assert probed.counts["ends"].tolist() == [1] * (48 if level == "thread" else 2)


def test_a_warp_whose_last_lanes_leave_the_kernel_is_recorded() -> None:
    """Those that leave in the function are counted out, though they cannot run the probe."""
    probed = run(EXITING, load("block_sched"), (1, 1, 1), (48, 1, 1))
    assert np.array_equal(probed.plain, probed.output)
    assert probed.counts["block_sched"].tolist() == [0, 1]
