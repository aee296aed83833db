"""Instructions that linking puts in place of calls and barriers, and those without effect here."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim import barriers
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError
from gpuwatch.device.sim.ir import splat, vector
from gpuwatch.device.sim.layout import STACK_BYTES, FaultKind, LaunchField
from gpuwatch.device.sim.program import ASSERT, PRINT, REDUCED, STACK
from gpuwatch.device.sim.recursion import FRAME
from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Instruction, Register, Symbol

_ADDRESSES = vector("i64")


def _nothing(_: Emitter, __: Instruction) -> None:
    """Hints, and waits that the block's head has done."""


def _unknown_call(_: Emitter, instruction: Instruction) -> None:
    target = isa.called(instruction)
    if isinstance(target, Symbol):
        raise UnsupportedError(
            f"call of {target.name}, which the module does not define with these arguments"
        )
    raise UnsupportedError("indirect call that fits no function whose address is taken")


def _warp_barrier(_: Emitter, instruction: Instruction) -> None:
    if "warp" not in instruction.tokens:
        raise UnsupportedError("barrier of a cluster: a block runs alone here")


def _stack(e: Emitter, instruction: Instruction) -> None:
    """Faults where a frame of so many bytes more is too much."""
    size = e.value(instruction.operands[0], "s64")
    frame = e.value(Register(FRAME), "s64")
    top = e.ir.binary("add", "i64", frame, size)
    over = e.ir.compare("sgt", "i64", top, splat("i64", STACK_BYTES))
    over = e.ir.binary("and", "i1", over, e.mask_or_all())
    good = e.ir.value(f"icmp eq i32 {e.ir.bits_of(over)}, 0")
    e.fault_unless(good, FaultKind.STACK, frame, over)


def _print(e: Emitter, instruction: Instruction) -> None:
    """vprintf: hands the lanes' formats and arguments to the host; the result is 0."""
    ir = e.ir
    *target, formats, arguments = instruction.operands
    places = []
    for operand, slot in ((formats, "%scratch"), (arguments, "%scratch.2")):
        ir.store(_ADDRESSES, e.value(operand, "u64"), slot, 64)
        places.append(slot)
    ir.store(_ADDRESSES, ir.load(_ADDRESSES, "%local.base"), "%scratch.3", 64)
    printer = e.launch_value("ptr", LaunchField.PRINT)
    bits = ir.bits_of(e.mask_or_all())
    given = f"ptr %slot, i32 %warp, i32 {bits}, ptr %scratch, ptr %scratch.2, ptr %scratch.3"
    ir.emit(f"call void {printer}({given}, ptr %shared)")
    for register in target:
        e.write(register, splat("i32", 0), "b32")


def _assert(e: Emitter, instruction: Instruction) -> None:
    """__assertfail: message, file, line and function of the first lane stand in the fault."""
    ir = e.ir
    bits = ir.bits_of(e.mask_or_all())
    lane = ir.call("i32", "llvm.cttz.i32", [("i32", bits), ("i1", "true")])
    told = "zeroinitializer"
    for k, operand in enumerate(instruction.operands[:4]):
        value = e.value(operand, "u64")
        one = ir.value(f"extractelement {_ADDRESSES} {value}, i32 {lane}")
        told = ir.value(f"insertelement {_ADDRESSES} {told}, i64 {one}, i32 {k}")
    never = ir.value(f"icmp eq i32 {bits}, 0")
    e.fault_unless(never, FaultKind.ASSERT, told, e.mask_or_all())


OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {
    "call": _unknown_call,
    "bar": _warp_barrier,
    "barrier": _warp_barrier,
    "griddepcontrol": _nothing,
    "pmevent": _nothing,
    REDUCED: barriers.reduced,
    STACK: _stack,
    PRINT: _print,
    ASSERT: _assert,
}
