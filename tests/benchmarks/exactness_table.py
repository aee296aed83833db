"""What presets and hardware counters say of the same launches, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

L1 = "l1tex__"
OPERATIONS = {
    f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum": times
    for kind in "fd"
    for name, times in ((f"{kind}add", 1), (f"{kind}mul", 1), (f"{kind}fma", 2))
}
"""Counters of floating-point instructions of threads, each with its operations."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure of a preset, by its name among the metrics, beside a counter."""

    title: str
    metric: str
    counter: str
    map: str = ""
    """The map whose marked lines are the reason of a difference."""


@dataclass(frozen=True, slots=True)
class Group:
    """A table. `exact` says whether a difference needs a reason."""

    title: str
    columns: tuple[Compared, ...]
    exact: bool
    note: str = ""
    sizes: bool = False
    """Whether differences follow from the numbers of instructions that there are."""


def _traffic(what: str, op: str) -> Iterator[Compared]:
    for figure in ("requests", "sectors", "bytes"):
        counter = f"{L1}t_{figure}_pipe_lsu_mem_global_op_{op}.sum"
        yield Compared(f"{what} {figure}", f"global_{what}_{figure}", counter, f"global_{what}s")


GROUPS = (
    Group(
        "Global memory (`gmem_traffic`)",
        (*_traffic("load", "ld"), *_traffic("store", "st")),
        exact=True,
    ),
    Group(
        "Shared memory (`smem_conflicts`)",
        (
            Compared("load requests", "shared_load_requests",
                     "smsp__inst_executed_op_shared_ld.sum", "shared_loads"),
            Compared("store requests", "shared_store_requests",
                     "smsp__inst_executed_op_shared_st.sum", "shared_stores"),
        ),
        exact=True,
        note="The counters are of instructions: a warp counts also when a guard holds in no lane.",
    ),
    Group(
        "Bank conflicts (`smem_conflicts`)",
        (
            Compared("loads", "shared_load_conflicts",
                     f"{L1}data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"),
            Compared("stores", "shared_store_conflicts",
                     f"{L1}data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"),
        ),
        exact=False,
        note="The counters also count waits that no address explains.",
    ),
    Group(
        "Instructions (`instr_mix`)",
        (
            Compared("warp instructions", "warp_instructions", "smsp__inst_executed.sum"),
            Compared("thread instructions", "thread_instructions",
                     "smsp__thread_inst_executed.sum"),
        ),
        exact=False,
        sizes=True,
        note="The preset counts instructions of the PTX, the counters those of the machine code, "
        "which is another program: ptxas merges address arithmetic, reads parameters as operands, "
        "needs no moves, and repeats the bodies of loops. How many there "
        "are of both is told, with conversions and reads of parameters among the moves.",
    ),
    Group(
        "Floating-point operations (`instr_mix`)",
        (Compared("FLOP", "flop", "flop", "blocks_run"),),
        exact=True,
        note="Those of the counters are additions, multiplications and twice the multiply-adds, "
        "those of divisions, roots and the like included.",
    ),
)  # fmt: skip
COUNTERS = tuple(
    dict.fromkeys(
        [
            *(one.counter for group in GROUPS for one in group.columns if "__" in one.counter),
            *OPERATIONS,
        ]
    )
)


@dataclass(frozen=True, slots=True)
class Counted:
    """One kernel: counters by name, metrics by name, the marked lines by map, and how many
    instructions there are: "ptx", "moves" of these and "machine"."""

    name: str
    counters: Mapping[str, float]
    metrics: Mapping[str, Any]
    marked: Mapping[str, Sequence[str]]
    sizes: Mapping[str, int]
    outputs_identical: bool

    def counter(self, name: str) -> int | None:
        """None where it was not counted."""
        if name == "flop":
            there = [one for one in OPERATIONS if one in self.counters]
            whole = sum(self.counters[one] * OPERATIONS[one] for one in there)
            return int(whole) if there else None
        return int(self.counters[name]) if name in self.counters else None

    def difference(self, one: Compared) -> int:
        """Of the preset from the counter; 0 where that was not counted."""
        counter = self.counter(one.counter)
        return 0 if counter is None else int(self.metrics.get(one.metric, 0)) - counter


def table(counted: Sequence[Counted], problems: Sequence[str], how: str) -> list[str]:
    """Lines of Markdown: a table a group, and what could not be counted."""
    lines = [
        "# Presets beside hardware counters",
        "",
        f"By `exactness_gpu.py` ({how}): a figure alone is equal in both; otherwise the preset's, "
        "then that of Nsight Compute and the difference. Of a difference the reason is given that "
        "the disassembly of the plain build shows.",
    ]
    for group in GROUPS:
        lines += ["", f"## {group.title}", "", *_rows(group, counted), "", _verdict(group, counted)]
    different = [one.name for one in counted if not one.outputs_identical]
    if different:
        lines += ["", f"Outputs differ with a probe: {', '.join(different)}."]
    if problems:
        lines += ["", "## Not counted", "", *(f"- {problem}" for problem in problems)]
    return lines


def _rows(group: Group, counted: Sequence[Counted]) -> Iterator[str]:
    last = "instructions there are" if group.sizes else "reason"
    yield f"| program | {' | '.join(one.title for one in group.columns)} | {last} |"
    yield "|---" * (len(group.columns) + 2) + "|"
    for one in counted:
        if any(_is_there(one, column) for column in group.columns):
            cells = " | ".join(_cell(one, column) for column in group.columns)
            yield f"| {one.name} | {cells} | {_reason(group, one)} |"


def _is_there(one: Counted, column: Compared) -> bool:
    return bool(one.metrics.get(column.metric) or one.counter(column.counter))


def _cell(one: Counted, column: Compared) -> str:
    counter, ours = one.counter(column.counter), int(one.metrics.get(column.metric, 0))
    if counter is None:
        return f"{ours:,} (not counted)"
    if counter == ours:
        return f"{ours:,}"
    share = f", {(ours - counter) / counter:+.1%}" if counter else ""
    return f"{ours:,} (ncu {counter:,}{share})"


def _differs(group: Group, one: Counted) -> bool:
    return any(one.difference(column) for column in group.columns)


def _is_equal(group: Group, one: Counted) -> bool:
    """Whether all was counted, and nothing differs."""
    there = (one.counter(column.counter) is not None for column in group.columns)
    return all(there) and not _differs(group, one)


def _reason(group: Group, one: Counted) -> str:
    if not _differs(group, one):
        return ""
    if group.sizes:
        return _sizes(one.sizes) if one.sizes else ""
    maps = dict.fromkeys(column.map for column in group.columns if one.difference(column))
    return "; ".join(_marks(one, maps)) or ("UNEXPLAINED" if group.exact else "")


def _marks(one: Counted, maps: Iterable[str]) -> list[str]:
    return [mark for name in maps for mark in one.marked.get(name, ())]


def _sizes(sizes: Mapping[str, int]) -> str:
    return (
        f"{sizes['ptx']} in PTX, {sizes['moves']} of them moves; {sizes['machine']} in machine code"
    )


def _verdict(group: Group, counted: Sequence[Counted]) -> str:
    there = [one for one in counted if any(_is_there(one, column) for column in group.columns)]
    if group.sizes:
        return group.note
    exact = [one for one in there if _is_equal(group, one)]
    text = f"{len(exact)} of {len(there)} kernels equal in all columns."
    if group.exact:
        bare = [one.name for one in there if _reason(group, one) == "UNEXPLAINED"]
        text += f" Without a reason: {', '.join(bare) or 'none'}."
        idle = [one.name for one in there if _marked_yet_equal(group, one)]
        text += f" Marked, yet equal: {', '.join(idle) or 'none'}."
    return f"{text} {group.note}".rstrip()


def _marked_yet_equal(group: Group, one: Counted) -> bool:
    maps = {column.map for column in group.columns}
    return bool(_marks(one, maps)) and _is_equal(group, one)
