"""Instructions across the lanes of a warp: shfl, vote, match, redux, activemask."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, type_of
from gpuwatch.device.sim.ir import MASK_ALL, SCALAR, WARP, lanes, splat, vector
from gpuwatch.ptx.model import Instruction, Pair

Emit = Callable[[Emitter, Instruction], None]


def _activemask(e: Emitter, instruction: Instruction) -> None:
    bits = e.ir.bits_of(e.mask_or_all())
    e.write(instruction.operands[0], e.ir.broadcast("i32", bits), "b32")


def _ballot(e: Emitter, holds: str) -> str:
    """The lanes among the executing ones for which `holds`, as a scalar i32."""
    return e.ir.bits_of(e.ir.binary("and", "i1", holds, e.mask_or_all()))


def _vote(e: Emitter, instruction: Instruction) -> None:
    ir, tokens = e.ir, instruction.tokens
    mode = tokens[2] if tokens[1] == "sync" else tokens[1]
    holds = e.value(instruction.operands[1], "pred")
    yes = _ballot(e, holds)
    if mode == "ballot":
        e.write(instruction.operands[0], ir.broadcast("i32", yes), "b32")
        return
    no = _ballot(e, e.invert(holds))
    any_yes, any_no = (ir.value(f"icmp ne i32 {bits}, 0") for bits in (yes, no))
    results = {
        "any": lambda: any_yes,
        "all": lambda: ir.value(f"xor i1 {any_no}, true"),
        "uni": lambda: ir.value(f"xor i1 {ir.value(f'and i1 {any_yes}, {any_no}')}, true"),
    }
    e.write(instruction.operands[0], ir.broadcast("i1", results[mode]()), "pred")


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
    peers = ir.load(vector("i32"), "%scratch.2", 64)
    if mode == "any":
        e.write(instruction.operands[0], peers, "b32")
        return
    same = ir.compare("eq", "i32", peers, ir.broadcast("i32", bits))
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
    value = e.ir.select(e.mask_or_all(), "i32", value, splat("i32", neutral))
    reduced = e.ir.call(
        "i32", f"llvm.vector.reduce.{operation}.v{WARP}i32", [(vector("i32"), value)]
    )
    e.write(instruction.operands[0], e.ir.broadcast("i32", reduced), kind)


OPCODES: dict[str, Emit] = {
    "activemask": _activemask,
    "vote": _vote,
    "shfl": _shfl,
    "match": _match,
    "redux": _redux,
}
