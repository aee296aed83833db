"""The table of presets beside hardware counters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from exactness_table import COUNTERS, GROUPS, OPERATIONS, Counted, table

TRAFFIC = GROUPS[0].columns
SPLIT = "line 7 split: 1 global load of 16 bytes in PTX, 2 of 4 in machine code"


def counted(name: str, *, off: int = 0, marks: tuple[str, ...] = (), **more: Any) -> Counted:
    """A kernel of which each figure of traffic is 1000, and the counters say `off` more."""
    counters = {one.counter: 1000.0 + off for one in TRAFFIC}
    return Counted(
        name,
        counters | more.get("counters", {}),
        {one.metric: 1000 for one in TRAFFIC} | more.get("metrics", {}),
        {"gmem_traffic": marks},
        more.get("same", True),
    )


def rows(*kernels: Counted) -> list[str]:
    return table(kernels, [], "here")


def test_equal_figures_stand_alone() -> None:
    lines = rows(counted("vectors"))
    assert f"| vectors |{' 1,000 |' * len(TRAFFIC)}  |" in lines
    assert any(line.startswith("1 of 1 kernels equal in all columns.") for line in lines)


def test_a_difference_comes_with_its_reason() -> None:
    (row,) = (one for one in rows(counted("parts", off=1000, marks=(SPLIT,))) if "| parts" in one)
    assert "1,000 (ncu 2,000, -50.0%)" in row and row.endswith(f"| {SPLIT} |")


def test_a_difference_without_a_reason_stands_out() -> None:
    lines = rows(counted("odd", off=1), counted("even", marks=(SPLIT,)))
    assert any("UNEXPLAINED" in line for line in lines)
    assert any("Without a reason: odd. Marked, yet equal: even." in line for line in lines)


def test_operations_are_added_up_and_what_was_not_counted_is_told() -> None:
    counters = dict.fromkeys(OPERATIONS, 10.0)
    lines = rows(counted("sums", counters=counters, metrics={"flop": 80, "warp_instructions": 7}))
    assert any(line.startswith("| sums | 7 (not counted) |") and " 80 |" in line for line in lines)
    assert "flop" not in COUNTERS and set(OPERATIONS) <= set(COUNTERS)


def test_problems_and_changed_outputs_are_told() -> None:
    lines = table([counted("wild", same=False)], ["gemm: not begun, time is up"], "here")
    assert "Outputs differ with a probe: wild." in lines
    assert "- gemm: not begun, time is up" in lines
