"""The table of presets beside hardware counters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from exactness_file import METRICS, Record, read
from exactness_static import sizes
from exactness_table import COUNTERS, GROUPS, OPERATIONS, Counted, table

from gpuwatch.ptx import parse
from gpuwatch.toolchain import MachineInstruction

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
TRAFFIC = GROUPS[0].columns
SPLIT = "line 7 split: 1 global load of 16 bytes in PTX, 2 of 4 in machine code"


def counted(name: str, *, off: int = 0, marks: tuple[str, ...] = (), **more: Any) -> Counted:
    """A kernel of which each figure of traffic is 1000, and the counters say `off` more."""
    counters = {one.counter: 1000.0 + off for one in TRAFFIC}
    return Counted(
        name,
        counters | more.get("counters", {}),
        {one.metric: 1000 for one in TRAFFIC} | more.get("metrics", {}),
        {"global_loads": marks} | more.get("marked", {}),
        more.get("sizes", {}),
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
    assert any(line.startswith("| sums | 7 (not counted) |") for line in lines)
    assert "| sums | 80 |  |" in lines


def test_what_was_not_counted_is_not_equal() -> None:
    *_, verdict = rows(counted("bare", metrics={"flop": 80}))
    assert verdict.startswith("0 of 1 kernels equal in all columns.")
    assert "flop" not in COUNTERS and set(OPERATIONS) <= set(COUNTERS)


def test_a_mark_is_no_reason_for_what_another_map_counts() -> None:
    stores = {one.counter: 999.0 for one in TRAFFIC if one.map == "global_stores"}
    (row,) = (
        one for one in rows(counted("odd", marks=(SPLIT,), counters=stores)) if "| odd" in one
    )
    assert row.endswith("| UNEXPLAINED |")


def test_floating_point_operations_need_a_reason() -> None:
    counters = dict.fromkeys(OPERATIONS, 10.0)
    same = counted("same", counters=counters, metrics={"flop": 80})
    more = counted("more", counters=counters, metrics={"flop": 81})
    reason = {"blocks_run": ["line 3 moved: 5"]}
    told = counted("told", counters=counters, metrics={"flop": 81}, marked=reason)
    lines = rows(same, more, told)
    assert "| told | 81 (ncu 80, +1.2%) | line 3 moved: 5 |" in lines
    assert any("1 of 3 kernels equal in all columns. Without a reason: more." in x for x in lines)


def test_instructions_come_with_the_numbers_that_there_are() -> None:
    numbers = {"ptx": 17, "moves": 8, "machine": 16}
    figures = {"warp_instructions": 7, "thread_instructions": 7}
    one = counted(
        "mixed", counters={"smsp__inst_executed.sum": 6.0}, metrics=figures, sizes=numbers
    )
    (row,) = (line for line in rows(one) if "| mixed | 7 (ncu 6" in line)
    assert row.endswith("| 17 in PTX, 8 of them moves; 16 in machine code |")


def test_sizes_leave_out_what_fills_up_and_other_kernels() -> None:
    body = "\tld.param.u64 %rd1, [a];\n\tcvta.to.global.u64 %rd2, %rd1;\n\tadd.u64 %rd1, %rd2, 4;"
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    kernels = [
        f".visible .entry {name}(.param .u64 a)\n{{\n\t.reg .b64 %rd<3>;\n{body}\n\tret;\n}}\n"
        for name in ("one", "two")
    ]
    opcodes = ("LDC", "IADD3", "EXIT", "BRA", "NOP", "NOP")
    code = [
        MachineInstruction(name, name, 0, "", (opcode,), (), 0)
        for name in ("one", "two")
        for opcode in opcodes
    ]
    module = parse(head + "".join(kernels), "two.ptx")
    assert sizes(module, "one", code) == {"ptx": 4, "moves": 2, "machine": 3}


def test_figures_are_written_and_read(tmp_path: Path) -> None:
    metrics = {"flop": 80, "warp_instructions": 7}
    one = counted("sums", marks=(SPLIT,), counters={COUNTERS[-1]: 4.0}, metrics=metrics)
    Record("here", [one], ["gemm: not begun"]).write(tmp_path / "table.md")
    again = read(tmp_path / "table.json")
    assert (again.how, again.problems, again.counted[0].name) == (
        "here",
        ["gemm: not begun"],
        "sums",
    )
    assert again.counted[0].counters == one.counters and again.counted[0].metrics == one.metrics
    assert set(one.metrics) <= set(METRICS)
    assert (tmp_path / "table.md").read_text().splitlines() == table(
        again.counted, again.problems, again.how
    )


def test_the_recorded_table_is_that_of_its_figures_and_leaves_nothing_unexplained() -> None:
    record = read(BENCHMARKS / "exactness.json")
    text = "\n".join(table(record.counted, record.problems, record.how)) + "\n"
    assert (BENCHMARKS / "exactness.md").read_text() == text
    assert "UNEXPLAINED" not in text and len(record.counted) == 38
    assert "36 of 38 kernels equal in all columns. Without a reason: none." in text


def test_problems_and_changed_outputs_are_told() -> None:
    lines = table([counted("wild", same=False)], ["gemm: not begun, time is up"], "here")
    assert "Outputs differ with a probe: wild." in lines
    assert "- gemm: not begun, time is up" in lines
