"""What an instruction writes, reads and where it leads (PTX ISA 9.0, "Instruction Set").

By the grammar of PTX the first operand is the destination where it is a register, a vector, a
pair `d|p` or the result list of a call. `_SOURCES_ONLY` holds the opcodes whose first operand is
a source although it looks like a destination.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch.ptx.access import AccessKind, MemoryAccess, memory_access
from gpuwatch.ptx.model import (
    Address,
    Group,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)

__all__ = [
    "AccessKind",
    "MemoryAccess",
    "branch_targets",
    "called",
    "ends_block",
    "falls_through",
    "is_branch",
    "is_exit",
    "leaves",
    "memory_access",
    "read",
    "reads_carry",
    "registers_of",
    "writes_carry",
    "written",
]

Leaf = Register | Immediate | Symbol
SINK = "_"
"""The destination that drops what is written to it."""

_SOURCES_ONLY = frozenset(
    (
        *("st", "red", "sust", "sured", "stmatrix", "prefetch", "prefetchu", "discard"),
        *("applypriority", "cp", "membar", "fence", "bra", "brx", "ret", "exit", "trap", "brkpt"),
        *("nanosleep", "pmevent", "griddepcontrol", "setmaxnreg", "stackrestore", "tensormap"),
    )
)
_FORMS_WITH_RESULT = {
    "bar": frozenset({"red"}),
    "barrier": frozenset({"red"}),
    "mbarrier": frozenset({"arrive", "arrive_drop", "test_wait", "try_wait", "pending_count"}),
    "wmma": frozenset({"load", "mma"}),
    "wgmma": frozenset({"mma_async"}),
    "multimem": frozenset({"ld_reduce"}),
    "tcgen05": frozenset({"ld"}),
    "clusterlaunchcontrol": frozenset({"query_cancel"}),
}
"""Opcodes of which only the forms with one of these tokens write their first operand."""

_BRANCHES = frozenset({"bra", "brx"})
_EXITS = frozenset({"ret", "exit", "trap"})
ENDS = _BRANCHES | _EXITS
"""Opcodes behind which control may go elsewhere than to the next instruction."""
_CARRY_READERS = frozenset({"addc", "subc", "madc"})

_SPECIAL_VECTORS = frozenset(
    (
        *("%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid"),
        *("%cluster_ctaid", "%cluster_nctaid"),
    )
)
_COMPONENTS = frozenset((*"xyzwrgba", "b0", "b1", "b2", "b3", "h0", "h1"))


def written(instruction: Instruction) -> tuple[str, ...]:
    """Names of the registers that the instruction writes, in the order of its text.

    A guard makes every write conditional. Components (`%v.x`, `%r1.h0`) count as their register;
    the sink `_` and `.param` variables are left out.
    """
    operands = instruction.operands
    if not operands or not _has_destination(instruction, operands[0]):
        return ()
    return tuple(registers_of(operands[:1]))


def read(instruction: Instruction) -> tuple[str, ...]:
    """Names of the registers that the instruction reads: sources, bases of addresses, guard.

    Special registers are included. A destination that is also a source (the accumulator of
    `wgmma.mma_async`, a register of which a component is written) is included too.
    """
    operands = instruction.operands
    if operands and _has_destination(instruction, operands[0]):
        again = operands[:1] if _accumulates(instruction) else _partly_written(operands[0])
        operands = (*again, *operands[1:])
    names = registers_of(operands)
    if instruction.guard is not None:
        names.append(instruction.guard.register)
    return tuple(names)


def _has_destination(instruction: Instruction, first: Operand) -> bool:
    """Whether `first`, the instruction's first operand, is written."""
    opcode = instruction.tokens[0]
    if opcode == "call":
        return isinstance(first, Group)
    if opcode in _SOURCES_ONLY or not isinstance(first, Register | Vector | Pair):
        return False
    forms = _FORMS_WITH_RESULT.get(opcode)
    return forms is None or not forms.isdisjoint(instruction.tokens)


def _accumulates(instruction: Instruction) -> bool:
    return instruction.tokens[:2] == ("wgmma", "mma_async")


def _partly_written(first: Operand) -> tuple[Operand, ...]:
    """The operand, where it names a component: the rest of its register stays as it was."""
    if isinstance(first, Register) and _register_name(first.name) != first.name:
        return (first,)
    return ()


def registers_of(operands: Iterable[Operand]) -> list[str]:
    """Names of all registers in operands, special ones included, in the order of the text."""
    return [
        _register_name(one.name)
        for one in leaves(operands)
        if isinstance(one, Register) and one.name != SINK
    ]


def leaves(operands: Iterable[Operand]) -> list[Leaf]:
    """What operands are made of, in the order of the text; the sink `_` is a register."""
    found: list[Leaf] = []
    _collect(operands, found)
    return found


def _collect(operands: Iterable[Operand], found: list[Leaf]) -> None:
    for operand in operands:
        if isinstance(operand, Leaf):
            found.append(operand)
        else:
            _collect(_parts(operand), found)


def _parts(operand: Address | Vector | Group | Pair | Negated) -> tuple[Operand, ...]:
    match operand:
        case Address(base):
            return (base,)
        case Pair(first, second):
            return first, second
        case Negated(register):
            return (register,)
        case Vector(items, predicate) if predicate is not None:
            return (*items, predicate)
    return operand.items


def _register_name(name: str) -> str:
    """The register that `name` is, or is a component of; `%tid.x` is a register of its own."""
    if "." not in name:
        return name
    register, _, component = name.partition(".")
    if register in _SPECIAL_VECTORS or component not in _COMPONENTS:
        return name
    return register


def is_branch(instruction: Instruction) -> bool:
    """Whether the instruction is a `bra` or a `brx.idx`."""
    return instruction.tokens[0] in _BRANCHES


def is_exit(instruction: Instruction) -> bool:
    """Whether the instruction leaves the function: `ret`, `exit`, `trap`."""
    return instruction.tokens[0] in _EXITS


def ends_block(instruction: Instruction) -> bool:
    """Whether control may go elsewhere than to the next instruction; calls come back."""
    return instruction.tokens[0] in ENDS


def falls_through(instruction: Instruction) -> bool:
    """Whether control may go to the next instruction."""
    return instruction.guard is not None or instruction.tokens[0] not in ENDS


def branch_targets(instruction: Instruction) -> str:
    """The label of a `bra`, or of the `.branchtargets` list of a `brx.idx`; "" for others."""
    if not is_branch(instruction) or not instruction.operands:
        return ""
    last = instruction.operands[-1]
    return last.name if isinstance(last, Symbol | Register) else ""


def called(instruction: Instruction) -> Symbol | Register | None:
    """What a `call` calls: a function's name, or the register of an indirect call."""
    if instruction.tokens[0] != "call":
        return None
    for operand in instruction.operands:
        if isinstance(operand, Symbol | Register):
            return operand
    return None


def writes_carry(instruction: Instruction) -> bool:
    """Whether the instruction sets the carry flag, as `add.cc` and `madc.hi.cc` do."""
    return "cc" in instruction.tokens


def reads_carry(instruction: Instruction) -> bool:
    """Whether the instruction reads the carry flag: `addc`, `subc`, `madc`."""
    return instruction.tokens[0] in _CARRY_READERS
