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
from gpuwatch.instrument.values import Value, constant

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
    if scene.subject and scene.subject.stride is not None and scene.subject.space == "global":
        return _counted(code, scene, _first_of_affine(code, address, scene.subject.stride))
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
    assert scene.subject
    if _is_conflict_free(scene.subject.stride, unit_bytes):
        return constant(0)
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


def _first_of_affine(code: Code, address: Value, stride: int) -> str:
    """pred: whether this is the lowest lane in its sector, where each lane's address is `stride`
    bytes behind that of the lane below it.

    Lanes in one sector are then neighbours among those that run the access. With the next lower
    one of these d lanes below, this one begins a sector if its address is less than d * stride
    behind the sector's beginning (of a negative stride: before its end).
    """
    leads = indices.leads(code)
    if stride == 0:
        return leads
    if abs(stride) >= SECTOR_BYTES:
        return code.once("every lane", "pred", "setp.eq.u32", "0", "0")
    within = code.compute("u32", "cvt.u32.u64", address.text)
    if stride < 0:
        within = code.compute("u32", "not.b32", within)
    within = code.compute("u32", "and.b32", within, str(SECTOR_BYTES - 1))
    reach = lane_step(code)
    if abs(stride) > 1:
        reach = code.compute("u32", "mul.lo.u32", reach, str(abs(stride)))
    return code.compute("pred", "setp.lt.u32", within, reach)


def lane_step(code: Code) -> str:
    """u32: how many lanes below this one the next lower lane is that came here too; 32 and more
    for the lowest, so that with any stride it is out of reach."""
    if "lane step" not in code.memo:
        below = code.compute("u32", "bfind.u32", indices.lower_lanes(code))
        lane = indices.special(code, "%laneid")
        step = code.compute("u32", "sub.u32", lane, below)
        code.memo["lane step"] = code.compute(
            "u32", "selp.b32", str(SECTOR_BYTES), step, indices.leads(code),
            into=code.keep("lane step"),
        )  # fmt: skip
    return code.memo["lane step"]


def _is_conflict_free(stride: int | None, unit_bytes: int) -> bool:
    """Whether no lanes whose addresses are so far apart meet in a bank with different units: they
    read one unit, or neighbouring ones, or as many units on as is odd."""
    if stride is None:
        return False
    return abs(stride) <= unit_bytes or stride % (2 * unit_bytes) == unit_bytes


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
    """1 (true) for the lanes that have `one`; at warp level, u32, the number of these."""
    if scene.probe.level == "warp":
        ballot = code.compute("u32", "vote.sync.ballot.b32", one, indices.active(code))
        return Value(code.compute("u32", "popc.b32", ballot), "u32")
    return Value(one, "pred")
