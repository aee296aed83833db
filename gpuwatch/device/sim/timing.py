"""What a basic block takes of one warp's time and of the SM's units.

The chain is the length of the block's dependences for a warp alone: each instruction starts when
its operands are there, so independent loads overlap, and the next block starts when what it needs
is there (ptxas orders freely within a block, not across its end). The units are those that warps
share: issue slots, the pipes, and the load/store path. Which of them bounds a launch is found in
`balance`. After Hong and Kim (ISCA 2009) and GPUMech (MICRO 2014).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from gpuwatch.device.sim.opcosts import (
    JOINED_PRODUCT,
    JOINED_SUM,
    MemoryWork,
    Work,
    address_sums,
    is_wide_sum,
    memory_work,
    work_of,
)
from gpuwatch.device.sim.profiles import Profile
from gpuwatch.device.sim.program import Program, read, written
from gpuwatch.ptx.model import Address, Immediate, Instruction, Register

WARP = 32
WAVEFRONT_BYTES = 128
"""What one pass through the load/store path moves."""
MERGED_BYTES = 16
"""ptxas joins shared loads of neighbouring words into one of at most this many bytes."""
_WORDS_OF_ONE_PASS = 2
_WIDE_PASSES = 2
"""Passes that an access of 16 bytes a lane takes at least, whatever its addresses."""
ISSUE, PATH = "issue", "path"
WINDOW = 16
"""Instructions that ptxas reorders over: registers limit how far it brings loads forward."""
_UNROLLED, _UNROLLED_SIZE = 4, 32
"""How often ptxas repeats a counted loop of at most so many instructions."""


@dataclass(frozen=True, slots=True)
class BlockTiming:
    """Of one run of a block by one warp: the `chain` in cycles; the cycles for which each unit is
    `busy` (those of one scheduler; of the SM for the load/store path); and the `overlap`, how many
    of the block's global loads are under way at a time."""

    chain: float
    busy: Mapping[str, float]
    overlap: float


def request_cycles(profile: Profile, path: str, size: int = 4) -> float:
    """Least cycles of the load/store path for one warp's access of `size` bytes a lane.

    The lanes of the load/store units bound the requests, the bandwidth the bytes. More wavefronts
    are counted when the access runs.
    """
    passes = _WIDE_PASSES if size >= MERGED_BYTES else 1
    return passes * max(WARP / profile.operations["load_store"], wavefront_cycles(profile, path))


def wavefront_cycles(profile: Profile, path: str) -> float:
    """Cycles of one pass through the load/store path, "global" or "shared"."""
    rate = profile.l1_bandwidth * (profile.l1_achieved if path == "global" else 1.0)
    return WAVEFRONT_BYTES / rate


def block_timings(program: Program, profile: Profile) -> tuple[BlockTiming, ...]:
    """One timing per basic block.

    Joined blocks share one scoreboard: theirs are the parts of the whole, each up to its end.
    """
    timings: list[BlockTiming] = []
    products = address_sums(program.instructions)
    for first, block in enumerate(program.blocks):
        if not block.joined:
            timings += _BlockModel(program, first, profile, products).timings()
    return tuple(timings)


@dataclass(frozen=True, slots=True)
class _Sums:
    chain: float = 0.0
    busy: Mapping[str, float] = field(default_factory=dict)


def _is_counted_loop(program: Program, index: int) -> bool:
    """Whether a small block repeats itself by a counter that goes up or down by a constant."""
    block = program.blocks[index]
    body = program.instructions[block.first : block.end]
    guard = body[-1].guard
    if len(body) > _UNROLLED_SIZE or guard is None or index not in block.successors:
        return False
    compared = {r for i in body if guard.register in written(i) for r in read(i)}
    return any(
        compared & {*written(i)} & {*read(i)} and isinstance(i.operands[-1], Immediate)
        for i in body
        if i.opcode in ("add", "sub")
    )


class _BlockModel:
    """Walks a block, and those joined to it, with a scoreboard, and adds up what they ask of each
    unit."""

    def __init__(
        self, program: Program, index: int, profile: Profile, products: frozenset[str]
    ) -> None:
        self._products = products
        self._program = program
        self._first = index
        self._profile = profile
        self._ready: dict[str, float] = {}
        self._depth: dict[str, int] = {}
        """How many global loads, one after another, lead to a register."""
        self._floor = 0.0
        """Nothing that follows starts earlier."""
        self._latest = 0.0
        self._stored: dict[str, float] = {}
        self._busy: defaultdict[str, float] = defaultdict(float)
        self._loads = 0
        self._starts: deque[float] = deque(maxlen=WINDOW)
        self._merged: dict[tuple[str, int], tuple[float, int]] = {}
        """Base and place of a joined shared load: when its result is there, and its words."""

    def timings(self) -> list[BlockTiming]:
        """Those of the block and of the ones joined to it."""
        blocks = self._program.blocks
        end = self._first + 1
        while end < len(blocks) and blocks[end].joined:
            end += 1
        sums = [_Sums()]
        copies = _UNROLLED if _is_counted_loop(self._program, self._first) else 1
        for index in range(self._first, end):
            block = blocks[index]
            for instruction in self._program.instructions[block.first : block.end] * copies:
                self._add(instruction)
            self._floor = max(self._floor, self._latest, self._busy[ISSUE])
            sums.append(self._so_far(index, last=index == end - 1))
        overlap = max(1.0, self._loads / max([1, *self._depth.values()]))
        return [
            BlockTiming(
                (now.chain - before.chain) / copies,
                {u: (now.busy[u] - before.busy.get(u, 0.0)) / copies for u in now.busy},
                overlap,
            )
            for before, now in pairwise(sums)
        ]

    def _so_far(self, index: int, *, last: bool) -> _Sums:
        """From the first block to the end of block `index`."""
        chain = self._floor
        if last:
            live = self._program.live_out[index]
            chain = max([chain, *(self._ready[r] for r in live if r in self._ready)])
        return _Sums(chain, dict(self._busy))

    def _add(self, instruction: Instruction) -> None:
        operands = read(instruction)
        start = max([self._floor, *(self._ready[r] for r in operands if r in self._ready)])
        if len(self._starts) == WINDOW:
            start = max(start, self._starts[0])
        self._starts.append(start)
        depth = max([0, *(self._depth[r] for r in operands if r in self._depth)])
        access = memory_work(instruction)
        if access is None:
            done = self._compute(instruction, start)
        else:
            done = self._access(instruction, access, start)
            depth += access.path == "global" and instruction.opcode != "st"
        self._latest = max(self._latest, start)
        for register in written(instruction):
            self._ready[register] = done
            self._depth[register] = depth
            self._forget_base(register)

    def _compute(self, instruction: Instruction, start: float) -> float:
        profile, work = self._profile, self._work_of(instruction)
        self._busy[ISSUE] += work.issued + work.scaling
        if work.kind in profile.operations:
            lanes = profile.operations[work.kind] / profile.schedulers
            self._busy[work.kind] += WARP * work.issued / lanes
        steps = work.steps * profile.latency[work.kind] + work.scaling * profile.latency["alu"]
        return start + max(work.issued, steps)

    def _work_of(self, instruction: Instruction) -> Work:
        if self._products.intersection(written(instruction)):
            return JOINED_PRODUCT
        if is_wide_sum(instruction) and self._products.intersection(read(instruction)):
            return JOINED_SUM
        return work_of(instruction)

    def _access(self, instruction: Instruction, access: MemoryWork, start: float) -> float:
        if not access.path:
            return start
        if instruction.opcode == "ld":
            start = max(start, self._stored.get(access.path, 0.0))
            merged = self._merged_load(instruction, access, start)
            if merged is not None:
                return merged
            self._loads += access.path == "global"
        else:
            self._stored[access.path] = start
        self._busy[ISSUE] += 1
        self._busy[PATH] += request_cycles(self._profile, access.path, access.bytes)
        return start + self._profile.latency[access.latency]

    def _merged_load(
        self, instruction: Instruction, access: MemoryWork, start: float
    ) -> float | None:
        """When a load joins an earlier one: the cycle at which its result is there."""
        place = instruction.operands[-1]
        if access.path != "shared" or instruction.guard:
            return None
        if not isinstance(place, Address) or not isinstance(place.base, Register):
            return None
        group = (place.base.name, place.offset // MERGED_BYTES)
        done, words = self._merged.get(group, (start + self._profile.latency[access.latency], 0))
        self._merged[group] = done, words + 1
        if words == _WORDS_OF_ONE_PASS:
            self._busy[PATH] += request_cycles(self._profile, access.path)
        return done if words else None

    def _forget_base(self, register: str) -> None:
        """Loads through a register that changed are of another place."""
        for group in [g for g in self._merged if g[0] == register]:
            del self._merged[group]
