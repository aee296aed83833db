"""A kernel as the code generator wants it: flat, its functions linked, cut into blocks."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from gpuwatch.errors import Location
from gpuwatch.ptx import flow, isa
from gpuwatch.ptx.model import Function, Immediate, Instruction, Module, Operand, Symbol, Variable
from gpuwatch.ptx.parameters import block_bytes, placed
from gpuwatch.ptx.types import type_bytes

CLOCKS = frozenset(
    (
        *("%clock", "%clock64", "%clock_hi"),
        *("%globaltimer", "%globaltimer_lo", "%globaltimer_hi"),
    )
)
"""Registers that show how far the cycles have come; a block is cut behind each read of one."""
CARRY = "%carry flag"
"""The carry flag, a register of type pred."""
CALL, RETURN, BARRIER, REDUCED, STACK, PRINT, ASSERT = (
    "$call", "$return", "$barrier", "$reduced", "$stack", "$print", "$assert",
)  # fmt: skip
"""Opcodes of instructions that linking puts in place of `call`, `ret`, `bar` and the like."""
RETURN_POINT = "%return:"
"""The register in which a call says where to return to."""
_FIRST_IS_SOURCE = frozenset([CALL, RETURN, BARRIER, STACK, ASSERT])
ALL_MEMBERS = Immediate("-1", -1)
"""The mask of all lanes."""
_MASK_LAST = frozenset(["shfl", "vote", "match", "redux", "elect", "bar"])


@dataclass(frozen=True, slots=True)
class Block(flow.Block):
    """`successors` are block indices, `len(blocks)` for the exit.

    A `joined` block only goes on where the one before it, its only predecessor, was cut. One
    that `meets` begins with an instruction at which lanes wait for each other.
    """

    joined: bool = False
    meets: bool = False


@dataclass(frozen=True, slots=True)
class CallSite:
    """`back` is the label to return to; `callees` are functions, `caller` is "" in the kernel."""

    back: str
    caller: str
    callees: tuple[str, ...]


@dataclass(slots=True)
class Program:
    """Registers have unique names. Offsets and sizes are bytes; `parameters` maps names to
    offsets in the parameter block."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    """Label to the index of the instruction behind it."""
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Label of each `.branchtargets` list to the labels in it."""
    shared: dict[str, int] = field(default_factory=dict)
    shared_bytes: int = 0
    dynamic: list[str] = field(default_factory=list)
    """Shared variables whose size the launch gives."""
    local: dict[str, int] = field(default_factory=dict)
    local_bytes: int = 0
    parameters: dict[str, int] = field(default_factory=dict)
    parameter_bytes: int = 0
    calls: list[CallSite] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    """The linked functions."""
    framed: dict[str, int] = field(default_factory=dict)
    """Local variables of recursive functions to their offsets in the function's frame."""
    frames: dict[str, int] = field(default_factory=dict)
    """Bytes of a recursive function's frame."""
    suffixes: dict[str, str] = field(default_factory=dict)
    """What the names of a function's registers end with."""
    stack_top: int = 0
    """Bytes of the largest frame of a recursive function."""
    stack_base: int = 0
    """Where in local memory the frames of recursive functions begin."""
    blocks: list[Block] = field(default_factory=list)
    live_in: list[frozenset[str]] = field(default_factory=list)
    live_out: list[frozenset[str]] = field(default_factory=list)
    spanning: frozenset[str] = frozenset()
    """Registers that are live between any two blocks, so lanes elsewhere may hold a value."""
    entry: int = 0
    """The block that the kernel begins with; those of functions come before it."""
    always_live: set[str] = field(default_factory=set)
    """Registers that no instruction names but whose values must last."""
    polling: frozenset[int] = frozenset()
    """Blocks that loops begin with which may wait for what another lane, warp or block does."""

    @property
    def polls(self) -> bool:
        """Whether a loop may wait for what another lane, warp or block does."""
        return bool(self.polling)

    def call_site(self, call: Instruction) -> CallSite:
        """Where a CALL leads and comes back to."""
        back = symbol_name(call)
        return next(site for site in self.calls if site.back == back)

    def block_at(self, label: str) -> int:
        """The block that begins at a label, `len(blocks)` at the end."""
        index = self.labels[label]
        return bisect_left(self.blocks, index, key=lambda block: block.first)

    @property
    def one_barrier(self) -> bool:
        """Whether all barriers are barrier 0 of all the block's threads, just to wait."""
        return all(
            i.tokens[1] == "sync" and i.operands == (Immediate("0", 0), Immediate("0", 0))
            for i in self.instructions
            if i.opcode == BARRIER
        )


def entry_label(function: str) -> str:
    """The label of a linked function's first instruction; "" is the kernel."""
    return f"$enter:{function}"


def place_variable(program: Program, variable: Variable) -> None:
    """Gives a shared or local variable its offset; other spaces belong to the arena."""
    size = type_bytes(variable.type) * max(1, variable.count)
    align = max(variable.align, type_bytes(variable.type))
    if variable.space == "shared" and variable.linkage == "extern":
        program.dynamic.append(variable.name)
    elif variable.space == "shared":
        program.shared[variable.name] = align_up(program.shared_bytes, align)
        program.shared_bytes = program.shared[variable.name] + size
    elif variable.space in ("local", "param"):
        program.local[variable.name] = align_up(program.local_bytes, align)
        program.local_bytes = program.local[variable.name] + size


def place_parameters(program: Program, function: Function) -> None:
    """Lays out the kernel's parameters."""
    program.parameters.update(
        (parameter.name, offset) for parameter, offset, _ in placed(function.parameters)
    )
    program.parameter_bytes = block_bytes(function.parameters)


def align_up(offset: int, unit: int) -> int:
    return -(-offset // unit) * unit


def location(module: Module, instruction: Instruction) -> Location:
    """The place of `instruction` in the PTX text."""
    return Location.in_text(module.source, module.text, instruction.start)


def written(instruction: Instruction) -> tuple[str, ...]:
    """Names of the registers that an instruction writes, the carry flag among them."""
    if instruction.opcode in _FIRST_IS_SOURCE:
        return ()
    names = isa.written(instruction)
    return (*names, CARRY) if "cc" in instruction.tokens else names


def read(instruction: Instruction) -> tuple[str, ...]:
    """Names of the registers that an instruction reads, special ones and carry included."""
    if instruction.opcode in _FIRST_IS_SOURCE:
        return tuple(isa.registers_of(instruction.operands))
    names = isa.read(instruction)
    return (*names, CARRY) if isa.reads_carry(instruction) else names


def meets(instruction: Instruction) -> bool:
    """Whether lanes wait at the instruction for the others that its member mask names."""
    tokens = instruction.tokens
    if tokens[0] in ("bar", "barrier"):
        return "warp" in tokens
    return "sync" in tokens and tokens[0] != BARRIER


def member_mask(instruction: Instruction) -> Operand | None:
    """The operand with the lanes that must come; None for all of the warp."""
    return instruction.operands[-1] if instruction.opcode in _MASK_LAST else None


def symbol_name(instruction: Instruction) -> str:
    """The name that is the first operand."""
    first = instruction.operands[0]
    assert isinstance(first, Symbol)
    return first.name
