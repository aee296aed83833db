"""Atomics: lane after lane in lane order, with the host's own atomic instructions.

Integers use one host instruction; floating types, singly, in pairs or in vectors, compute the
new value as the plain instruction would and try to exchange it. As on NVIDIA's GPUs `add.f32`
flushes subnormal numbers in global memory and keeps them in shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gpuwatch.device.sim.access import Access, effective_address, space_of
from gpuwatch.device.sim.emit_float import flush
from gpuwatch.device.sim.emit_formats import NARROW, PACKED, join, narrow, split, widen
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, items_of, type_of
from gpuwatch.device.sim.ir import BITS, MASK_ALL, SCALAR, splat, vector
from gpuwatch.device.sim.layout import ARENA_BASE, LaunchField
from gpuwatch.device.sim.nans import canonical
from gpuwatch.ptx.model import Instruction, Operand

_INTEGER = {
    "add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg",
    "inc": "uinc_wrap", "dec": "udec_wrap",
}  # fmt: skip
_EXTREMES = {"min": "minimumnum", "max": "maximumnum"}
_COMPUTED = frozenset(("f16", "bf16", "f16x2", "bf16x2", "f32", "f64"))
_NAMES = frozenset((*_INTEGER, "min", "max", "cas"))


def operation_of(instruction: Instruction) -> str:
    """The operation's name among the opcode's parts."""
    for token in instruction.tokens[1:]:
        if token in _NAMES:
            return token
    raise UnsupportedError("this atomic operation")


def _llvm_operation(instruction: Instruction, kind: str) -> str:
    name = operation_of(instruction)
    if name in ("min", "max"):
        return name if kind.startswith("s") else f"u{name}"
    return _INTEGER[name]


def _atomic(e: Emitter, instruction: Instruction) -> None:
    kind, name = type_of(instruction), operation_of(instruction)
    if "async" in instruction.tokens:
        raise UnsupportedError("red.async: other blocks' shared memory")
    with_result = instruction.opcode == "atom"
    operands = instruction.operands[1 if with_result else 0 :]
    given = operands[1 : 3 if name == "cas" else 2]
    results = _perform(e, instruction, operands[0], [items_of(o) for o in given], kind)
    if with_result:
        for target, result in zip(items_of(instruction.operands[0]), results, strict=True):
            e.write(target, result, kind)


def _perform(
    e: Emitter,
    instruction: Instruction,
    place: Operand,
    given: list[tuple[Operand, ...]],
    kind: str,
) -> list[str]:
    """The old values, one vector for each element."""
    ir, scalar, space = e.ir, SCALAR[kind], space_of(instruction)
    count = len(given[0])
    values = [[e.value(operand, kind) for operand in elements] for elements in given]
    access = Access(e, space, scalar, count, effective_address(e, place, space))
    access.check_all()
    access.traffic = LaunchField.ATOMIC_CYCLES
    access.charge_all()
    bits = ir.bits_of(access.mask or MASK_ALL)
    host, results = access.host(), []
    for k in range(count):
        offset = ir.binary("add", "i64", host, splat("i64", k * access.element))
        ir.store(vector("i64"), offset, "%scratch", 64)
        slots = ["%scratch.2", "%scratch.3"][: len(values)]
        for value, slot in zip(values, slots, strict=True):
            ir.store(vector(scalar), value[k], slot, 64)
        ir.store(vector(scalar), "zeroinitializer", "%scratch.4", 64)
        lane_loop(e, bits, partial(_one, e, instruction, kind, access, slots))
        results.append(ir.load(vector(scalar), "%scratch.4", 64))
    return results


def _one(
    e: Emitter, instruction: Instruction, kind: str, access: Access, slots: list[str], lane: str
) -> None:
    ir, scalar, name = e.ir, SCALAR[kind], operation_of(instruction)
    place = ir.load("i64", ir.value(f"getelementptr i64, ptr %scratch, i32 {lane}"))
    pointer = ir.value(f"inttoptr i64 {place} to ptr")
    given = [
        ir.load(scalar, ir.value(f"getelementptr {scalar}, ptr {slot}, i32 {lane}"))
        for slot in slots
    ]
    if name == "cas":
        old = _exchange_if_equal(e, pointer, scalar, *given)
    elif kind in _COMPUTED:
        flushed = _is_global(e, access, lane)
        old = _compute_and_exchange(e, name, kind, pointer, given[0], flushed)
    else:
        operation = _llvm_operation(instruction, kind)
        old = ir.value(f"atomicrmw {operation} ptr {pointer}, {scalar} {given[0]} monotonic")
    ir.store(scalar, old, ir.value(f"getelementptr {scalar}, ptr %scratch.4, i32 {lane}"))


def _exchange_if_equal(e: Emitter, pointer: str, scalar: str, wanted: str, new: str) -> str:
    pair = e.ir.value(
        f"cmpxchg ptr {pointer}, {scalar} {wanted}, {scalar} {new} monotonic monotonic"
    )
    return e.ir.value(f"extractvalue {{{scalar}, i1}} {pair}, 0")


def _compute_and_exchange(
    e: Emitter, name: str, kind: str, pointer: str, given: str, flushed: str
) -> str:
    """Computes in vectors of which only the first lane counts; `flushed` is a scalar i1."""
    ir, scalar = e.ir, SCALAR[kind]
    bits = BITS[scalar]
    integer = f"i{bits}"
    start, again, done = ir.fresh("start"), ir.fresh("again"), ir.fresh("exchanged")
    ir.jump(start)
    ir.label(start)
    loaded = ir.value(f"load atomic {integer}, ptr {pointer} monotonic, align {bits // 8}")
    ir.jump(again)
    ir.label(again)
    seen = ir.fresh("%seen")
    old = ir.value(f"phi {integer} [{loaded}, %{start}], [{seen}, %{again}]")
    held = e.resize(ir.broadcast(integer, old), integer, scalar)
    new = _updated(e, name, kind, [held, ir.broadcast(scalar, given)], flushed)
    first = ir.value(f"extractelement {vector(integer)} {e.resize(new, scalar, integer)}, i32 0")
    pair = ir.value(
        f"cmpxchg ptr {pointer}, {integer} {old}, {integer} {first} monotonic monotonic"
    )
    ir.emit(f"{seen} = extractvalue {{{integer}, i1}} {pair}, 0")
    ir.branch(ir.value(f"extractvalue {{{integer}, i1}} {pair}, 1"), done, again)
    ir.label(done)
    return old if integer == scalar else ir.value(f"bitcast {integer} {old} to {scalar}")


def _updated(e: Emitter, name: str, kind: str, values: list[str], flushed: str) -> str:
    if kind in PACKED:
        pairs = [split(e, kind, value) for value in values]
        halves = [_updated(e, name, PACKED[kind], [p[k] for p in pairs], flushed) for k in (0, 1)]
        return join(e, kind, *halves)
    work = "double" if kind == "f64" else "float"
    if kind in NARROW:
        values = [widen(e, kind, value) for value in values]
    if kind == "f32":
        values = [_flushed_if(e, flushed, value) for value in values]
    if name == "add":
        result = e.ir.binary("fadd", work, *values)
    else:
        result = e.ir.intrinsic(_EXTREMES[name], work, *values)
    if kind in NARROW:
        return narrow(e, kind, result)
    if kind == "f32":
        result = _flushed_if(e, flushed, result)
    return canonical(e.ir, result, work)


def _flushed_if(e: Emitter, flushed: str, value: str) -> str:
    return e.ir.select(e.ir.broadcast("i1", flushed), "float", flush(e, value), value)


def _is_global(e: Emitter, access: Access, lane: str) -> str:
    """Whether a lane's address lies in global memory, as a scalar i1."""
    if access.space != "generic":
        return "true" if access.space == "global" else "false"
    address = e.ir.value(f"extractelement {vector('i64')} {access.address}, i32 {lane}")
    return e.ir.value(f"icmp uge i64 {address}, {ARENA_BASE}")


def lane_loop(e: Emitter, bits: str, body: Callable[[str], None]) -> None:
    """Runs `body` for each set bit of a scalar i32, lowest first."""
    ir = e.ir
    ir.store("i32", bits, "%pending")
    head, inside, done = ir.fresh("lanes"), ir.fresh("lane"), ir.fresh("done")
    ir.jump(head)
    ir.label(head)
    left = ir.load("i32", "%pending")
    ir.branch(ir.value(f"icmp eq i32 {left}, 0"), done, inside)
    ir.label(inside)
    lane = ir.call("i32", "llvm.cttz.i32", [("i32", left), ("i1", "true")])
    body(lane)
    lowest_less = ir.value(f"sub i32 {left}, 1")
    ir.store("i32", ir.value(f"and i32 {left}, {lowest_less}"), "%pending")
    ir.jump(head)
    ir.label(done)


OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {"atom": _atomic, "red": _atomic}
