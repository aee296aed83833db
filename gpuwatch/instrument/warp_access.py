"""What a warp's access to memory takes: sectors of global memory, bank conflicts in shared.

Both follow from the addresses of the lanes that run the instruction together. Each is a number
per warp, found as a sum of zeros and ones, one per lane. At warp level every lane gets the
number; at thread level each gets its own zero or one, so that sums over threads are exact.

An access of 1 to 32 bytes is aligned to its size, so it lies in one sector of 32 bytes. Shared
memory has 32 banks of 4 bytes. Lanes that access 8 or 16 bytes each go by halves or quarters of
the warp, and their words fill 2 or 4 banks, so that what has been said of words holds for units
of that size and 16 or 8 double or fourfold banks.
"""

from __future__ import annotations

from gpuwatch.instrument import indices, operands
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.scene import Scene
from gpuwatch.instrument.values import Value

SECTOR_BYTES = 32
WORD_BYTES = 4
BANKS = 32
_LANES_ACCESS = frozenset({"ld", "ldu", "st", "atom", "red", "cp"})
"""Opcodes by which each lane accesses what its own address says."""


def sectors(code: Code, scene: Scene) -> Value:
    """u32: distinct 32-byte sectors that the lanes access together, in global memory. Of a
    generic access, those lanes that access global memory."""
    _width(scene, "sectors", ("global", "generic"))
    address = operands.address(code, scene)
    sector = code.compute("u64", "shr.u64", address.text, str(SECTOR_BYTES.bit_length() - 1))
    first = _first(code, _same(code, "b64", sector))
    if scene.subject and scene.subject.space == "generic":
        inside = code.compute("pred", "isspacep.global", address.text)
        first = code.compute("pred", "and.pred", first, inside)
    return _counted(code, scene, first)


def bank_conflicts(code: Code, scene: Scene) -> Value:
    """u32: wavefronts that the lanes' access to shared memory takes beyond those that it would
    take if no two addresses met in one bank.

    A lane has a rank: how many lower lanes of its group access other units of its bank. Lanes of
    one rank go together, so each rank above 0 is a wavefront more.
    """
    unit_bytes = max(_width(scene, "bank_conflicts", ("shared",)), WORD_BYTES)
    group_lanes = BANKS * WORD_BYTES // unit_bytes
    address = operands.address(code, scene)
    narrow = code.compute("u32", "cvt.u32.u64", address.text)
    unit = code.compute("u32", "shr.u32", narrow, str(unit_bytes.bit_length() - 1))
    bank = code.compute("u32", "and.b32", unit, str(group_lanes - 1))
    first = _first(code, _same(code, "b32", _in_group(code, unit, group_lanes)))
    firsts = code.compute("u32", "vote.sync.ballot.b32", first, indices.active(code))
    mates = _same(code, "b32", _in_group(code, bank, group_lanes))
    others = code.compute("u32", "and.b32", mates, firsts)
    lower = code.compute("u32", "and.b32", others, _lower_lanes(code))
    rank = code.compute("u32", "popc.b32", lower)
    later = code.compute("pred", "setp.ne.and.u32", rank, "0", first)
    alone = code.compute("u32", "or.b32", indices.special(code, "%laneid"), "64")
    label = code.compute("u32", "selp.b32", rank, alone, later)
    same_rank = _same(code, "b32", _in_group(code, label, group_lanes))
    leads = code.compute("pred", "and.pred", _first(code, same_rank), later)
    return _counted(code, scene, leads)


def _width(scene: Scene, helper: str, spaces: tuple[str, ...]) -> int:
    """Bytes that each lane accesses; raises UserError for accesses that are not of that kind."""
    operands.part(scene, "base", helper)
    subject = scene.subject
    assert subject
    advice = "use a position that leaves this instruction out"
    if subject.space not in spaces:
        reason = f"it accesses {subject.space} memory, not {' or '.join(spaces)}"
        raise operands.refusal(scene, helper, reason, advice)
    if subject.parts.keys() & {"size", "ignored"} or not subject.bytes:
        reason = "how many bytes it accesses shows only as it runs"
        raise operands.refusal(scene, helper, reason, advice)
    if subject.opcode.split(".")[0] not in _LANES_ACCESS:
        raise operands.refusal(scene, helper, "its lanes access memory for each other", advice)
    return subject.bytes


def _same(code: Code, type_: str, value: str) -> str:
    """u32: mask of the lanes that have the same value."""
    return code.compute("u32", f"match.any.sync.{type_}", value, indices.active(code))


def _lower_lanes(code: Code) -> str:
    return indices.special(code, "%lanemask_lt")


def _first(code: Code, mask: str) -> str:
    """pred: whether this is the lowest lane of the mask."""
    lower = code.compute("u32", "and.b32", mask, _lower_lanes(code))
    return code.compute("pred", "setp.eq.u32", lower, "0")


def _in_group(code: Code, value: str, group_lanes: int) -> str:
    """u32: the value, made different for lanes that do not go together. A unit leaves its
    highest bits free for the number of the half or quarter."""
    if group_lanes == BANKS:
        return value
    part_bits = (BANKS // group_lanes).bit_length() - 1
    within = group_lanes.bit_length() - 1
    part = code.compute("u32", "shr.u32", indices.special(code, "%laneid"), str(within))
    high = code.compute("u32", "shl.b32", part, str(32 - part_bits))
    return code.compute("u32", "or.b32", value, high)


def _counted(code: Code, scene: Scene, one: str) -> Value:
    """u32: 1 for the lanes that have `one`; at warp level the number of these."""
    if scene.probe.level == "warp":
        ballot = code.compute("u32", "vote.sync.ballot.b32", one, indices.active(code))
        return Value(code.compute("u32", "popc.b32", ballot), "u32")
    return Value(code.compute("u32", "selp.b32", "1", "0", one), "u32")
