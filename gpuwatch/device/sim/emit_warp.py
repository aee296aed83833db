"""Instructions across the lanes of a warp: shfl, vote, match, redux, elect, activemask."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, type_of
from gpuwatch.device.sim.ir import MASK_ALL, SCALAR, WARP, lanes, splat, vector
from gpuwatch.ptx.model import Immediate, Instruction, Pair

Emit = Callable[[Emitter, Instruction], None]


def _activemask(e: Emitter, instruction: Instruction) -> None:
    bits = e.ir.bits_of(e.mask_or_all())
    e.write(instruction.operands[0], e.ir.broadcast("i32", bits), "b32")


def _ballot(e: Emitter, holds: str) -> str:
    """The lanes among the executing ones for which `holds`, as a scalar i32."""
    return e.ir.bits_of(e.ir.binary("and", "i1", holds, e.mask_or_all()))


def _members(e: Emitter, instruction: Instruction) -> str | None:
    """Each lane's member mask, of i32; None where all executing lanes count."""
    if "sync" not in instruction.tokens:
        return None
    mask = instruction.operands[-1]
    if isinstance(mask, Immediate) and int(mask.value) & 0xFFFFFFFF == 0xFFFFFFFF:
        return None
    return e.value(mask, "b32")


def _vote(e: Emitter, instruction: Instruction) -> None:
    """Lanes vote with those that their member mask names."""
    ir, tokens = e.ir, instruction.tokens
    mode = tokens[2] if tokens[1] == "sync" else tokens[1]
    holds = e.value(instruction.operands[1], "pred")
    members = _members(e, instruction)

    def count(votes: str) -> str:
        bits = ir.broadcast("i32", _ballot(e, votes))
        return bits if members is None else ir.binary("and", "i32", bits, members)

    yes = count(holds)
    if mode == "ballot":
        e.write(instruction.operands[0], yes, "b32")
        return
    no = count(e.invert(holds))
    zero = splat("i32", 0)
    none, all_hold = (ir.compare("eq", "i32", bits, zero) for bits in (yes, no))
    results = {
        "any": lambda: e.invert(none),
        "all": lambda: all_hold,
        "uni": lambda: ir.binary("or", "i1", none, all_hold),
    }
    e.write(instruction.operands[0], results[mode](), "pred")


def _shfl(e: Emitter, instruction: Instruction) -> None:
    ir, tokens = e.ir, instruction.tokens
    mode = tokens[2] if tokens[1] == "sync" else tokens[1]
    source, distance, control = (e.value(o, "b32") for o in instruction.operands[1:4])
    lane, thirty_one = lanes("i32"), splat("i32", 31)
    distance = ir.binary("and", "i32", distance, thirty_one)
    clamp = ir.binary("and", "i32", control, thirty_one)
    segment = ir.binary("lshr", "i32", control, splat("i32", 8))
    segment = ir.binary("and", "i32", segment, thirty_one)
    within = ir.binary("xor", "i32", segment, thirty_one)
    low = ir.binary("and", "i32", lane, segment)
    last = ir.binary("or", "i32", low, ir.binary("and", "i32", clamp, within))
    places: dict[str, Callable[[], str]] = {
        "up": lambda: ir.binary("sub", "i32", lane, distance),
        "down": lambda: ir.binary("add", "i32", lane, distance),
        "bfly": lambda: ir.binary("xor", "i32", lane, distance),
        "idx": lambda: ir.binary("or", "i32", low, ir.binary("and", "i32", distance, within)),
    }
    place = places[mode]()
    inside = ir.compare("sge" if mode == "up" else "sle", "i32", place, last)
    place = ir.select(inside, "i32", place, lane)
    result = _gather_lanes(e, source, ir.binary("and", "i32", place, thirty_one))
    target = instruction.operands[0]
    if isinstance(target, Pair):
        e.write(target.first, result, "b32")
        e.write(target.second, inside, "pred")
    else:
        e.write(target, result, "b32")


def _gather_lanes(e: Emitter, source: str, place: str) -> str:
    ir = e.ir
    ir.store(vector("i32"), source, "%scratch", 64)
    pointers = ir.value(f"getelementptr i32, ptr %scratch, {vector('i32')} {place}")
    arguments = [
        (vector("ptr"), pointers),
        ("i32", "4"),
        (vector("i1"), MASK_ALL),
        (vector("i32"), "zeroinitializer"),
    ]
    return ir.call(vector("i32"), f"llvm.masked.gather.v{WARP}i32.v{WARP}p0", arguments)


def _match(e: Emitter, instruction: Instruction) -> None:
    """For each lane the executing lanes with the same value."""
    ir, mode = e.ir, instruction.tokens[1]
    scalar = SCALAR[type_of(instruction)]
    value = e.value(instruction.operands[1], type_of(instruction))
    wide = e.resize(value, scalar, "i64")
    ir.store(vector("i64"), wide, "%scratch", 64)
    bits = ir.bits_of(e.mask_or_all())
    ir.run("match_lanes", [("ptr", "%scratch"), ("ptr", "%scratch.2"), ("i32", bits)])
    peers, everyone = ir.load(vector("i32"), "%scratch.2", 64), ir.broadcast("i32", bits)
    members = _members(e, instruction)
    if members is not None:
        peers, everyone = (ir.binary("and", "i32", v, members) for v in (peers, everyone))
    if mode == "any":
        e.write(instruction.operands[0], peers, "b32")
        return
    same = ir.compare("eq", "i32", peers, everyone)
    result = ir.select(same, "i32", peers, splat("i32", 0))
    target = instruction.operands[0]
    if isinstance(target, Pair):
        e.write(target.first, result, "b32")
        e.write(target.second, same, "pred")
    else:
        e.write(target, result, "b32")


_REDUCTIONS = {
    "add": ("add", 0),
    "and": ("and", -1),
    "or": ("or", 0),
    "xor": ("xor", 0),
}
_EXTREMES = {("min", True): 2**31 - 1, ("min", False): -1, ("max", True): -(2**31),
             ("max", False): 0}  # fmt: skip


def _redux(e: Emitter, instruction: Instruction) -> None:
    kind, name = type_of(instruction), instruction.tokens[2]
    if kind not in ("u32", "s32", "b32"):
        raise UnsupportedError(f"redux of {kind}")
    signed = kind == "s32"
    if name in _REDUCTIONS:
        operation, neutral = _REDUCTIONS[name]
    else:
        operation, neutral = ("s" if signed else "u") + name, _EXTREMES[name, signed]
    value = e.value(instruction.operands[1], kind)
    members = _members(e, instruction)

    def reduced(lanes_in: str) -> str:
        chosen = e.ir.select(lanes_in, "i32", value, splat("i32", neutral))
        name = f"llvm.vector.reduce.{operation}.v{WARP}i32"
        return e.ir.broadcast("i32", e.ir.call("i32", name, [(vector("i32"), chosen)]))

    result = reduced(e.mask_or_all()) if members is None else _by_group(e, members, reduced)
    e.write(instruction.operands[0], result, kind)


def _by_group(e: Emitter, members: str, reduced: Callable[[str], str]) -> str:
    """What `reduced` gives for each set of executing lanes with one member mask."""
    ir, kind = e.ir, vector("i32")
    ir.store("i32", ir.bits_of(e.mask_or_all()), "%pending")
    ir.store(kind, "zeroinitializer", "%scratch.2", 64)
    head, inside, done = ir.fresh("groups"), ir.fresh("group"), ir.fresh("done")
    ir.jump(head)
    ir.label(head)
    left = ir.load("i32", "%pending")
    ir.branch(ir.value(f"icmp eq i32 {left}, 0"), done, inside)
    ir.label(inside)
    lane = ir.call("i32", "llvm.cttz.i32", [("i32", left), ("i1", "true")])
    own = ir.value(f"extractelement {kind} {members}, i32 {lane}")
    group = ir.value(
        f"or i32 {ir.value(f'and i32 {own}, {left}')}, {ir.value(f'shl i32 1, {lane}')}"
    )
    mask = ir.value(f"bitcast i32 {group} to {vector('i1')}")
    merged = ir.select(mask, "i32", reduced(mask), ir.load(kind, "%scratch.2", 64))
    ir.store(kind, merged, "%scratch.2", 64)
    ir.store("i32", ir.value(f"and i32 {left}, {ir.value(f'xor i32 {group}, -1')}"), "%pending")
    ir.jump(head)
    ir.label(done)
    return ir.load(kind, "%scratch.2", 64)


def _elect(e: Emitter, instruction: Instruction) -> None:
    """One of the executing lanes that the member mask names: the lowest."""
    ir = e.ir
    executing = ir.broadcast("i32", ir.bits_of(e.mask_or_all()))
    members = ir.binary("and", "i32", e.value(instruction.operands[1], "b32"), executing)
    leader = ir.intrinsic("cttz", "i32", members, extra="false")
    target = instruction.operands[0]
    if not isinstance(target, Pair):
        raise UnsupportedError("elect without a predicate")
    e.write(target.first, leader, "b32")
    e.write(target.second, ir.compare("eq", "i32", lanes("i32"), leader), "pred")


OPCODES: dict[str, Emit] = {
    "activemask": _activemask,
    "vote": _vote,
    "shfl": _shfl,
    "match": _match,
    "redux": _redux,
    "elect": _elect,
}
