"""8x8 tiles of 16-bit elements: ldmatrix, stmatrix, movmatrix.

Of a tile lane l holds elements 2(l%4) and 2(l%4)+1 of row l/4. Lanes 8t .. 8t+7 give the
addresses of the rows of tile t.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.access import Access, effective_address, space_of
from gpuwatch.device.sim.emit_formats import join, split
from gpuwatch.device.sim.emit_memory import gather, scatter
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, items_of
from gpuwatch.device.sim.ir import WARP, constants
from gpuwatch.ptx.model import Instruction, Operand


def _tiles(instruction: Instruction, registers: Operand) -> tuple[Operand, ...]:
    if "m8n8" not in instruction.tokens or "b16" not in instruction.tokens:
        raise UnsupportedError("tiles of other than 8x8 elements of 16 bits")
    return items_of(registers)


def _check_rows(e: Emitter, space: str, addresses: str, tile: int) -> None:
    """Rows are 16 bytes and begin at multiples of 16."""
    rows = e.ir.permute("i64", addresses, [8 * tile + lane // 4 for lane in range(WARP)])
    Access(e, space, "i32", 4, rows).check_all()


def _piece(e: Emitter, instruction: Instruction, space: str, addresses: str, tile: int,
           half: int) -> Access:  # fmt: skip
    """Access to a lane's part of a tile: a word, or with `.trans` one of its two halves."""
    ir = e.ir
    if half == 0:
        _check_rows(e, space, addresses, tile)
    if "trans" in instruction.tokens:
        rows = [8 * tile + 2 * (lane % 4) + half for lane in range(WARP)]
        offsets = [2 * (lane // 4) for lane in range(WARP)]
    else:
        rows = [8 * tile + lane // 4 for lane in range(WARP)]
        offsets = [4 * (lane % 4) for lane in range(WARP)]
    address = ir.binary("add", "i64", ir.permute("i64", addresses, rows), constants("i64", offsets))
    return Access(e, space, "i16" if "trans" in instruction.tokens else "i32", 1, address)


def _ldmatrix(e: Emitter, instruction: Instruction) -> None:
    registers, place = instruction.operands
    space = space_of(instruction)
    addresses = effective_address(e, place, space)
    tiles = _tiles(instruction, registers)
    results = []
    for tile in range(len(tiles)):
        if "trans" in instruction.tokens:
            halves = [
                gather(_piece(e, instruction, space, addresses, tile, half))[0] for half in (0, 1)
            ]
            results.append(join(e, "u16x2", *halves))
        else:
            results += gather(_piece(e, instruction, space, addresses, tile, 0))
    for register, value in zip(tiles, results, strict=True):
        e.write(register, value, "b32")


def _stmatrix(e: Emitter, instruction: Instruction) -> None:
    place, registers = instruction.operands
    space = space_of(instruction)
    addresses = effective_address(e, place, space)
    for tile, register in enumerate(_tiles(instruction, registers)):
        value = e.value(register, "b32")
        if "trans" in instruction.tokens:
            for half, part in enumerate(split(e, "u16x2", value)):
                scatter(_piece(e, instruction, space, addresses, tile, half), [part])
        else:
            scatter(_piece(e, instruction, space, addresses, tile, 0), [value])


def _movmatrix(e: Emitter, instruction: Instruction) -> None:
    """Transposes a tile that lies in registers."""
    ir = e.ir
    low, high = split(e, "u16x2", e.value(instruction.operands[1], "b32"))
    parts = []
    for half in (0, 1):
        places = [(2 * (lane % 4) + half) * 4 + lane // 8 for lane in range(WARP)]
        odd = constants("i1", [lane // 4 % 2 for lane in range(WARP)])
        even_part, odd_part = (ir.permute("i16", part, places) for part in (low, high))
        parts.append(ir.select(odd, "i16", odd_part, even_part))
    e.write(instruction.operands[0], join(e, "u16x2", *parts), "b32")


OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {
    "ldmatrix": _ldmatrix,
    "stmatrix": _stmatrix,
    "movmatrix": _movmatrix,
}
