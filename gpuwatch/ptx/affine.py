"""Which registers change from lane to lane by a constant: value = uniform + coefficient * lane.

Holds for lanes that run an instruction together, in a launch whose block is known. What is not
proven counts as varying:

- An operation on uniform values is uniform; addition, and multiplication by literals, keep an
  affine value affine. What is read from memory, but for parameters, varies.
- Of a register that is written at several places all must agree, and no branch that parts the
  lanes of a warp may decide which of them took place: not where its ways meet again, nor in a
  loop that it is in (lanes may then be in different rounds).

A 32-bit index counts as affine also where it is widened: an access at which it wrapped between
two lanes of a warp would be of elements 2^32 apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpuwatch.ptx import flow, isa
from gpuwatch.ptx.model import (
    Address,
    Function,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
)

WARP = 32
Shape = tuple[int, int, int]
"""Threads of a block in x, y and z."""
Coefficients = dict[str, int | None]
"""By register; None for one that varies otherwise. A register that is missing is unknown."""

_UNIFORM_SPECIALS = ("%ctaid", "%nctaid", "%ntid", "%nwarpid", "%smid", "%nsmid", "%gridid")
_PURE = frozenset((
    *("add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "abs", "neg", "and", "or"),
    *("xor", "not", "cnot", "lop3", "shl", "shr", "shf", "bfe", "bfi", "bfind", "brev", "popc"),
    *("clz", "prmt", "selp", "slct", "setp", "set", "cvt", "cvta", "mov", "mul24", "mad24"),
    *("sad", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "copysign", "testp"),
    *("isspacep", "dp4a", "dp2a"),
))  # fmt: skip
"""Opcodes whose result follows from their operands alone."""
_WHOLE = {"u32": 32, "s32": 32, "b32": 32, "u64": 64, "s64": 64, "b64": 64}
_NOT_PLAIN = frozenset({"cc", "sat", "hi"})


def lane_strides(function: Function, block: Shape | None) -> Coefficients:
    """The coefficient of every register of a kernel launched with blocks of that shape; {} where
    names are shadowed in scopes, and of very large functions."""
    code = flow.Code.without_scopes(function)
    if block is None or code is None:
        return {}
    blocks = flow.basic_blocks(code)
    if len(blocks) > flow.MOST_BLOCKS:
        return {}
    parameters = frozenset(each.name for each in function.parameters)
    return _Solver(code, blocks, _lanes(block), parameters).solve()


def _lanes(block: Shape) -> Coefficients:
    """Of `%tid`: lanes go along x if a row of threads fills warps, or is all there is."""
    x, y, z = block
    found: Coefficients = {"%laneid": 1}
    along = x % WARP == 0 or y * z == 1
    for axis, size in zip("xyz", block, strict=True):
        if size == 1:
            found[f"%tid.{axis}"] = 0
        elif along:
            found[f"%tid.{axis}"] = 1 if axis == "x" else 0
    return found


class _Solver:
    """`parameters` are the names of the function's own, which all lanes are given alike."""

    def __init__(
        self,
        code: flow.Code,
        blocks: Sequence[flow.Block],
        lanes: Coefficients,
        parameters: frozenset[str],
    ) -> None:
        self._code = code
        self._lanes = lanes
        self._blocks = blocks
        self._given = parameters
        written = Counter(name for one in code.instructions for name in isa.written(one))
        several = {name for name, times in written.items() if times > 1}
        self._several = frozenset(several.union(self._writes(_in_loops(blocks))))
        self._live = flow.liveness(code, self._blocks, self._several)
        self._meeting = _meeting_points(self._blocks)
        self._mixed: set[str] = set()
        self._known: Coefficients = {}

    def solve(self) -> Coefficients:
        """From all registers unknown to the fixed point, again with what branches then mix."""
        while True:
            self._known = dict.fromkeys(self._mixed, None)
            while self._pass():
                pass
            mixed = self._mixed.union(*map(self._mixed_by, range(len(self._blocks))))
            if mixed == self._mixed:
                return self._known
            self._mixed = mixed

    def _pass(self) -> bool:
        changed = False
        for one in self._code.instructions:
            names = isa.written(one)
            if not names:
                continue
            value = self._result(one)
            if value is _UNKNOWN:
                continue
            for name in names:
                coefficient = None if name in self._mixed else value
                if self._known.get(name, _UNKNOWN) is _UNKNOWN:
                    self._known[name] = coefficient  # type: ignore[assignment]
                    changed = True
                elif self._known[name] is not None and self._known[name] != coefficient:
                    self._known[name] = None
                    changed = True
        return changed

    def _result(self, one: Instruction) -> int | _Unknown | None:
        if one.guard is not None:
            guard = self._of(Register(one.guard.register))
            if guard is _UNKNOWN:
                return _UNKNOWN
            if guard != 0:
                return None
        if one.tokens[0] == "ld":
            return 0 if self._reads_parameter(one) else None
        if one.tokens[0] not in _PURE:
            return None
        values = [self._of(operand) for operand in one.operands[1:]]
        if any(value is _UNKNOWN for value in values):
            return _UNKNOWN
        found = [value for value in values if not isinstance(value, _Unknown)]
        if all(value == 0 for value in found):
            return 0
        return _transfer(one, found)

    def _reads_parameter(self, load: Instruction) -> bool:
        """Whether it loads one value that the function was given."""
        match load.operands[1]:
            case Address(Symbol(name)) if "param" in load.tokens:
                return name in self._given and len(isa.written(load)) == 1
        return False

    def _of(self, operand: Operand) -> int | _Unknown | None:
        match operand:
            case Immediate() | Symbol():
                return 0
            case Negated(register):
                value = self._of(register)
                return value if value in (0, _UNKNOWN) else None
            case Register(name) if name in self._known:
                return self._known[name]
            case Register(name) if name in self._lanes:
                return self._lanes[name]
            case Register(name) if name.partition(".")[0] in _UNIFORM_SPECIALS:
                return 0
            case Register(name) if name.startswith(("%tid", "%lanemask", "%clock", "%globaltimer",
                                                    "%warpid", "%pm", "%env")):  # fmt: skip
                return None
            case Register(_):
                return _UNKNOWN
        names = isa.registers_of([operand])
        values = [self._of(Register(name)) for name in names]
        if _UNKNOWN in values:
            return _UNKNOWN
        return 0 if all(value == 0 for value in values) else None

    def _mixed_by(self, number: int) -> frozenset[str]:
        """Registers of which lanes may hold values from different writes because the branch at
        the block's end parts them: written on a way from it, and alive where ways meet."""
        block = self._blocks[number]
        last = self._code.instructions[block.end - 1]
        following = [one for one in block.successors if one < len(self._blocks)]
        if len(following) < 2 or not isa.is_branch(last) or self._is_uniform(last):
            return frozenset()
        meeting = self._meeting[number]
        ways = [self._way(start, {number, meeting}) for start in following]
        met = Counter(one for way in ways for one in way)
        joined = {one for one, times in met.items() if times > 1 and one != number}
        joined |= {meeting} if meeting < len(self._blocks) else set()
        live = frozenset[str]().union(*map(self._live.live_in, joined))
        return self._written_in(set(met) - {meeting}) & live

    def _is_uniform(self, branch: Instruction) -> bool:
        return all(self._of(Register(name)) == 0 for name in isa.read(branch))

    def _way(self, start: int, ends: set[int]) -> set[int]:
        """Blocks that control can come to from `start`, up to those of `ends`."""
        found, waiting = {start}, [start]
        while waiting:
            number = waiting.pop()
            if number in ends:
                continue
            for one in self._blocks[number].successors:
                if one < len(self._blocks) and one not in found:
                    found.add(one)
                    waiting.append(one)
        return found

    def _written_in(self, blocks: set[int]) -> frozenset[str]:
        return self._several.intersection(self._writes(blocks))

    def _writes(self, blocks: set[int]) -> Iterator[str]:
        for number in blocks:
            block = self._blocks[number]
            for one in self._code.instructions[block.first : block.end]:
                yield from isa.written(one)


def _in_loops(blocks: Sequence[flow.Block]) -> set[int]:
    """Blocks that may be on a cycle: any cycle is within the spans of the edges that lead back."""
    found: set[int] = set()
    for number, block in enumerate(blocks):
        for start in block.successors:
            found.update(range(start, number + 1))
    return found


def _meeting_points(blocks: Sequence[flow.Block]) -> list[int]:
    """Of each block the nearest one that all ways from it come to, their number for the exit.
    Lanes that a guarded exit takes out come nowhere."""
    count = len(blocks)
    following = [
        [one for one in block.successors if one < count or len(block.successors) == 1]
        for block in blocks
    ]
    everything = (1 << (count + 1)) - 1
    after = [everything] * count + [1 << count]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(count)):
            common = everything
            for one in following[number]:
                common &= after[one]
            common |= 1 << number
            if common != after[number]:
                after[number], changed = common, True
    points = []
    for number in range(count):
        rest = after[number] & ~(1 << number)
        nearest, most = count, 0
        while rest:
            one = (rest & -rest).bit_length() - 1
            rest &= rest - 1
            if after[one].bit_count() > most:
                nearest, most = one, after[one].bit_count()
        points.append(nearest)
    return points


@dataclass(frozen=True, slots=True)
class _Unknown:
    """Of a register of which nothing was seen yet."""


_UNKNOWN = _Unknown()


def _transfer(one: Instruction, values: Sequence[int | None]) -> int | None:
    """Coefficient of a result of which some operand is not uniform."""
    rule = _RULES.get(one.tokens[0])
    types = [token for token in one.tokens if token in _WHOLE]
    named = [token for token in one.tokens[1:] if token[0] in "usbf" and token[1:].isdigit()]
    if rule is None or not types or types != named or _NOT_PLAIN.intersection(one.tokens):
        return None
    result = rule(one, values)
    if result is None:
        return None
    bits = 64 if "wide" in one.tokens else _WHOLE[types[0]]
    half = 1 << (bits - 1)
    return (result + half) % (2 * half) - half


def _added(one: Instruction, values: Sequence[int | None]) -> int | None:
    left, right = values[0], values[1]
    if left is None or right is None:
        return None
    return left - right if one.tokens[0] == "sub" else left + right


def _multiplied(one: Instruction, values: Sequence[int | None]) -> int | None:
    """With a literal as one factor; `mad` adds its third operand."""
    product = _product(one.operands[1:3], values)
    if one.tokens[0] == "mul" or product is None:
        return product
    return None if values[2] is None else product + values[2]


def _product(factors: Sequence[Operand], values: Sequence[int | None]) -> int | None:
    if values[0] == 0 and values[1] == 0:
        return 0
    for factor, value in ((factors[0], values[1]), (factors[1], values[0])):
        if isinstance(factor, Immediate) and isinstance(factor.value, int) and value is not None:
            return factor.value * value
    return None


def _shifted(one: Instruction, values: Sequence[int | None]) -> int | None:
    by = one.operands[2]
    if values[0] is None or not isinstance(by, Immediate) or not isinstance(by.value, int):
        return None
    return values[0] << by.value if 0 <= by.value < WARP else None


def _negated(_one: Instruction, values: Sequence[int | None]) -> int | None:
    return None if values[0] is None else -values[0]


def _kept(_one: Instruction, values: Sequence[int | None]) -> int | None:
    return values[0] if len(values) == 1 else None


_RULES: dict[str, Callable[[Instruction, Sequence[int | None]], int | None]] = {
    "add": _added,
    "sub": _added,
    "mul": _multiplied,
    "mad": _multiplied,
    "shl": _shifted,
    "neg": _negated,
    "mov": _kept,
    "cvt": _kept,
    "cvta": _kept,
}
