"""Cycles of a basic block: its own dependences, or what the resident warps have to share.

    cost = max(C, N * I, W * A)

C is the block's length with one warp: instructions issue in order, one a cycle, each when its
operands are there (so loads overlap until their first use). I are the scheduler's cycles for one
warp: issue slots, or the busiest pipe; N warps share a scheduler. A are the cycles that its
accesses take in the SM's load/store path, which W warps share. After Hong and Kim (ISCA 2009)
and GPUMech (MICRO 2014), in the form of a roofline per block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.device.sim.opcosts import MemoryWork, memory_work, work_of
from gpuwatch.device.sim.profiles import Profile
from gpuwatch.device.sim.program import Block, Program, read, written
from gpuwatch.ptx.model import Address, Instruction, Register

WARP = 32
WAVEFRONT_BYTES = 128
"""What one pass through the load/store path moves."""
MERGED_BYTES = 16
"""ptxas joins shared loads of neighbouring words into one of at most this many bytes."""


@dataclass(frozen=True, slots=True)
class BlockTiming:
    """`chain` is C, `cycles` the cost; both for one warp. `global_accesses` are counted."""

    cycles: int
    chain: int
    global_accesses: int

    @property
    def slack(self) -> int:
        """Cycles of extra latency that other warps' work hides."""
        return self.cycles - self.chain


def request_cycles(profile: Profile, path: str, size: int = 4) -> float:
    """Cycles of the load/store path for one warp's access of `size` bytes a lane, in order.

    The lanes of the load/store units bound the requests, the bandwidth the bytes.
    """
    wavefronts = max(1, WARP * size // WAVEFRONT_BYTES)
    rate = profile.l1_bandwidth * (profile.l1_achieved if path == "global" else 1.0)
    return max(WARP / profile.operations["load_store"], wavefronts * WAVEFRONT_BYTES / rate)


def block_timings(
    program: Program, profile: Profile, resident_warps: int
) -> tuple[BlockTiming, ...]:
    """One timing per basic block, with `resident_warps` on the SM.

    Joined blocks share one scoreboard: theirs are the parts of the whole, each up to its end.
    """
    timings: list[BlockTiming] = []
    for first, block in enumerate(program.blocks):
        if not block.joined:
            timings += _BlockModel(program, first, profile).timings(resident_warps)
    return tuple(timings)


def loop_depths(blocks: Sequence[Block]) -> list[int]:
    """How many backward branches span each block."""
    depths = [0] * len(blocks)
    for k, block in enumerate(blocks):
        for target in block.successors:
            if target <= k:
                depths[target : k + 1] = [depth + 1 for depth in depths[target : k + 1]]
    return depths


class _BlockModel:
    """Walks a block, and those joined to it, in order with a scoreboard, and adds up what they ask
    of each pipe."""

    def __init__(self, program: Program, index: int, profile: Profile) -> None:
        self._profile = profile
        self._ready: dict[str, float] = {}
        self._clock = 0.0
        self._issued = 0
        self._pipes: Counter[str] = Counter()
        self._path = 0.0
        self._global = 0
        self._merged: dict[tuple[str, int], float] = {}
        self._program = program
        self._first = index

    def timings(self, resident_warps: int) -> list[BlockTiming]:
        """Those of the block and of the ones joined to it."""
        found: list[BlockTiming] = []
        blocks = self._program.blocks
        end = self._first + 1
        while end < len(blocks) and blocks[end].joined:
            end += 1
        for index in range(self._first, end):
            block = blocks[index]
            for instruction in self._program.instructions[block.first : block.end]:
                self._add(instruction)
            total = self._so_far(resident_warps, index, last=index == end - 1)
            found.append(
                BlockTiming(
                    total.cycles - sum(t.cycles for t in found),
                    total.chain - sum(t.chain for t in found),
                    total.global_accesses - sum(t.global_accesses for t in found),
                )
            )
        return found

    def _so_far(self, resident_warps: int, index: int, *, last: bool) -> BlockTiming:
        """From the first block to the end of block `index`."""
        profile = self._profile
        chain = self._clock
        if last:
            live = self._program.live_out[index]
            chain = max([chain, *(self._ready[r] for r in live if r in self._ready)])
        pipes = [WARP * profile.schedulers * count / profile.operations[kind]
                 for kind, count in self._pipes.items()]  # fmt: skip
        per_scheduler = -(-resident_warps // profile.schedulers)
        shared = per_scheduler * max([self._issued, *pipes])
        cycles = max(1.0, chain, shared, resident_warps * self._path)
        return BlockTiming(round(cycles), round(chain), self._global)

    def _add(self, instruction: Instruction) -> None:
        operands_there = [self._ready[r] for r in read(instruction) if r in self._ready]
        self._clock = max([self._clock, *operands_there])
        access = memory_work(instruction)
        done = self._compute(instruction) if access is None else self._access(instruction, access)
        for register in written(instruction):
            self._ready[register] = done
            self._forget_base(register)

    def _issue(self, count: int) -> float:
        """Takes `count` issue slots; gives the cycle of the last."""
        self._issued += count
        self._clock += count
        return self._clock - min(1, count)

    def _compute(self, instruction: Instruction) -> float:
        work = work_of(instruction)
        if work.kind in self._profile.operations:
            self._pipes[work.kind] += work.issued
        start = self._clock
        last = self._issue(work.issued)
        return max(last + 1.0, start + work.steps * self._profile.latency[work.kind])

    def _access(self, instruction: Instruction, access: MemoryWork) -> float:
        if not access.path:
            return self._clock
        merged = self._merged_load(instruction, access)
        if merged is not None:
            return merged
        self._path += request_cycles(self._profile, access.path, access.bytes)
        self._global += access.path == "global"
        return self._issue(1) + self._profile.latency[access.latency]

    def _merged_load(self, instruction: Instruction, access: MemoryWork) -> float | None:
        """When a load joins an earlier one: the cycle at which its result is there."""
        place = instruction.operands[-1]
        if instruction.opcode != "ld" or access.path != "shared" or instruction.guard:
            return None
        if not isinstance(place, Address) or not isinstance(place.base, Register):
            return None
        group = (place.base.name, place.offset // MERGED_BYTES)
        if group not in self._merged:
            self._merged[group] = self._clock + self._profile.latency[access.latency]
            return None
        return self._merged[group]

    def _forget_base(self, register: str) -> None:
        """Loads through a register that changed are of another place."""
        for group in [g for g in self._merged if g[0] == register]:
            del self._merged[group]
