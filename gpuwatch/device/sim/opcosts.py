"""What each PTX instruction is to the machine: class, machine instructions, dependent steps.

PTX is not what the GPU issues. 64-bit integers take several 32-bit instructions, division is a
short program, moves between registers and `cvta` vanish. The counts are those of the sequences
that ptxas emits, rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.device.sim.access import space_of
from gpuwatch.device.sim.program import BARRIER, CALL, CLOCKS, REDUCED, RETURN, STACK, read, written
from gpuwatch.ptx.model import Immediate, Instruction, Register, Symbol
from gpuwatch.ptx.types import TYPE_BITS


@dataclass(frozen=True, slots=True)
class Work:
    """`issued` machine instructions of a latency class of the profile, of which `steps` depend
    on one another, and `scaling` plain ones around them, each on the one before."""

    kind: str
    issued: int = 1
    steps: int = 1
    scaling: int = 0


_FREE = Work("alu", 0, 0)
_FLOAT_CLASS = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "f16x2": "fp16", "bf16": "fp16",
                "bf16x2": "fp16", "f32x2": "fp32"}  # fmt: skip
_ARITHMETIC = frozenset(["add", "sub", "mul", "fma", "mad"])
_COMPARED_BY_ALU = frozenset(["f32", "f16", "f16x2", "bf16", "bf16x2"])
_MEMORY = frozenset(["ld", "ldu", "st", "atom", "red"])
_CONTROL = frozenset(["bra", "ret", "exit", "call", "brx", "trap", CALL, RETURN])

_BY_OPCODE = {
    "cvta": _FREE,
    "popc": Work("bits"),
    "clz": Work("bits", 2, 2),
    "bfind": Work("bits"),
    "brev": Work("bits"),
    "shfl": Work("shuffle"),
    "vote": Work("vote"),
    "activemask": Work("vote"),
    "match": Work("vote", 2, 2),
    "redux": Work("shuffle", 2),
    "mma": Work("matrix"),
    "wmma": Work("matrix", 2),
    "ldmatrix": Work("shared"),
    BARRIER: Work("barrier", 1, 0),
    REDUCED: _FREE,
    STACK: _FREE,
    "membar": Work("special"),
    "fence": Work("special"),
    "bfe": Work("alu", 2, 2),
    "bfi": Work("alu", 2, 2),
    "dp4a": Work("multiply"),
    "sin": Work("transcendental"),
    "cos": Work("transcendental"),
    "tanh": Work("transcendental"),
}

_SCALED = frozenset(["ex2", "lg2"])

_PROGRAMS = {
    "div.f32": Work("fp32", 10, 8),
    "rcp.f32": Work("fp32", 11, 14),
    "sqrt.f32": Work("fp32", 10, 10),
    "rsqrt.f32": Work("fp32", 6, 5),
    "div.f64": Work("fp64", 49, 49),
    "rcp.f64": Work("fp64", 7, 6),
    "sqrt.f64": Work("fp64", 12, 10),
    "rsqrt.f64": Work("fp64", 9, 8),
    "div.32": Work("alu", 14, 30),
    "rem.32": Work("alu", 14, 30),
    "div.64": Work("alu", 60, 68),
    "rem.64": Work("alu", 61, 68),
    "div.16": Work("alu", 14, 10),
    "rem.16": Work("alu", 16, 12),
}
"""Software division and roots, by opcode and type or integer width."""


def work_of(instruction: Instruction) -> Work:
    """The machine's work for one instruction that is no memory access."""
    opcode, tokens = instruction.opcode, instruction.tokens
    if opcode == "mov":
        return _move(instruction)
    if opcode in _SCALED:
        return _transcendental(tokens, 1)
    if opcode in _BY_OPCODE:
        return _BY_OPCODE[opcode]
    if opcode in _CONTROL:
        return Work("branch")
    if opcode == "cvt":
        return _convert(tokens)
    kind = next((t for t in reversed(tokens) if t in TYPE_BITS), "b32")
    if opcode in ("div", "rcp", "sqrt", "rsqrt", "rem"):
        return _divide(opcode, tokens, kind)
    if kind in _FLOAT_CLASS:
        return _float(opcode, kind)
    return _integer(opcode, tokens, TYPE_BITS[kind])


def _move(instruction: Instruction) -> Work:
    source = instruction.operands[1]
    if isinstance(source, Register) and source.name in CLOCKS:
        return Work("alu", 2, 1)
    if isinstance(source, Register) and _is_special(source.name):
        return Work("special")
    constant = isinstance(source, Immediate | Symbol)
    return Work("alu") if constant else _FREE


JOINED_SUM = Work("multiply")
JOINED_PRODUCT = _FREE


def _is_special(name: str) -> bool:
    """Whether a register names the thread or the machine; block shape and grid are constants."""
    head = name.lstrip("%").split(".")[0]
    return head in ("tid", "ctaid", "laneid", "warpid", "smid")


def _convert(tokens: tuple[str, ...]) -> Work:
    to, source = [t for t in tokens if t in TYPE_BITS][-2:]
    if not {to, source} & _FLOAT_CLASS.keys():
        return Work("alu", 2 if TYPE_BITS[to] > TYPE_BITS[source] else 1)
    wide = max(TYPE_BITS[to], TYPE_BITS[source]) == 64
    return Work("convert64" if wide else "convert")


def _divide(opcode: str, tokens: tuple[str, ...], kind: str) -> Work:
    if "approx" in tokens or "full" in tokens:
        return _transcendental(tokens, 2 if opcode in ("div", "sqrt") else 1)
    key = f"{opcode}.{kind}"
    return _PROGRAMS[key] if key in _PROGRAMS else _PROGRAMS[f"{opcode}.{TYPE_BITS[kind]}"]


def _transcendental(tokens: tuple[str, ...], steps: int) -> Work:
    """Without `.ftz` subnormal numbers are scaled before and after."""
    scaled = "f32" in tokens and "ftz" not in tokens
    return Work("transcendental", steps, steps, 2 if scaled else 0)


def _float(opcode: str, kind: str) -> Work:
    if opcode not in _ARITHMETIC and kind in _COMPARED_BY_ALU:
        return Work("alu")
    return Work(_FLOAT_CLASS[kind])


def _integer(opcode: str, tokens: tuple[str, ...], bits: int) -> Work:
    if opcode in ("mul", "mad"):
        wide = "wide" in tokens
        return Work("multiply", 4, 3) if bits == 64 and not wide else Work("multiply")
    words = 2 if bits == 64 else 1
    # ptxas spreads 32-bit sums over both the integer and the multiply-add lanes.
    kind = "fp32" if opcode in ("add", "sub") and words == 1 else "alu"
    return Work(kind, words, words)


def address_sums(instructions: Sequence[Instruction]) -> frozenset[str]:
    """The products by `mul.wide` that a 64-bit sum takes: ptxas joins both into one instruction."""
    products = {
        register
        for i in instructions
        if i.opcode == "mul" and "wide" in i.tokens
        for register in written(i)
    }
    return frozenset(
        register for i in instructions if is_wide_sum(i) for register in read(i)
    ) & frozenset(products)


def is_wide_sum(instruction: Instruction) -> bool:
    tokens = instruction.tokens
    return instruction.opcode == "add" and bool({"s64", "u64"} & set(tokens))


@dataclass(frozen=True, slots=True)
class MemoryWork:
    """An access: `path` is "global", "shared" or "" for none (parameters, constants);
    `latency` the class until a result is there; `bytes` per lane."""

    path: str
    latency: str
    bytes: int


def memory_work(instruction: Instruction) -> MemoryWork | None:
    """None when the instruction is no access to memory."""
    if instruction.opcode not in _MEMORY:
        return None
    tokens, space = instruction.tokens, space_of(instruction)
    bits = next((TYPE_BITS[t] for t in reversed(tokens) if t in TYPE_BITS), 32)
    lanes = next((int(t[1:]) for t in tokens if t in ("v2", "v4", "v8")), 1)
    size = max(1, bits * lanes // 8)
    atomic = instruction.opcode in ("atom", "red")
    if space in ("param", "const"):
        return MemoryWork("", "alu", size)
    if space == "shared":
        return MemoryWork("shared", "atomic_shared" if atomic else "shared", size)
    return MemoryWork("global", "atomic" if atomic else "l1", size)
