"""A fault of the simulated kernel, in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.device.sim.access import space_of
from gpuwatch.device.sim.arena import Arena
from gpuwatch.device.sim.layout import (
    ARENA_BASE,
    STACK_BYTES,
    WINDOW_BYTES,
    WINDOWS,
    FaultKind,
)
from gpuwatch.device.sim.program import Program, location
from gpuwatch.errors import Location, UserError
from gpuwatch.launch.model import Launch
from gpuwatch.ptx.model import Immediate, Instruction, Module
from gpuwatch.ptx.source import Place, SourceMap, own_place, source_chain
from gpuwatch.ptx.types import TYPE_BITS

_NULL_PAGE = 4096
"""Addresses below this come from a null pointer."""
_TILE_ROW_BYTES = 16
_LENGTH = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Fault:
    """`instruction` is an index, -1 when unknown; `addresses` are those of the 32 lanes.

    `standing` are lines that say where the warps of the block stand, if that was asked for.
    """

    kind: int
    instruction: int
    mask: int
    block: int
    warp: int
    addresses: tuple[int, ...]
    standing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """What a fault happened in. `limits` are the bytes of each space that has a window, `timeout`
    the seconds that a launch may take."""

    module: Module
    program: Program
    launch: Launch
    arena: Arena
    limits: dict[str, int]
    timeout: float


def describe(fault: Fault, scene: Scene) -> UserError:
    """The error to raise (status 1)."""
    known = fault.instruction >= 0
    instruction = scene.program.instructions[fault.instruction] if known else None
    message, hint = _MESSAGES[fault.kind](fault, instruction, scene)
    launch = scene.launch
    where = f"kernel {readable(launch.kernel)}, block {_index(fault.block, launch.grid)}"
    if fault.kind not in (FaultKind.STOPPED, FaultKind.DEADLOCK):
        lane = _culprit(fault, instruction, scene)
        where += f", thread {_index(fault.warp * 32 + lane, launch.block)}"
    lines = [where]
    at = None
    if instruction is not None:
        at, inner = _source(scene.module, instruction)
        lines += inner
        place = location(scene.module, instruction)
        text = " ".join(place.text.split())
        lines += [f"PTX line {place.line}: {text}"] if at is not None else []
        at = at or place
    detail = "\n".join([*lines, *fault.standing])
    return UserError(message, at=at, detail=detail, hint=hint, status=1)


def readable(kernel: str) -> str:
    """The name of a kernel without the parameters in it: "wild" of "_Z4wildPii"."""
    rest = kernel.removeprefix("_Z").removeprefix("N")
    names = []
    while (length := _LENGTH.match(rest)) and kernel.startswith("_Z"):
        end = length.end() + int(length[0])
        names.append(rest[length.end() : end])
        rest = rest[end:]
        if not kernel.startswith("_ZN"):
            break
    return "::".join(names) or kernel


def _source(module: Module, instruction: Instruction) -> tuple[Location | None, list[str]]:
    """The place of an instruction in the kernel's source, with its text; None where it has none
    or the source cannot be read. And a line that names the header it is in, if it is in one."""
    chain = source_chain(module, instruction.start)
    place = own_place(chain)
    if place is None:
        return None, []
    inner = [f"inlined there: {chain[0].path}:{chain[0].line}"] if chain[0] != place else []
    path = Path(place.path)
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    if place.line > len(lines):
        return None, inner
    text = lines[place.line - 1]
    column = len(text) - len(text.lstrip()) + 1
    return Location(str(path), place.line, column, text), inner


class Origins:
    """Where the instructions of a module are from; each function's lines are read once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._maps: dict[int, SourceMap] = {}

    def source_line(self, instruction: Instruction) -> str:
        """The file and line of the kernel's source that an instruction is from, or its place in
        the PTX."""
        place = own_place(self._chain(instruction.start))
        if place is None:
            ptx = location(self._module, instruction)
            return f"{ptx.file}:{ptx.line}"
        return f"{place.path or 'the source'}:{place.line}"

    def _chain(self, offset: int) -> tuple[Place, ...]:
        for function in self._module.functions:
            if function.body_start <= offset < function.body_end:
                if function.body_start not in self._maps:
                    self._maps[function.body_start] = SourceMap(self._module, function)
                return self._maps[function.body_start].at(offset)
        return ()


_Message = tuple[str, str]


def _stopped(_: Fault, __: Instruction | None, scene: Scene) -> _Message:
    return (
        f"the kernel {readable(scene.launch.kernel)} did not end within {scene.timeout:g} s",
        "look for a loop that cannot end, or threads that wait for other blocks; a kernel that "
        "just takes long needs a greater --timeout",
    )


def _deadlock(_: Fault, __: Instruction | None, scene: Scene) -> _Message:
    return (
        f"deadlock in the kernel {readable(scene.launch.kernel)}: every warp of a block waits",
        "threads must reach the same barriers, and lanes the *_sync calls whose mask names them",
    )


def _trap(_: Fault, __: Instruction | None, ___: Scene) -> _Message:
    return "the kernel executed 'trap'", "__trap() or a failed check in device code stands there"


def _assertion(fault: Fault, _: Instruction | None, scene: Scene) -> _Message:
    message, file, line, function = fault.addresses[:4]
    text, name, place = (scene.arena.text(a) for a in (message, function, file))
    return (
        f"assertion `{text}` failed in {name}, {place}:{line & 0xFFFFFFFF}",
        "the condition of an assert() in the kernel is false for this thread",
    )


def _stack(_: Fault, __: Instruction | None, ___: Scene) -> _Message:
    return (
        f"stack overflow: the frames of a thread's calls exceed {STACK_BYTES >> 10} KB",
        "look for recursion that does not end",
    )


def _call(fault: Fault, _: Instruction | None, ___: Scene) -> _Message:
    address = fault.addresses[_first(fault.mask)]
    return f"call through a pointer: no function at address 0x{address:x}", (
        "check that the pointer was set, on the device, to a function with these parameters"
    )


def _branch(fault: Fault, _: Instruction | None, ___: Scene) -> _Message:
    index = fault.addresses[_first(fault.mask)]
    return f"brx.idx with index {index}, behind the end of its list of labels", ("check the index")


def _access(fault: Fault, instruction: Instruction | None, scene: Scene) -> _Message:
    assert instruction is not None
    lane = _culprit(fault, instruction, scene)
    reason = _reason(fault.addresses[lane], instruction, scene)
    return (
        f"{reason or 'address out of bounds'} by {'.'.join(instruction.tokens)}",
        "check the index that this address is computed from",
    )


_MESSAGES: dict[int, Callable[[Fault, Instruction | None, Scene], _Message]] = {
    FaultKind.ADDRESS: _access,
    FaultKind.TRAP: _trap,
    FaultKind.STOPPED: _stopped,
    FaultKind.ASSERT: _assertion,
    FaultKind.STACK: _stack,
    FaultKind.CALL: _call,
    FaultKind.BRANCH: _branch,
    FaultKind.DEADLOCK: _deadlock,
}


def _index(linear: int, extent: tuple[int, int, int]) -> str:
    x, y = extent[0], extent[1]
    return f"({linear % x}, {linear // x % y}, {linear // (x * y)})"


def _first(mask: int) -> int:
    return (mask & -mask).bit_length() - 1 if mask else 0


def _width(instruction: Instruction) -> int:
    tokens = instruction.tokens
    if tokens[0] in ("ldmatrix", "stmatrix"):
        return _TILE_ROW_BYTES
    if tokens[0] == "cp":
        sizes = [o.value for o in instruction.operands if isinstance(o, Immediate)]
        return int(sizes[0]) if sizes else 8
    kind = next((t for t in reversed(tokens) if t in TYPE_BITS), "b8")
    count = next((int(t[1]) for t in tokens if t in ("v2", "v4", "v8")), 1)
    return TYPE_BITS[kind] // 8 * count


def _reason(address: int, instruction: Instruction, scene: Scene) -> str:
    """What is wrong with an address, or "" when nothing is."""
    width, space = _width(instruction), space_of(instruction)
    address &= (1 << 64) - 1
    if instruction.opcode == "cp" and address >= ARENA_BASE:
        space = "global"
    if space in ("global", "generic") and address < _NULL_PAGE:
        return f"null pointer: {space} address 0x{address:x}"
    if address % width:
        return f"misaligned address 0x{address:x} ({width} bytes wanted at once)"
    if space == "generic":
        for name, window in WINDOWS.items():
            if window <= address < window + WINDOW_BYTES:
                space, address = name, address - window
    if space in WINDOWS:
        return _outside_window(address, width, space, scene.limits[space])
    return _outside_arena(address, width, scene.arena)


def _outside_window(address: int, width: int, space: str, limit: int) -> str:
    if address <= limit - width:
        return ""
    owner = {"shared": "block", "local": "thread", "param": "kernel's parameters"}[space]
    return f"{space} address 0x{address:x} outside the {limit} bytes of the {owner}"


def _outside_arena(address: int, width: int, arena: Arena) -> str:
    if arena.find(address) and arena.find(address + width - 1):
        return ""
    near = arena.nearest(address)
    if near is None:
        return f"global address 0x{address:x} in no allocation"
    beyond = address - near.address - near.size
    return f"global address 0x{address:x} in no allocation, {beyond} bytes behind {near.name}"


def _culprit(fault: Fault, instruction: Instruction | None, scene: Scene) -> int:
    """The first lane at fault."""
    if fault.kind == FaultKind.ADDRESS and instruction is not None:
        for lane in range(32):
            if fault.mask >> lane & 1 and _reason(fault.addresses[lane], instruction, scene):
                return lane
    return _first(fault.mask)
