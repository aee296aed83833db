"""mbarrier objects for the reference interpreter.

The 64 bits of an object are the interpreter's own choice, for PTX keeps them hidden: the number of
the phase, the arrivals that it expects and those that are still pending. A state is a phase number.
"""

from __future__ import annotations

from reference_thread import Thread

from gpuwatch.ptx.model import Instruction


def step(thread: Thread, instruction: Instruction) -> None:
    {
        "init": _init,
        "arrive": _arrive,
        "arrive_drop": _arrive,
        "test_wait": _test,
        "try_wait": _test,
        "inval": lambda *_: None,
    }[instruction.tokens[1]](thread, instruction)


def _unpacked(word: int) -> tuple[int, int, int]:
    return word >> 40, word >> 20 & 0xFFFFF, word & 0xFFFFF


def _init(thread: Thread, instruction: Instruction) -> None:
    place, count = instruction.operands
    memory, address = thread.place(instruction, place)
    expected = thread.read(count, "u32")
    memory.write(address, 8, expected << 20 | expected)


def _arrive(thread: Thread, instruction: Instruction) -> None:
    """Gives the state before; the last pending arrival ends the phase, and the next one expects as
    many, less those that dropped out."""
    target, place, *rest = instruction.operands
    count = thread.read(rest[0], "u32") if rest else 1
    memory, address = thread.place(instruction, place)
    phase, expected, pending = _unpacked(memory.read(address, 8))
    thread.write(target, phase, "b64")
    pending -= count
    expected -= count if instruction.tokens[1] == "arrive_drop" else 0
    if pending == 0:
        phase, pending = phase + 1, expected
    memory.write(address, 8, phase << 40 | expected << 20 | pending)


def _test(thread: Thread, instruction: Instruction) -> None:
    """Whether the phase of a state, or the last one of a parity, is over."""
    target, place, which = instruction.operands[:3]
    memory, address = thread.place(instruction, place)
    phase, _, _ = _unpacked(memory.read(address, 8))
    by_parity = "parity" in instruction.tokens
    seen = thread.read(which, "u32" if by_parity else "b64")
    thread.write(target, phase % 2 != seen % 2 if by_parity else phase != seen, "pred")
