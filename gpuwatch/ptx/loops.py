"""Where the blocks of a body begin, and how deep in loops its statements lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Directive, Instruction, Label, Statement


def targets(body: Iterable[Statement]) -> frozenset[str]:
    """Labels that a branch of the body may go to."""
    found: set[str] = set()
    for one in body:
        if type(one) is Instruction and isa.is_branch(one):
            found.add(isa.branch_targets(one))
        elif isinstance(one, Directive) and one.name == "branchtargets":
            found.update(one.words)
    return frozenset(found)


def block_starts(body: Sequence[Statement]) -> list[int]:
    """Index of the first instruction of each basic block that control can come to: the first of
    all, those at labels that are branched to, those behind branches and exits."""
    reached = targets(body)
    starts, fresh, open_ = [], True, True
    for index, one in enumerate(body):
        if isinstance(one, Label) and one.name in reached:
            fresh = open_ = True
        elif type(one) is Instruction:
            if fresh and open_:
                starts.append(index)
            fresh = isa.ends_block(one)
            open_ = open_ and isa.falls_through(one)
    return starts


def loop_depths(body: Sequence[Statement]) -> list[int]:
    """How many loops each statement lies in, by the branches that go back in the text: an
    estimate of how often it runs, nothing else."""
    labels = {one.name: index for index, one in enumerate(body) if isinstance(one, Label)}
    ends: dict[int, int] = {}
    for index, one in enumerate(body):
        if type(one) is Instruction and isa.is_branch(one):
            start = labels.get(isa.branch_targets(one), index)
            if start < index:
                ends[start] = index
    steps = [0] * (len(body) + 1)
    for start, end in ends.items():
        steps[start] += 1
        steps[end + 1] -= 1
    depths, depth = [], 0
    for step in steps[:-1]:
        depth += step
        depths.append(depth)
    return depths
