"""Instructions on matrices that a warp holds together, for the reference interpreter.

Fragments follow the pictures in the PTX manual. Those of wmma are open there; they are taken to
be the same, and elements that a register set holds twice repeat in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import binary_float as bf
from reference_memory import Memory
from reference_thread import Thread

from gpuwatch.ptx.model import Instruction, Operand, Vector

WIDTHS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "e4m3": 8, "e5m2": 8,
          "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}  # fmt: skip
Matrix = dict[tuple[int, int], int]
"""Element patterns by (row, column)."""
Place = tuple[int, int, int]
"""Lane, register, and which element of the register."""


def items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def shape(instruction: Instruction) -> tuple[int, int, int]:
    """M, N and K of the opcode's `m16n8k16`."""
    part = next(t for t in instruction.tokens if t[0] == "m" and t[1:2].isdigit())
    m, rest = part[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def place_a(m: int, kind: str, row: int, k: int) -> Place:
    packed = max(1, 32 // WIDTHS[kind])
    group, element = divmod(k, packed)
    return row % 8 * 4 + group % 4, row // 8 + group // 4 * (m // 8), element


def place_b(n: int, kind: str, k: int, column: int) -> Place:
    return place_a(n, kind, column, k)


def place_c(m: int, row: int, column: int) -> Place:
    """The register number counts pairs of elements."""
    pair, element = divmod(column, 2)
    return row % 8 * 4 + pair % 4, row // 8 + pair // 4 * (m // 8), element


def _held_kind(kind: str) -> str:
    return "b64" if kind == "f64" else "b32"


def _element(registers: Sequence[int], kind: str, register: int, element: int) -> int:
    width = WIDTHS[kind]
    return registers[register] >> (width * element) & (1 << width) - 1


def _registers(lanes: Sequence[Thread], operand: Operand, kind: str) -> list[list[int]]:
    return [[lane.read(item, _held_kind(kind)) for item in items(operand)] for lane in lanes]


def _c_element(registers: Sequence[int], kind: str, register: int, element: int) -> int:
    if kind == "f16":
        return _element(registers, kind, register, element)
    return registers[2 * register + element]


def _signed(bits: int, kind: str) -> int:
    width = WIDTHS[kind]
    return bits - (bits >> (width - 1) << width) if kind[0] == "s" else bits


def _dot(kinds: list[str], tokens: tuple[str, ...], a: list[int], b: list[int], c: int) -> int:
    """c plus the products, in order."""
    d, a_kind, b_kind, c_kind = kinds
    if d == "s32":
        total = _signed(c, "s32")
        for x, y in zip(a, b, strict=True):
            if a_kind == "b1":
                total += x & y if "and" in tokens else x ^ y
            else:
                total += _signed(x, a_kind) * _signed(y, b_kind)
        if "satfinite" in tokens:
            total = max(-(1 << 31), min((1 << 31) - 1, total))
        return total & 0xFFFFFFFF
    work = bf.FORMATS["f64" if d == "f64" else "f32"]
    total = bf.convert(bf.FORMATS[c_kind], work, c)
    for x, y in zip(a, b, strict=True):
        left, right = (
            bf.convert(bf.FORMATS[a_kind], work, x),
            bf.convert(bf.FORMATS[b_kind], work, y),
        )
        total = bf.fma(work, left, right, total)
    return bf.convert(work, bf.FORMATS[d], total)


def _kinds(instruction: Instruction) -> list[str]:
    kinds = [t for t in instruction.tokens[1:] if t in WIDTHS]
    return [kinds[0], "f16", "f16", kinds[1]] if len(kinds) == 2 else kinds


def multiply(instruction: Instruction, lanes: Sequence[Thread]) -> None:
    """mma and wmma.mma."""
    m, n, depth = shape(instruction)
    kinds = _kinds(instruction)
    drop = 13 if kinds[1] == "tf32" else 0
    target, *sources = instruction.operands
    a, b, c = (_registers(lanes, s, k) for s, k in zip(sources, kinds[1:], strict=True))

    def factor(table: list[list[int]], kind: str, place: Place) -> int:
        lane, register, element = place
        return _element(table[lane], kind, register, element) >> drop

    results: dict[Place, int] = {}
    for row in range(m):
        left = [factor(a, kinds[1], place_a(m, kinds[1], row, k)) for k in range(depth)]
        for column in range(n):
            right = [factor(b, kinds[2], place_b(n, kinds[2], k, column)) for k in range(depth)]
            lane, register, element = place_c(m, row, column)
            start = _c_element(c[lane], kinds[3], register, element)
            total = _dot(kinds, instruction.tokens, left, right, start)
            results[lane, register, element] = total
    _write_pairs(lanes, target, kinds[0], results)


def _write_pairs(
    lanes: Sequence[Thread], target: Operand, kind: str, results: dict[Place, int]
) -> None:
    for (lane, register, element), value in results.items():
        if kind != "f16":
            lanes[lane].write(items(target)[2 * register + element], value, _held_kind(kind))
        elif element == 0:
            whole = results[lane, register, 1] << 16 | value
            lanes[lane].write(items(target)[register], whole, "b32")


def _in_memory(
    instruction: Instruction, lanes: Sequence[Thread], which: str
) -> tuple[str, Memory, Callable[[int, int], int]]:
    """Element type, memory, and the address of an element by row and column, in bits."""
    tokens, operands = instruction.tokens, instruction.operands
    kind = next(t for t in reversed(tokens) if t in WIDTHS)
    m, n, k = shape(instruction)
    rows, columns = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    memory, base = lanes[0].place(instruction, operands[0 if tokens[1] == "store" else 1])
    stride = columns if "row" in tokens else rows
    if len(operands) > 2:
        stride = lanes[0].read(operands[2], "b32")

    def address(row: int, column: int) -> int:
        place = row * stride + column if "row" in tokens else column * stride + row
        return base * 8 + place * WIDTHS[kind]

    return kind, memory, address


def _read_bits(memory: Memory, address: int, width: int) -> int:
    size = max(8, width)
    return memory.read(address // 8, size // 8) >> (address % 8) & (1 << width) - 1


def load(instruction: Instruction, lanes: Sequence[Thread]) -> None:
    """wmma.load."""
    which = instruction.tokens[2]
    m, n, k = shape(instruction)
    kind, memory, address = _in_memory(instruction, lanes, which)
    target = items(instruction.operands[0])
    if which == "c":
        results = {
            place_c(m, row, column): _read_bits(memory, address(row, column), WIDTHS[kind])
            for row in range(m)
            for column in range(n)
        }
        _write_pairs(lanes, instruction.operands[0], kind, results)
        return
    registers: dict[tuple[int, int], int] = {}
    for line in range(m if which == "a" else n):
        for depth in range(k):
            row, column = (line, depth) if which == "a" else (depth, line)
            lane, register, element = place_a(m if which == "a" else n, kind, line, depth)
            bits = _read_bits(memory, address(row, column), WIDTHS[kind])
            held = registers.get((lane, register), 0)
            registers[lane, register] = held | bits << (element * WIDTHS[kind])
    count = 1 + max(register for _, register in registers)
    for lane, thread in enumerate(lanes):
        for index, item in enumerate(target):
            thread.write(item, registers[lane, index % count], _held_kind(kind))


def store(instruction: Instruction, lanes: Sequence[Thread]) -> None:
    """wmma.store."""
    m, n, _ = shape(instruction)
    kind, memory, address = _in_memory(instruction, lanes, "d")
    held = _registers(lanes, instruction.operands[1], kind)
    for row in range(m):
        for column in range(n):
            lane, register, element = place_c(m, row, column)
            value = _c_element(held[lane], kind, register, element)
            memory.write(address(row, column) // 8, WIDTHS[kind] // 8, value)


def wmma(instruction: Instruction, lanes: Sequence[Thread]) -> None:
    {"load": load, "store": store, "mma": multiply}[instruction.tokens[1]](instruction, lanes)


def _tile_element(tokens: tuple[str, ...], lane: int, half: int) -> tuple[int, int]:
    row, column = lane // 4, lane % 4 * 2 + half
    return (column, row) if "trans" in tokens else (row, column)


def load_tiles(instruction: Instruction, lanes: Sequence[Thread]) -> None:
    """ldmatrix."""
    registers, address = instruction.operands
    rows = [lane.place(instruction, address) for lane in lanes]
    for tile, register in enumerate(items(registers)):
        values = []
        for lane in range(32):
            halves = []
            for half in (0, 1):
                row, column = _tile_element(instruction.tokens, lane, half)
                memory, start = rows[8 * tile + row]
                halves.append(memory.read(start + 2 * column, 2))
            values.append(halves[1] << 16 | halves[0])
        for thread, value in zip(lanes, values, strict=True):
            thread.write(register, value, "b32")


def store_tiles(instruction: Instruction, lanes: Sequence[Thread]) -> None:
    """stmatrix."""
    address, registers = instruction.operands
    rows = [lane.place(instruction, address) for lane in lanes]
    for tile, register in enumerate(items(registers)):
        for lane in range(32):
            value = lanes[lane].read(register, "b32")
            for half in (0, 1):
                row, column = _tile_element(instruction.tokens, lane, half)
                memory, start = rows[8 * tile + row]
                memory.write(start + 2 * column, 2, value >> (16 * half) & 0xFFFF)


def transpose(instruction: Instruction, lanes: Sequence[Thread]) -> None:
    """movmatrix."""
    target, source = instruction.operands
    held = [lane.read(source, "b32") for lane in lanes]
    matrix = {
        (lane // 4, lane % 4 * 2 + half): held[lane] >> (16 * half) & 0xFFFF
        for lane in range(32)
        for half in (0, 1)
    }
    for lane, thread in enumerate(lanes):
        row, column = lane // 4, lane % 4 * 2
        thread.write(target, matrix[column + 1, row] << 16 | matrix[column, row], "b32")


OPCODES: dict[str, Callable[[Instruction, Sequence[Thread]], None]] = {
    "mma": multiply,
    "wmma": wmma,
    "ldmatrix": load_tiles,
    "stmatrix": store_tiles,
    "movmatrix": transpose,
}
