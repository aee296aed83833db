"""Finds the loops in which lanes may wait for what other lanes, warps or blocks do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from gpuwatch.device.sim.program import Program, read, written
from gpuwatch.ptx.model import Instruction

POLLING_LOADS = frozenset(["volatile", "relaxed", "acquire", "mmio"])


@dataclass(frozen=True, slots=True)
class _Loop:
    """The blocks from which a way back to `header` leads that does not pass it before."""

    header: int
    blocks: frozenset[int]


def polling_headers(program: Program) -> frozenset[int]:
    """Blocks that the loops begin with whose end depends on what others do."""
    used = {name for i in program.instructions for name in read(i)}
    sources = [
        (k, instruction)
        for k, block in enumerate(program.blocks)
        for instruction in program.instructions[block.first : block.end]
        if _sees_others(instruction, used)
    ]
    loops = _loops(program) if sources else []
    found: set[int] = set()
    for k, source in sources:
        around = [loop for loop in loops if k in loop.blocks]
        if source.opcode == "nanosleep":
            found.update(loop.header for loop in sorted(around, key=_size)[:1])
        else:
            found.update(loop.header for loop in around if _Taint(program, loop, source).ends())
    return frozenset(found)


def _size(loop: _Loop) -> int:
    return len(loop.blocks)


def _sees_others(instruction: Instruction, used: Set[str]) -> bool:
    tokens = instruction.tokens
    if tokens[0] == "ld":
        return not POLLING_LOADS.isdisjoint(tokens)
    if tokens[0] == "atom":
        return not used.isdisjoint(written(instruction))
    if tokens[0] == "mbarrier":
        return "test_wait" in tokens or "try_wait" in tokens
    return tokens[0] == "nanosleep"


def _loops(program: Program) -> list[_Loop]:
    """A loop for each edge on which a depth-first walk from the kernel's entry comes back."""
    count = len(program.blocks)
    following = [[s for s in block.successors if s < count] for block in program.blocks]
    before: list[list[int]] = [[] for _ in following]
    for k, successors in enumerate(following):
        for successor in successors:
            before[successor].append(k)
    found = []
    for tail, header in _back_edges(following, program.entry):
        inside = {tail, header} | _reached([tail], before, without=header)
        found.append(_Loop(header, frozenset(inside & (_reached([header], following) | {header}))))
    return found


def _back_edges(following: Sequence[Sequence[int]], entry: int) -> Iterator[tuple[int, int]]:
    seen, open_blocks = {entry}, {entry}
    path = [(entry, iter(following[entry]))]
    while path:
        k, rest = path[-1]
        successor = next(rest, None)
        if successor is None:
            path.pop()
            open_blocks.discard(k)
        elif successor in open_blocks:
            yield k, successor
        elif successor not in seen:
            seen.add(successor)
            open_blocks.add(successor)
            path.append((successor, iter(following[successor])))


def _reached(
    starts: Sequence[int],
    edges: Sequence[Sequence[int]] | Mapping[int, Sequence[int]],
    without: int = -1,
) -> set[int]:
    """Blocks to which a path from the starts leads that does not go on from `without`."""
    seen: set[int] = set()
    waiting = [k for k in starts if k != without]
    while waiting:
        for k in edges[waiting.pop()]:
            if k not in seen and k != without:
                seen.add(k)
                waiting.append(k)
    return seen


class _Taint:
    """What depends on the result of one instruction in a loop, through registers and branches."""

    def __init__(self, program: Program, loop: _Loop, source: Instruction) -> None:
        self._program = program
        self._loop = loop
        self._registers = set(written(source))
        self._blocks: set[int] = set()
        """Blocks that run or not depending on it."""
        self._flow = self._within(loop)

    def ends(self) -> bool:
        """Whether a branch out of the loop depends on it."""
        self._spread()
        return any(
            k in self._blocks or self._branches(k) for k in self._loop.blocks if self._leaves(k)
        )

    def _within(self, loop: _Loop) -> Mapping[int, list[int]]:
        """Successors of the loop's blocks in it, the way back to its header left out."""
        blocks = self._program.blocks
        return {
            k: [s for s in blocks[k].successors if s in loop.blocks and s != loop.header]
            for k in loop.blocks
        }

    def _leaves(self, k: int) -> bool:
        return not self._loop.blocks.issuperset(self._program.blocks[k].successors)

    def _branches(self, k: int) -> bool:
        """Whether a block's end goes two ways by what is tainted."""
        block = self._program.blocks[k]
        last = self._program.instructions[block.end - 1]
        return len(set(block.successors)) > 1 and not self._registers.isdisjoint(read(last))

    def _spread(self) -> None:
        grows = True
        while grows:
            size = len(self._registers), len(self._blocks)
            for instruction in self._program.instructions:
                if not self._registers.isdisjoint(read(instruction)):
                    self._registers.update(written(instruction))
            for k in self._loop.blocks:
                if self._branches(k):
                    self._blocks |= self._decided(k)
            for k in self._blocks:
                block = self._program.blocks[k]
                for instruction in self._program.instructions[block.first : block.end]:
                    self._registers.update(written(instruction))
            grows = size != (len(self._registers), len(self._blocks))

    def _decided(self, k: int) -> set[int]:
        """Blocks of the loop on some ways from the end of block `k`, not on all of them."""
        sides: list[set[int]] = [{s, *_reached([s], self._flow)} for s in self._flow[k]]
        sides += [set()] * (len(set(self._program.blocks[k].successors)) > len(sides))
        return set().union(*sides) - sides[0].intersection(*sides[1:])
