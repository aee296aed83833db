"""What PTX texts of the TOML form may do: compute, in registers of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpuwatch.errors import Location, UserError
from gpuwatch.probe.language import SAVE_WORDS, SPECIAL_REGISTER, near
from gpuwatch.probe.model import Ptx, ScalarType
from gpuwatch.probe.walk import words
from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Instruction, Operand, Register, Symbol, numbered

COMPUTING = frozenset({
    "mov", "cvt", "add", "sub", "mul", "mad", "mul24", "mad24", "sad", "div", "rem", "abs", "neg",
    "min", "max", "fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh", "copysign",
    "testp", "popc", "clz", "bfind", "fns", "brev", "bfe", "bfi", "bmsk", "szext", "dp4a", "dp2a",
    "and", "or", "xor", "not", "cnot", "lop3", "shf", "shl", "shr", "prmt", "set", "setp", "selp",
    "slct", "isspacep", "cvta", "activemask", "match", "vote", "shfl", "redux", "elect",
})  # fmt: skip
"""Opcodes whose only effect is on their first operand (PTX ISA 9.0, "Instruction Set")."""

_STORES = "a probe writes memory with SAVE only"
_LOADS = "a probe reads registers only: IN1, IN2, IN3, OUT, ADDR"
_WAITS = "a probe cannot wait for other threads"
_LEAVES = "a probe runs from its first line to its last"
REASONS = {
    **dict.fromkeys(("st", "atom", "red", "cp", "stmatrix", "multimem", "sust", "sured"), _STORES),
    **dict.fromkeys(("ld", "ldu", "ldmatrix", "tex", "suld", "prefetch"), _LOADS),
    **dict.fromkeys(("bar", "barrier", "mbarrier", "membar", "fence", "nanosleep"), _WAITS),
    **dict.fromkeys(("bra", "brx", "call", "ret", "exit", "trap", "brkpt"), _LEAVES),
    **dict.fromkeys(("addc", "subc", "madc"), "the kernel may be using the carry flag"),
}
"""Why the opcodes that people try are refused."""

CONSTANTS = frozenset({"WARP_SZ"})

SYNC = frozenset({"match", "vote", "shfl", "redux", "elect"})
"""Opcodes in which the lanes of a mask meet. Each waits for the others, so the mask must be that
of the lanes that are here."""

DECLARED: dict[str, ScalarType] = {
    **dict.fromkeys(("b32", "u32", "b16", "u16"), "u32"),
    **dict.fromkeys(("s32", "s16"), "s32"),
    **dict.fromkeys(("b64", "u64", "f64"), "u64"),
    "s64": "s64",
    "f32": "f32",
    "pred": "pred",
}
"""Types of registers that texts declare, and as which such a register is saved. The bits of an
f64 are saved as they are."""

MAX_COUNT = 1 << 10
"""Registers that one declaration may make."""

_NAME = re.compile(r"%[A-Za-z_$][\w$]*", re.ASCII)


class OwnRegisters:
    """The registers that a probe may write: the program's, and those that its text declares."""

    def __init__(self, shared: Iterable[str], declarations: Iterable[tuple[str, str, int]]) -> None:
        self._shared = set(shared)
        self._plain = set(self._shared)
        self._counted: dict[str, int] = {}
        for _type, name, count in declarations:
            if count:
                self._counted[name] = count
            else:
                self._plain.add(name)

    def clashes(self, name: str, count: int) -> bool:
        """Whether a declaration makes a register that another one makes too."""
        if not count:
            return name in self._shared or self._is_numbered(name)
        return any(f"{name}{number}" in self._shared for number in range(min(count, MAX_COUNT)))

    def holds(self, name: str) -> bool:
        return name in self._plain or self._is_numbered(name)

    def _is_numbered(self, name: str) -> bool:
        family, index = numbered(name)
        return index < self._counted.get(family, 0)

    def advice(self, name: str) -> str:
        """What to do about a register that is none of these."""
        family, _ = numbered(name)
        if count := self._counted.get(family):
            return f"{family}<{count}> declares {family}0 to {family}{count - 1}"
        if name.startswith("%NR"):
            return "raise regs, the number of %NR registers, at the top of the file"
        if name.startswith("%"):
            return f"declare it (.reg .b64 {name};), or use %NR0 to %NRn"
        return near(name, self._plain) or "declare it"


def verify_ptx(ptx: Ptx, own: OwnRegisters) -> None:
    """Raises UserError for an instruction that does more than compute, writes a register that is
    not the probe's, or reads one that nobody declares."""
    lanes_here: set[str] = set()
    for instruction, at in _placed(ptx):
        _verify_opcode(instruction, at)
        _verify_mask(instruction, lanes_here, at)
        targets = _registers(instruction.operands[:1])
        for name in targets:
            if name != isa.SINK and not own.holds(name):
                raise UserError(
                    f"a probe cannot write {name}, which is not its own",
                    hint=own.advice(name),
                    at=at,
                )
        if instruction.operands and not targets:
            raise UserError(
                f"{instruction.opcode} needs a register to write", hint="name it first", at=at
            )
        guard = [instruction.guard.register] if instruction.guard else []
        for name in (*guard, *_registers(instruction.operands[1:])):
            if not own.holds(name) and not SPECIAL_REGISTER.fullmatch(name):
                raise UserError(f"register {name} is not declared", hint=own.advice(name), at=at)
        for symbol in _symbols(instruction.operands):
            if symbol not in SAVE_WORDS and symbol not in CONSTANTS:
                raise UserError(
                    f"a probe cannot use the name {symbol}",
                    hint=f"known words: {', '.join(sorted(SAVE_WORDS))}",
                    at=at,
                )


def verify_declarations(ptx: Ptx, own: OwnRegisters) -> None:
    """Raises UserError for a declaration that could be taken for something else, or twice."""
    for type_, name, count in ptx.declarations:
        rules = (
            (type_ in DECLARED, f"has type .{type_}", f"use one of {', '.join(DECLARED)}"),
            (_NAME.fullmatch(name), "has no name of a register", f"write %{name.lstrip('%')}"),
            (not _is_special(name), "is a register of the GPU", "rename it"),
            (
                not count or not name[-1].isdigit(),
                "ends in a digit and its registers in another",
                f"write {name}_<{count}>: ptxas takes all digits for the number",
            ),
            (count <= MAX_COUNT, f"makes {count} registers", f"declare at most {MAX_COUNT}"),
            (not own.clashes(name, count), "is declared already", "rename it"),
        )
        for kept, message, hint in rules:
            if not kept:
                raise UserError(f"{name} {message}", hint=hint, at=ptx.at)


def _is_special(name: str) -> bool:
    return any(SPECIAL_REGISTER.fullmatch(one) for one in (name, f"{name}.x"))


def used_words(ptx: Ptx) -> Iterator[tuple[str, Location | None]]:
    """Each ADDR, BYTES, OUT, IN1.. as the helper that it stands for, and where it stands."""
    for instruction, at in _placed(ptx):
        for word in words(instruction.operands):
            yield word, at


def _placed(ptx: Ptx) -> Iterator[tuple[Instruction, Location | None]]:
    places = ptx.places or (ptx.at,) * len(ptx.instructions)
    return zip(ptx.instructions, places, strict=True)


def _verify_mask(instruction: Instruction, lanes_here: set[str], at: Location | None) -> None:
    """A meeting of lanes names those that are here: what `activemask` gave, with no guard."""
    targets = set(_registers(instruction.operands[:1]))
    if instruction.opcode in SYNC:
        mask = _registers(instruction.operands[-1:])
        meets = "sync" in instruction.tokens and not instruction.guard
        if not meets or len(mask) != 1 or mask[0] not in lanes_here:
            raise UserError(
                f"a probe cannot run {'.'.join(instruction.tokens)} with these lanes",
                hint="let all lanes that are here meet: activemask.b32 %m; then .sync with the "
                "mask %m and no guard",
                at=at,
            )
    lanes_here -= targets
    if instruction.opcode == "activemask" and not instruction.guard:
        lanes_here |= targets


def _verify_opcode(instruction: Instruction, at: Location | None) -> None:
    opcode, carries = instruction.opcode, isa.writes_carry(instruction)
    if opcode in COMPUTING and not carries:
        return
    reason = REASONS["addc"] if carries else REASONS.get(opcode)
    raise UserError(
        f"a probe cannot run {'.'.join(instruction.tokens)}",
        hint=reason or "a probe computes in registers; " + near(opcode, COMPUTING),
        at=at,
    )


def _registers(operands: Iterable[Operand]) -> list[str]:
    return [leaf.name for leaf in isa.leaves(operands) if isinstance(leaf, Register)]


def _symbols(operands: Iterable[Operand]) -> list[str]:
    return [leaf.name for leaf in isa.leaves(operands) if isinstance(leaf, Symbol)]
