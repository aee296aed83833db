"""Instructions across a warp, for the reference interpreter: from the operands of the lanes that
take part to each one's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import reference_thread
from reference_matrix import OPCODES as MATRIX_OPCODES
from scalar_opcodes import Form, compute

from gpuwatch.ptx.model import Instruction, Pair, Register

ALL = 0xFFFFFFFF
Operands = dict[int, list[int]]
"""By lane, the values of the source operands."""
Answer = tuple[int, bool]
"""What a lane gets: the result, and the predicate of the `d|p` forms."""
Answers = dict[int, Answer]


class Lane(reference_thread.Operands, Protocol):
    def width(self, register: Register) -> int: ...


def operands_of(lane: Lane, instruction: Instruction) -> list[int]:
    """The source operands, the member mask last: of all lanes where the opcode has none."""
    if instruction.opcode in MATRIX_OPCODES:
        return [ALL]
    if instruction.opcode == "bar":
        return [lane.read(instruction.operands[0], "b32")]
    kind = SOURCE_TYPES.get(instruction.opcode, instruction.tokens[-1])
    first, *rest = instruction.operands[1:]
    return [lane.read(first, kind), *(lane.read(operand, "b32") for operand in rest)]


def write_answer(lane: Lane, instruction: Instruction, answer: Answer) -> None:
    target = instruction.operands[0]
    if isinstance(target, Pair):
        lane.write(target.second, int(answer[1]), "pred")
        target = target.first
    assert isinstance(target, Register)
    if target.name != "_":
        width = lane.width(target)
        lane.write(target, answer[0], "pred" if width == 1 else f"b{width}")


def shuffle(instruction: Instruction, operands: Operands) -> Answers:
    mode = instruction.tokens[2]
    answers: Answers = {}
    for lane, (own, distance, control, *_) in operands.items():
        distance &= 31
        segment = control >> 8 & 31
        last = (lane & segment) | (control & 31 & ~segment)
        low = lane & segment
        place = {
            "up": lane - distance,
            "down": lane + distance,
            "bfly": lane ^ distance,
            "idx": low | (distance & ~segment),
        }[mode]
        inside = place >= last if mode == "up" else place <= last
        if inside:
            assert place in operands, f"lane {lane} reads lane {place}, which takes no part"
            own = operands[place][0]
        answers[lane] = own, inside
    return answers


def vote(instruction: Instruction, operands: Operands) -> Answers:
    yes = {lane: o[0] for lane, o in operands.items()}
    result = {
        "all": lambda: int(all(yes.values())),
        "any": lambda: int(any(yes.values())),
        "uni": lambda: int(len(set(yes.values())) == 1),
        "ballot": lambda: sum(bit << lane for lane, bit in yes.items()),
    }[instruction.tokens[2]]()
    return dict.fromkeys(operands, (result, False))


def match(instruction: Instruction, operands: Operands) -> Answers:
    values = {lane: o[0] for lane, o in operands.items()}
    peers = {
        lane: sum(1 << other for other in values if values[other] == value)
        for lane, value in values.items()
    }
    if instruction.tokens[1] == "any":
        return {lane: (bits, False) for lane, bits in peers.items()}
    same = len(set(values.values())) == 1
    return {lane: (bits if same else 0, same) for lane, bits in peers.items()}


def reduce(instruction: Instruction, operands: Operands) -> Answers:
    form = Form(instruction.tokens, instruction.tokens[-1])
    name = instruction.tokens[2]
    total, *rest = (o[0] for o in operands.values())
    for value in rest:
        total = compute(Form((name,), form.kind), [total, value]) & ALL
    return dict.fromkeys(operands, (total, False))


def elect(_: Instruction, operands: Operands) -> Answers:
    """The lowest lane of the mask leads, though the PTX manual lets it be any of them."""
    leader = min(operands)
    return {lane: (leader, lane == leader) for lane in operands}


OPCODES: dict[str, Callable[[Instruction, Operands], Answers]] = {
    "shfl": shuffle,
    "vote": vote,
    "match": match,
    "redux": reduce,
    "elect": elect,
}
SOURCE_TYPES = {"shfl": "b32", "vote": "pred", "redux": "b32", "elect": "b32"}
"""Types of the first source where it is not the opcode's last part."""
