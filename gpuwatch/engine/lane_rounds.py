"""Accesses of which lanes of a warp may run different copies of what ptxas repeats.

In a loop that all lanes leave at once, rounds are shared out to the copies alike in all of them.
Where a lane may leave earlier than another, and where code is repeated that is in no loop, lanes
that run an access together may run different copies of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpuwatch.engine.access_counts import ptx_access, with_lines
from gpuwatch.instrument.source_lines import main_file
from gpuwatch.launch.model import Dim3
from gpuwatch.ptx import flow, isa
from gpuwatch.ptx.affine import lane_strides
from gpuwatch.ptx.model import Function

Access = tuple[str, int]
"""Kind, as in `access_counts`, and source line."""


def parting_accesses(kernel: Function, block: Dim3) -> frozenset[Access]:
    """Those of which an instruction is in no loop, or in one which lanes of a warp may leave in
    different rounds; of kernels too large to tell, all."""
    accesses = [(ptx_access(one)[0], line) for one, line in with_lines(kernel, main_file(kernel))]
    code = flow.Code.without_scopes(kernel)
    blocks = flow.basic_blocks(code) if code is not None else []
    if code is None or len(blocks) > flow.MOST_BLOCKS:
        return frozenset(accesses)
    strides = lane_strides(kernel, block)
    looped: dict[int, bool] = {}
    for first, last in _loops(blocks):
        parts = not all(
            strides.get(name) == 0
            for number in range(first, last + 1)
            if any(not first <= one <= last for one in blocks[number].successors)
            for name in isa.read(code.instructions[blocks[number].end - 1])
        )
        for number in range(first, last + 1):
            looped[number] = looped.get(number, False) or parts
    return frozenset(_of_blocks(blocks, looped, accesses))


def _loops(blocks: Sequence[flow.Block]) -> Iterator[tuple[int, int]]:
    """First and last block of each loop: the span of an edge that leads back."""
    for number, block in enumerate(blocks):
        yield from ((start, number) for start in block.successors if start <= number)


def _of_blocks(
    blocks: Sequence[flow.Block], looped: Mapping[int, bool], accesses: Sequence[Access]
) -> Iterator[Access]:
    """Those of the blocks that are in no loop or in one that parts lanes."""
    for number, block in enumerate(blocks):
        if looped.get(number, True):
            yield from accesses[block.first : block.end]
