"""Atomics: lane after lane in lane order, with the host's own atomic instructions."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.access import Access, effective_address, space_of
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, is_float, type_of
from gpuwatch.device.sim.ir import BITS, MASK_ALL, SCALAR, vector
from gpuwatch.device.sim.layout import LaunchField
from gpuwatch.ptx.model import Instruction, Operand

_INTEGER = {
    "add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg",
    "inc": "uinc_wrap", "dec": "udec_wrap",
}  # fmt: skip
_FLOAT = {"add": "fadd", "exch": "xchg", "min": "fminimum", "max": "fmaximum"}
_NAMES = frozenset((*_INTEGER, "min", "max", "cas"))


def operation_of(instruction: Instruction) -> str:
    """The operation's name among the opcode's parts."""
    for token in instruction.tokens[1:]:
        if token in _NAMES:
            return token
    raise UnsupportedError("this atomic operation")


def _llvm_operation(instruction: Instruction, kind: str) -> str:
    name = operation_of(instruction)
    if is_float(kind):
        if name not in _FLOAT:
            raise UnsupportedError(f"{name} of {kind}")
        return _FLOAT[name]
    if name in ("min", "max"):
        return name if kind.startswith("s") else f"u{name}"
    return _INTEGER[name]


def _atomic(e: Emitter, instruction: Instruction) -> None:
    kind = type_of(instruction)
    with_result = instruction.opcode == "atom"
    operands = instruction.operands[1 if with_result else 0 :]
    if not 2 <= len(operands) <= 3 or kind in ("f16", "f16x2", "bf16", "bf16x2"):
        raise UnsupportedError("this form of atomic")
    results = _perform(e, instruction, operands, kind)
    if with_result:
        e.write(instruction.operands[0], results, kind)


def _perform(e: Emitter, instruction: Instruction, operands: tuple[Operand, ...], kind: str) -> str:
    ir, scalar, space = e.ir, SCALAR[kind], space_of(instruction)
    values = [e.value(operand, kind) for operand in operands[1:]]
    access = Access(e, space, scalar, 1, effective_address(e, operands[0], space))
    access.check_all()
    access.charge_all(cached=False)
    bits = ir.bits_of(access.mask or MASK_ALL)
    if space != "shared":
        e.cost(LaunchField.ATOMIC_CYCLES, "1")
    ir.store(vector("i64"), access.host(), "%scratch", 64)
    slots = ["%scratch.2", "%scratch.3"][: len(values)]
    for value, slot in zip(values, slots, strict=True):
        ir.store(vector(scalar), value, slot, 64)
    ir.store(vector(scalar), "zeroinitializer", "%scratch.4", 64)
    _lane_loop(e, bits, lambda lane: _one(e, instruction, kind, slots, lane))
    return ir.load(vector(scalar), "%scratch.4", 64)


def _one(e: Emitter, instruction: Instruction, kind: str, slots: list[str], lane: str) -> None:
    ir, scalar = e.ir, SCALAR[kind]
    place = ir.load("i64", ir.value(f"getelementptr i64, ptr %scratch, i32 {lane}"))
    pointer = ir.value(f"inttoptr i64 {place} to ptr")
    given = [
        ir.load(scalar, ir.value(f"getelementptr {scalar}, ptr {slot}, i32 {lane}"))
        for slot in slots
    ]
    if operation_of(instruction) == "cas":
        old = _exchange_if_equal(e, pointer, f"i{BITS[scalar]}", given)
    else:
        operation = _llvm_operation(instruction, kind)
        old = ir.value(f"atomicrmw {operation} ptr {pointer}, {scalar} {given[0]} monotonic")
    ir.store(scalar, old, ir.value(f"getelementptr {scalar}, ptr %scratch.4, i32 {lane}"))


def _exchange_if_equal(e: Emitter, pointer: str, scalar: str, given: list[str]) -> str:
    if len(given) != 2:
        raise UnsupportedError("cas without a new value")
    wanted, new = given
    pair = e.ir.value(
        f"cmpxchg ptr {pointer}, {scalar} {wanted}, {scalar} {new} monotonic monotonic"
    )
    return e.ir.value(f"extractvalue {{{scalar}, i1}} {pair}, 0")


def _lane_loop(e: Emitter, bits: str, body: Callable[[str], None]) -> None:
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
