"""Instructions across a whole warp, for the reference interpreter."""

from __future__ import annotations

from scalar_opcodes import Form, compute

from gpuwatch.ptx.model import Instruction

Answer = tuple[int, bool]
"""What a lane gets: the result, and the predicate of the `d|p` forms."""


def shuffle(instruction: Instruction, operands: list[list[int]]) -> list[Answer]:
    mode = instruction.tokens[2]
    answers: list[Answer] = []
    for lane, (_, distance, control, *_) in enumerate(operands):
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
        answers.append((operands[place if inside else lane][0], inside))
    return answers


def vote(instruction: Instruction, operands: list[list[int]]) -> list[Answer]:
    yes = [o[0] for o in operands]
    result = {
        "all": lambda: int(all(yes)),
        "any": lambda: int(any(yes)),
        "uni": lambda: int(len(set(yes)) == 1),
        "ballot": lambda: sum(bit << k for k, bit in enumerate(yes)),
    }[instruction.tokens[2]]()
    return [(result, False)] * len(yes)


def match(instruction: Instruction, operands: list[list[int]]) -> list[Answer]:
    values = [o[0] for o in operands]
    peers = [sum((v == w) << k for k, w in enumerate(values)) for v in values]
    if instruction.tokens[1] == "any":
        return [(bits, False) for bits in peers]
    same = len(set(values)) == 1
    return [(peers[0] if same else 0, same)] * len(values)


def reduce(instruction: Instruction, operands: list[list[int]]) -> list[Answer]:
    form = Form(instruction.tokens, instruction.tokens[-1])
    name = instruction.tokens[2]
    total, *rest = (o[0] for o in operands)
    for value in rest:
        total = compute(Form((name,), form.kind), [total, value]) & 0xFFFFFFFF
    return [(total, False)] * len(operands)


def elect(_: Instruction, operands: list[list[int]]) -> list[Answer]:
    """The lowest lane of the mask leads, though the PTX manual lets it be any of them."""
    leaders = [(mask & -mask).bit_length() - 1 for mask, *_ in operands]
    return [(leader, lane == leader) for lane, leader in enumerate(leaders)]


OPCODES = {"shfl": shuffle, "vote": vote, "match": match, "redux": reduce, "elect": elect}
"""By opcode: from the source operands of each lane to each lane's answer."""
SOURCE_TYPES = {"shfl": "b32", "vote": "pred", "redux": "b32", "elect": "b32"}
"""Types of the first source where it is not the opcode's last part."""
