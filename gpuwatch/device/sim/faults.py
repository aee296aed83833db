"""A fault of the simulated kernel, in words."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwatch.device.sim.access import space_of
from gpuwatch.device.sim.arena import Arena
from gpuwatch.device.sim.layout import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES, FaultKind
from gpuwatch.device.sim.program import Program, location
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Launch
from gpuwatch.ptx.model import Instruction, Module
from gpuwatch.ptx.types import TYPE_BITS


@dataclass(frozen=True, slots=True)
class Fault:
    """`instruction` is an index, -1 when unknown; `addresses` are those of the 32 lanes."""

    kind: int
    instruction: int
    mask: int
    block: int
    warp: int
    addresses: tuple[int, ...]


def describe(
    fault: Fault,
    module: Module,
    program: Program,
    launch: Launch,
    arena: Arena,
    limits: dict[str, int],
) -> UserError:
    """The error to raise. `limits` are the bytes of "shared" and "local" memory."""
    known = fault.instruction >= 0
    instruction = program.instructions[fault.instruction] if known else None
    at = location(module, instruction) if instruction else None
    lane = _culprit(fault, instruction, arena, limits)
    where = f"kernel {launch.kernel}, block {_index(fault.block, launch.grid)}, "
    where += f"thread {_index(fault.warp * 32 + lane, launch.block)}"
    if instruction and instruction.line:
        file = module.files.get(instruction.file, "the source")
        where += f"\nsource {file}:{instruction.line}"
    if fault.kind == FaultKind.STOPPED:
        return UserError(
            f"the kernel {launch.kernel} did not end in time",
            at=at,
            detail=where,
            hint="look for a loop that cannot end, or threads that wait for other blocks",
            status=1,
        )
    if fault.kind == FaultKind.TRAP:
        return UserError("the kernel executed 'trap'", at=at, detail=where, status=1)
    assert instruction is not None
    reason = _reason(fault.addresses[lane], instruction, arena, limits)
    return UserError(
        f"{reason} by {'.'.join(instruction.tokens)}",
        at=at,
        detail=where,
        hint="check the index that this address is computed from",
        status=1,
    )


def _index(linear: int, extent: tuple[int, int, int]) -> str:
    x, y = extent[0], extent[1]
    return f"({linear % x}, {linear // x % y}, {linear // (x * y)})"


def _width(instruction: Instruction) -> int:
    tokens = instruction.tokens
    kind = next((t for t in reversed(tokens) if t in TYPE_BITS), "b8")
    count = next((int(t[1]) for t in tokens if t in ("v2", "v4", "v8")), 1)
    return TYPE_BITS[kind] // 8 * count


def _reason(address: int, instruction: Instruction, arena: Arena, limits: dict[str, int]) -> str:
    """What is wrong with an address, or "" when nothing is."""
    width, space = _width(instruction), space_of(instruction)
    if address % width:
        return f"misaligned address 0x{address:x} ({width} bytes wanted at once)"
    windows = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
    if space == "generic":
        for name, window in windows.items():
            if window <= address < window + WINDOW_BYTES:
                space, address = name, address - window
    if space in windows:
        if 0 <= address <= limits[space] - width:
            return ""
        return f"{space} address 0x{address:x} outside the {limits[space]} bytes of the block"
    if arena.find(address) and arena.find(address + width - 1):
        return ""
    near = arena.nearest(address)
    if near is None:
        return f"global address 0x{address:x} in no allocation"
    beyond = address - near.address - near.size
    return f"global address 0x{address:x} in no allocation, {beyond} bytes behind {near.name}"


def _culprit(
    fault: Fault, instruction: Instruction | None, arena: Arena, limits: dict[str, int]
) -> int:
    """The first lane at fault."""
    lanes = [lane for lane in range(32) if fault.mask >> lane & 1]
    if fault.kind == FaultKind.ADDRESS and instruction is not None:
        for lane in lanes:
            if _reason(fault.addresses[lane], instruction, arena, limits):
                return lane
    return lanes[0] if lanes else 0
