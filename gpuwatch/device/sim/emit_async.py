"""Asynchronous copies, which here are done at once, and the barriers in shared memory.

An mbarrier is 64 bits: arrivals still pending in bits 0..19, those that a phase expects in bits
20..39, bytes that copies still owe (a signed number) in bits 40..61, the phase in bit 63.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.access import Access, effective_address, space_of
from gpuwatch.device.sim.emit_atomic import lane_loop
from gpuwatch.device.sim.emit_memory import gather, scatter
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError
from gpuwatch.device.sim.ir import MASK_ALL, splat, vector
from gpuwatch.ptx.model import Immediate, Instruction, Operand, Register

_COUNT_BITS = 20
_COUNT = (1 << _COUNT_BITS) - 1
_WORD = 4

_ARRIVE = f"""
define internal i64 @mbarrier_arrive(ptr %place, i64 %count, i64 %bytes, i64 %drop) nounwind {{
  %old = load i64, ptr %place
  %pending = and i64 %old, {_COUNT}
  %upper = lshr i64 %old, {_COUNT_BITS}
  %expected = and i64 %upper, {_COUNT}
  %top = shl i64 %old, 2
  %owed = ashr i64 %top, 42
  %phase = and i64 %old, {-(1 << 63)}
  %left = sub i64 %pending, %count
  %owed.now = add i64 %owed, %bytes
  %expected.now = sub i64 %expected, %drop
  %both = or i64 %left, %owed.now
  %complete = icmp eq i64 %both, 0
  %flipped = xor i64 %phase, {-(1 << 63)}
  %phase.now = select i1 %complete, i64 %flipped, i64 %phase
  %refilled = select i1 %complete, i64 %expected.now, i64 %left
  %pending.now = and i64 %refilled, {_COUNT}
  %expected.cut = and i64 %expected.now, {_COUNT}
  %expected.place = shl i64 %expected.cut, {_COUNT_BITS}
  %owed.top = shl i64 %owed.now, 42
  %owed.place = lshr i64 %owed.top, 2
  %a = or i64 %pending.now, %expected.place
  %b = or i64 %owed.place, %phase.now
  %new = or i64 %a, %b
  store i64 %new, ptr %place
  ret i64 %old
}}
"""


def _cp_async(e: Emitter, instruction: Instruction) -> None:
    tokens = instruction.tokens
    if "bulk" in tokens or "tensor" in tokens:
        raise UnsupportedError("bulk copies by the tensor memory accelerator")
    if "mbarrier" in tokens:
        _arrive_behind_copies(e, instruction)
    elif tokens[2] in ("ca", "cg"):
        _copy(e, instruction)
    elif tokens[2] not in ("commit_group", "wait_group", "wait_all"):
        raise UnsupportedError(f"cp.async.{tokens[2]}")


def _copy(e: Emitter, instruction: Instruction) -> None:
    """From global to shared memory; bytes from `source size` on are zeros."""
    ir = e.ir
    target, source, size, *rest = instruction.operands
    if not isinstance(size, Immediate):
        raise UnsupportedError("a copy of no constant size")
    words = int(size.value) // _WORD
    read = Access(e, "global", "i32", words, effective_address(e, source, "global"))
    write = Access(e, "shared", "i32", words, effective_address(e, target, "shared"))
    given = _source_bytes(e, rest)
    if given is None:
        scatter(write, gather(read))
        return
    values = []
    for k in range(words):
        address = ir.binary("add", "i64", read.address, splat("i64", _WORD * k))
        word = Access(e, "global", "i32", 1, address)
        some = ir.compare("ugt", "i32", given, splat("i32", _WORD * k))
        word.mask = ir.binary("and", "i1", some, word.mask or MASK_ALL)
        (value,) = gather(word)
        values.append(_first_bytes(e, value, given, _WORD * k))
    scatter(write, values)


def _source_bytes(e: Emitter, rest: list[Operand]) -> str | None:
    """How many bytes are read, by the operand behind the size: a number, or a predicate that
    says that none is; None for all."""
    if not rest:
        return None
    first = rest[0]
    if isinstance(first, Register):
        kind = e.program.registers.get(first.name, "b32")
        if kind == "pred":
            return e.ir.select(e.value(first, "pred"), "i32", splat("i32", 0), splat("i32", 16))
        if kind.endswith("64"):
            return None
    return e.value(first, "u32")


def _first_bytes(e: Emitter, value: str, given: str, start: int) -> str:
    """The bytes of a word at `start` that lie below `given`; the others as zeros."""
    ir = e.ir
    left = ir.intrinsic("usub.sat", "i32", given, splat("i32", start))
    left = ir.intrinsic("umin", "i32", left, splat("i32", _WORD))
    cut = ir.binary("sub", "i32", splat("i32", 8 * _WORD), ir.binary("shl", "i32", left,
                    splat("i32", 3)))  # fmt: skip
    none = ir.compare("eq", "i32", left, splat("i32", 0))
    safe = ir.select(none, "i32", splat("i32", 0), cut)
    mask = ir.binary("lshr", "i32", splat("i32", -1), safe)
    kept = ir.binary("and", "i32", value, mask)
    return ir.select(none, "i32", splat("i32", 0), kept)


class _Barriers:
    """The mbarrier that each lane names."""

    def __init__(self, e: Emitter, instruction: Instruction, place: Operand) -> None:
        self.e = e
        space = space_of(instruction)
        self.access = Access(e, space, "i64", 1, effective_address(e, place, space))

    def load(self) -> str:
        return gather(self.access)[0]

    def arrive(self, count: str, owed: str, drop: str) -> str:
        """Lane after lane: `count` arrivals, `owed` bytes, `drop` fewer to expect from now on.
        Gives the states before."""
        e, ir = self.e, self.e.ir
        ir.functions["mbarrier_arrive"] = _ARRIVE
        self.access.check_all()
        self.access.charge_all()
        wide = vector("i64")
        for value, slot in ((self.access.host(), "%scratch"), (count, "%scratch.2"),
                            (owed, "%scratch.3")):  # fmt: skip
            ir.store(wide, value, slot, 64)
        ir.store(wide, "zeroinitializer", "%scratch.4", 64)

        def one(lane: str) -> None:
            place, arrivals, bytes_ = (
                ir.load("i64", ir.value(f"getelementptr i64, ptr {slot}, i32 {lane}"))
                for slot in ("%scratch", "%scratch.2", "%scratch.3")
            )
            pointer = ir.value(f"inttoptr i64 {place} to ptr")
            arguments = [("ptr", pointer), ("i64", arrivals), ("i64", bytes_),
                         ("i64", arrivals if drop else "0")]  # fmt: skip
            old = ir.call("i64", "mbarrier_arrive", arguments)
            ir.store("i64", old, ir.value(f"getelementptr i64, ptr %scratch.4, i32 {lane}"))

        lane_loop(e, ir.bits_of(self.access.mask or MASK_ALL), one)
        return ir.load(wide, "%scratch.4", 64)


def _number(e: Emitter, operand: Operand) -> str:
    return e.ir.cast("zext", "i32", e.value(operand, "u32"), "i64")


def _init(e: Emitter, instruction: Instruction) -> None:
    place, count = instruction.operands
    number = _number(e, count)
    expected = e.ir.binary("shl", "i64", number, splat("i64", _COUNT_BITS))
    state = e.ir.binary("or", "i64", expected, number)
    scatter(_Barriers(e, instruction, place).access, [state])


def _inval(_: Emitter, __: Instruction) -> None:
    """The bytes are free for other use."""


def _arrive(e: Emitter, instruction: Instruction) -> None:
    target, place, *rest = instruction.operands
    one, none = splat("i64", 1), splat("i64", 0)
    expects = "expect_tx" in instruction.tokens
    number = _number(e, rest[0]) if rest else (none if expects else one)
    count, owed = (one, number) if expects else (number, none)
    drop = "drop" if "arrive_drop" in instruction.tokens else ""
    state = _Barriers(e, instruction, place).arrive(count, owed, drop)
    e.write(target, state, "b64")


def _transactions(e: Emitter, instruction: Instruction) -> None:
    """expect_tx and complete_tx."""
    place, number = instruction.operands
    owed = _number(e, number)
    if "complete_tx" in instruction.tokens:
        owed = e.ir.binary("sub", "i64", splat("i64", 0), owed)
    _Barriers(e, instruction, place).arrive(splat("i64", 0), owed, "")


def _arrive_behind_copies(e: Emitter, instruction: Instruction) -> None:
    """cp.async.mbarrier.arrive: copies are done, so with `.noinc` it arrives now; without, the
    arrival that it adds cancels itself."""
    (place,) = instruction.operands
    barriers = _Barriers(e, instruction, place)
    if "noinc" in instruction.tokens:
        barriers.arrive(splat("i64", 1), splat("i64", 0), "")


def _wait(e: Emitter, instruction: Instruction) -> None:
    """test_wait and try_wait: whether the phase of a state, or of a parity, is over."""
    ir = e.ir
    target, place, which = instruction.operands[:3]
    now = ir.binary("lshr", "i64", _Barriers(e, instruction, place).load(), splat("i64", 63))
    if "parity" in instruction.tokens:
        phase = ir.binary("and", "i64", _number(e, which), splat("i64", 1))
    else:
        phase = ir.binary("lshr", "i64", e.value(which, "b64"), splat("i64", 63))
    e.write(target, ir.compare("ne", "i64", now, phase), "pred")


def _pending_count(e: Emitter, instruction: Instruction) -> None:
    state = e.value(instruction.operands[1], "b64")
    pending = e.ir.binary("and", "i64", state, splat("i64", _COUNT))
    e.write(instruction.operands[0], e.ir.cast("trunc", "i64", pending, "i32"), "b32")


_MBARRIER: dict[str, Callable[[Emitter, Instruction], None]] = {
    "init": _init,
    "inval": _inval,
    "arrive": _arrive,
    "arrive_drop": _arrive,
    "expect_tx": _transactions,
    "complete_tx": _transactions,
    "test_wait": _wait,
    "try_wait": _wait,
    "pending_count": _pending_count,
}


def _mbarrier(e: Emitter, instruction: Instruction) -> None:
    _MBARRIER[instruction.tokens[1]](e, instruction)


def _cp(e: Emitter, instruction: Instruction) -> None:
    if instruction.tokens[1] != "async":
        raise UnsupportedError(f"cp.{instruction.tokens[1]}")
    _cp_async(e, instruction)


OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {"cp": _cp, "mbarrier": _mbarrier}
