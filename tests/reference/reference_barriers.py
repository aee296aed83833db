"""Barriers of a block, for the reference interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reference_thread import WARP, Operands

from gpuwatch.ptx.model import Instruction


class Thread(Operands, Protocol):
    index: int
    lane: int

    @property
    def exited(self) -> bool: ...


@dataclass
class _Arrival:
    """`count` is how many threads the barrier is for, 0 for all; `holds` the predicate of a
    reduction."""

    thread: Thread
    instruction: Instruction
    count: int
    holds: bool


class Barriers:
    def __init__(self, threads: Sequence[Thread]) -> None:
        self._threads = threads
        self._arrivals: dict[int, list[_Arrival]] = {}
        self.waiting: set[int] = set()
        """Indices of the threads that wait."""

    def arrive(self, thread: Thread, instruction: Instruction) -> None:
        tokens, operands = instruction.tokens, instruction.operands
        reduces = "red" in tokens
        assert reduces or "sync" in tokens or "arrive" in tokens
        barrier, *count = operands[1:-1] if reduces else operands
        needed = thread.read(count[0], "u32") if count else 0
        holds = bool(thread.read(operands[-1], "pred")) if reduces else False
        arrivals = self._arrivals.setdefault(thread.read(barrier, "u32"), [])
        arrivals.append(_Arrival(thread, instruction, needed, holds))
        if "arrive" not in tokens:
            self.waiting.add(thread.index)

    def release(self) -> None:
        """Completes the barriers at which all threads that they are for have come."""
        for number, arrivals in list(self._arrivals.items()):
            if self._is_complete(arrivals):
                del self._arrivals[number]
                self._complete(arrivals)

    def _is_complete(self, arrivals: list[_Arrival]) -> bool:
        """Threads that have exited do not hold up a barrier of all; a count means whole warps, so
        exited lanes of a warp that has come count too."""
        needed = arrivals[0].count
        if not needed:
            return len(arrivals) >= sum(not thread.exited for thread in self._threads)
        come = {a.thread.index // WARP for a in arrivals}
        gone = sum(t.exited and t.index // WARP in come for t in self._threads)
        return len(arrivals) + gone >= needed

    def _complete(self, arrivals: list[_Arrival]) -> None:
        truths = [a.holds for a in arrivals if "red" in a.instruction.tokens]
        results = {"popc": sum(truths), "and": all(truths), "or": any(truths)}
        for arrival in arrivals:
            tokens = arrival.instruction.tokens
            if "arrive" in tokens:
                continue
            if "red" in tokens:
                how = next(name for name in results if name in tokens)
                target = arrival.instruction.operands[0]
                arrival.thread.write(target, results[how], "u32" if how == "popc" else "pred")
            self.waiting.discard(arrival.thread.index)
