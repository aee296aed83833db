"""Who goes next: lanes of a warp, warps of a block, blocks of a grid; and where they wait.

PTX leaves most of this open. Here the lanes of a warp with the smallest position go first, each
instruction in the order of the lanes; a warp goes on until all its lanes wait or have exited;
then comes the next warp, and behind the last one the first; blocks run in order. Where a kernel
may wait for what others do, warps and blocks take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import reference_barriers
import reference_matrix
import reference_thread
import reference_warp
from reference_barriers import Barriers
from reference_program import Program
from reference_thread import WARP

from gpuwatch.ptx.model import Instruction

TURN = 200
"""Instructions of a warp until others have their turn, in a kernel that may wait for others."""
_POLLING = frozenset({"volatile", "relaxed", "acquire", "mmio", "test_wait", "try_wait",
                      "nanosleep", "cas", "exch"})  # fmt: skip
Meeting = tuple[Instruction, list[int]]
"""What a lane waits with: the instruction and its operands, the member mask last."""


class Lane(reference_barriers.Thread, reference_warp.Lane, reference_thread.Thread, Protocol):
    """A thread as its warp sees it."""

    @property
    def position(self) -> tuple[int, int, int]: ...
    @property
    def next(self) -> Instruction | None: ...
    def step(self, instruction: Instruction) -> None: ...
    def passes(self, instruction: Instruction) -> bool: ...
    def leave(self) -> None: ...


def run_blocks(program: Program, entry: str, blocks: Sequence[Sequence[Lane]]) -> int:
    """Runs the blocks, given as their threads; how many instructions their threads executed."""
    limit = TURN if _polls(program, entry) else 0
    left = [_Block(threads) for threads in blocks]
    executed = 0
    while left:
        executed += sum(block.run(limit) for block in left)
        left = [block for block in left if not block.done]
    return executed


def _polls(program: Program, entry: str) -> bool:
    """Whether a thread may wait for what others do by looking again and again."""
    others = {name for name in program.entries if name != entry}
    codes = [code for name, code in program.functions.items() if name not in others]
    return any(not _POLLING.isdisjoint(i.tokens) for code in codes for i in code.instructions)


class _Block:
    def __init__(self, threads: Sequence[Lane]) -> None:
        self._threads = threads
        self._barriers = Barriers(threads)
        self._warps = [
            _Warp(threads[k : k + WARP], self._barriers) for k in range(0, len(threads), WARP)
        ]

    @property
    def done(self) -> bool:
        return all(thread.exited for thread in self._threads)

    def run(self, limit: int) -> int:
        """Until the end, or until all warps that can go on have used up a turn of `limit`
        instructions; how many instructions its threads executed."""
        executed = 0
        while not self.done:
            turns = []
            for warp in self._warps:
                turns.append(warp.turn(limit))
                self._barriers.release()
            executed += sum(count for count, _ in turns)
            assert any(count for count, _ in turns), "all threads of a block wait"
            if all(used_up for count, used_up in turns if count):
                break
        return executed


class _Warp:
    def __init__(self, lanes: Sequence[Lane], barriers: Barriers) -> None:
        self._lanes = lanes
        self._barriers = barriers
        self._meeting: dict[int, Meeting] = {}
        """What lanes wait with for others of the warp, by lane."""
        self._tired: set[int] = set()
        """Lanes that used up the last turn: others go first."""

    def turn(self, limit: int) -> tuple[int, bool]:
        """Runs until every lane waits or has exited, at most `limit` instructions unless it is 0;
        how many its lanes executed, and whether the limit was reached."""
        executed = steps = 0
        group: list[Lane] = []
        while ready := [lane for lane in self._lanes if self._can_go_on(lane)]:
            if limit and steps == limit:
                self._tired = {lane.lane for lane in group}
                return executed, True
            eager = [lane for lane in ready if lane.lane not in self._tired] or ready
            first = min(lane.position for lane in eager)
            group = [lane for lane in ready if lane.position == first]
            executed += len(group)
            steps += 1
            self._execute(group)
        self._tired = set()
        return executed, False

    def _can_go_on(self, lane: Lane) -> bool:
        return not (
            lane.exited or lane.lane in self._meeting or lane.index in self._barriers.waiting
        )

    def _execute(self, group: list[Lane]) -> None:
        """The next instruction of lanes at one place."""
        instruction = group[0].next
        if instruction is None:
            for lane in group:
                lane.leave()
        elif _needs_others(instruction):
            self._together([lane for lane in group if lane.passes(instruction)], instruction)
        else:
            for lane in group:
                lane.step(instruction)
        if self._meeting:
            self._meet()

    def _together(self, group: list[Lane], instruction: Instruction) -> None:
        """Lanes come to an instruction that others take part in."""
        here = sum(1 << lane.lane for lane in group)
        for lane in group:
            if instruction.opcode == "activemask":
                lane.write(instruction.operands[0], here, "b32")
            elif _is_barrier(instruction):
                self._barriers.arrive(lane, instruction)
            else:
                operands = reference_warp.operands_of(lane, instruction)
                self._meeting[lane.lane] = instruction, operands

    def _meet(self) -> None:
        """Lets lanes go on whose members have all come or exited."""
        alive = {lane.lane for lane in self._lanes if not lane.exited}
        for lane, (instruction, operands) in sorted(self._meeting.items()):
            members = {k for k in alive if operands[-1] >> k & 1}
            if lane in self._meeting and all(self._agrees(lane, k) for k in members):
                assert lane in members, f"lane {lane} is no member of its own mask"
                together = {k: self._meeting.pop(k)[1] for k in sorted(members)}
                self._act(instruction, together)

    def _agrees(self, lane: int, other: int) -> bool:
        """Whether two lanes wait at one instruction, the same by its opcode, with one mask."""
        mine, theirs = self._meeting[lane], self._meeting.get(other)
        return theirs is not None and (mine[0].tokens, mine[1][-1]) == (
            theirs[0].tokens,
            theirs[1][-1],
        )

    def _act(self, instruction: Instruction, together: dict[int, list[int]]) -> None:
        lanes = {k: self._lanes[k] for k in together}
        if instruction.opcode in reference_matrix.OPCODES:
            reference_matrix.OPCODES[instruction.opcode](instruction, list(lanes.values()))
        elif instruction.opcode in reference_warp.OPCODES:
            answers = reference_warp.OPCODES[instruction.opcode](instruction, together)
            for k, answer in answers.items():
                reference_warp.write_answer(lanes[k], instruction, answer)


def _needs_others(instruction: Instruction) -> bool:
    return (
        "sync" in instruction.tokens
        or instruction.opcode == "activemask"
        or _is_barrier(instruction)
    )


def _is_barrier(instruction: Instruction) -> bool:
    return instruction.opcode in ("bar", "barrier") and "warp" not in instruction.tokens
