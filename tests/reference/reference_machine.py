"""Threads, warps, barriers and memory of the reference interpreter.

A thread is a generator. It runs until it needs others: at a barrier or a warp instruction it
yields what it wants, and goes on when all threads of its block or warp have come. Warp
instructions must be reached by every thread of a full warp.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from reference_kernel import GLOBAL_BASE, Kernel, Memory, read_kernel
from reference_matrix import OPCODES as MATRIX_OPCODES
from reference_warp import OPCODES as WARP_OPCODES
from reference_warp import SOURCE_TYPES
from scalar_opcodes import (
    PACKED,
    WIDTHS,
    Form,
    combined,
    compared,
    compute,
    converted,
    has_property,
    holds,
    packed,
    signed,
    truth_pattern,
)

from gpuwatch.ptx.model import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)

WARP = 32
Request = tuple[str, Instruction, list[int], "_Thread"]
Thread = Generator[Request, object, None]


def execute(
    text: str, grid: int, block: int, buffers: list[bytes], shared_bytes: int = 4096
) -> list[bytes]:
    """Launches the text's entry with one pointer parameter per buffer; the buffers afterwards."""
    kernel = read_kernel(text)
    memory = Memory(map(bytearray, buffers), GLOBAL_BASE)
    for index in range(grid):
        shared = Memory([bytearray(shared_bytes)], 0)
        threads = [_Thread(kernel, memory, shared, index, grid, t, block) for t in range(block)]
        _run_block([thread.run() for thread in threads])
    return [bytes(window) for window in memory.windows]


def _run_block(threads: list[Thread]) -> None:
    requests = {k: request for k, t in enumerate(threads) if (request := _next(t, None))}
    while requests:
        group = _ready(requests, len(threads))
        name = requests[group[0]][0]
        answers: list[object] = [None] * len(group)
        if name in MATRIX_OPCODES:
            MATRIX_OPCODES[name](requests[group[0]][1], [requests[k][3] for k in group])
        elif name != "bar":
            operands = [requests[k][2] for k in group]
            answers = list(WARP_OPCODES[name](requests[group[0]][1], operands))
        for k, answer in zip(group, answers, strict=True):
            del requests[k]
            if request := _next(threads[k], answer):
                requests[k] = request


def _next(thread: Thread, answer: object) -> Request | None:
    try:
        return thread.send(answer)
    except StopIteration:
        return None


def _ready(requests: dict[int, Request], count: int) -> list[int]:
    """The threads that can go on: a whole warp at one instruction, or all at a barrier."""
    for first in range(0, count, WARP):
        warp = [k for k in range(first, first + WARP) if k in requests]
        names = {(requests[k][0], requests[k][1].start) for k in warp}
        if len(warp) == WARP and len(names) == 1 and names.pop()[0] != "bar":
            return warp
    assert all(request[0] == "bar" for request in requests.values()), "a warp is not complete"
    return list(requests)


class _Thread:
    """Registers of one thread and what it does at each instruction."""

    def __init__(
        self,
        kernel: Kernel,
        memory: Memory,
        shared: Memory,
        block_index: int,
        grid: int,
        index: int,
        block: int,
    ) -> None:
        self._kernel = kernel
        self._registers = dict.fromkeys(kernel.widths, 0)
        self._carry = 0
        self._spaces = {"global": memory, "shared": shared}
        self._spaces["local"] = Memory([bytearray(4096)], 0)
        parameters = bytearray()
        for k in range(len(memory.windows)):
            parameters += memory.address(k).to_bytes(8, "little")
        self._spaces["param"] = Memory([parameters], 0)
        self._specials = {
            "%tid.x": index,
            "%ntid.x": block,
            "%ctaid.x": block_index,
            "%nctaid.x": grid,
            "%laneid": index % WARP,
        }

    def run(self) -> Thread:
        place = 0
        while place < len(self._kernel.code):
            instruction = self._kernel.code[place]
            place += 1
            if not self._is_chosen(instruction):
                continue
            opcode = instruction.opcode
            if opcode in ("ret", "exit"):
                return
            if opcode == "bra":
                target = instruction.operands[0]
                assert isinstance(target, Symbol)
                place = self._kernel.labels[target.name]
            elif opcode == "bar":
                yield ("bar", instruction, [], self)
            elif opcode in MATRIX_OPCODES:
                yield (opcode, instruction, [], self)
            elif opcode in WARP_OPCODES:
                answer = yield (opcode, instruction, self._warp_operands(instruction), self)
                assert isinstance(answer, tuple)
                self._write_pair(instruction.operands[0], *answer)
            else:
                self._step(instruction)

    def _step(self, instruction: Instruction) -> None:
        tokens = instruction.tokens
        if "cc" in tokens or tokens[0] in ("addc", "subc", "madc"):
            self._carrying(instruction)
        else:
            _STEPS.get(tokens[0], _Thread._compute)(self, instruction)

    def _carrying(self, instruction: Instruction) -> None:
        """add, sub and mad with the carry flag, which holds the borrow of a subtraction."""
        tokens = instruction.tokens
        form = Form(tokens, tokens[-1])
        target, *sources = instruction.operands
        *factors, a, b = (self.read(source, form.kind) for source in sources)
        if tokens[0].startswith("mad"):
            product = compute(Form(("mul", *tokens[1:]), form.kind), [factors[0], a])
            a = product & (1 << form.width) - 1
        carry = self._carry if tokens[0].endswith("c") else 0
        total = a - b - carry if tokens[0].startswith("sub") else a + b + carry
        if "cc" in tokens:
            self._carry = int(not 0 <= total < 1 << form.width)
        self.write(target, total, form.kind)

    def _is_chosen(self, instruction: Instruction) -> bool:
        guard = instruction.guard
        return guard is None or bool(self._registers[guard.register]) != guard.negated

    def _warp_operands(self, instruction: Instruction) -> list[int]:
        kind = SOURCE_TYPES.get(instruction.opcode, instruction.tokens[-1])
        first, *rest = instruction.operands[1:]
        return [self.read(first, kind), *(self.read(operand, "b32") for operand in rest)]

    def read(self, operand: Operand, kind: str) -> int:
        mask = (1 << WIDTHS[kind]) - 1
        if isinstance(operand, Immediate):
            return _immediate(operand, kind) & mask
        if isinstance(operand, Negated):
            return 1 - self._registers[operand.register.name]
        if isinstance(operand, Symbol):
            return self._kernel.variables[operand.name][1] + operand.offset
        assert isinstance(operand, Register)
        if operand.name in self._specials:
            return self._specials[operand.name]
        return self._registers[operand.name] & mask

    def write(self, operand: Operand, value: int, kind: str) -> None:
        """Cuts a result to its type, then extends it to the register by the type's sign."""
        assert isinstance(operand, Register)
        if operand.name == "_":
            return
        width = WIDTHS[kind]
        value &= (1 << width) - 1
        if kind.startswith("s"):
            value = signed(value, width)
        self._registers[operand.name] = value & (1 << self._kernel.widths[operand.name]) - 1

    def _write_pair(self, target: Operand, value: int, second: bool) -> None:
        if isinstance(target, Pair):
            self.write(target.second, int(second), "pred")
            target = target.first
        assert isinstance(target, Register)
        self.write(target, value, f"b{self._kernel.widths[target.name]}"
                    if self._kernel.widths[target.name] > 1 else "pred")  # fmt: skip

    def _compute(self, instruction: Instruction) -> None:
        tokens = instruction.tokens
        kind = next(t for t in reversed(tokens) if t in WIDTHS)
        form = Form(tokens, kind)
        target, *sources = instruction.operands
        kinds = [kind] * len(sources)
        for place in _OF_32_BITS.get(tokens[0], ()):
            kinds[place] = "b32"
        result_kind = kind
        if form.has("wide"):
            result_kind = kind[0] + str(2 * form.width)
            kinds[2:] = [result_kind] * len(kinds[2:])
        if tokens[0] in _GIVES_32_BITS:
            result_kind = "u32"
        operands = [self.read(s, k) for s, k in zip(sources, kinds, strict=True)]
        self.write(target, compute(form, operands), result_kind)

    def _compare(self, instruction: Instruction) -> None:
        tokens = instruction.tokens
        kind = tokens[-1]
        target, a, b, *rest = instruction.operands
        other = self.read(rest[0], "pred") if rest else 0
        truths = compared(Form(tokens, kind), self.read(a, kind), self.read(b, kind))
        joined = [combined(Form(tokens, kind), truth, other) for truth in truths]
        if tokens[0] == "set":
            to = next(t for t in tokens if t in WIDTHS)
            if kind in PACKED and to not in PACKED:
                to = "u16x2"
            self.write(target, truth_pattern(to, joined), to)
        elif isinstance(target, Pair):
            second = joined[-1]
            if len(joined) == 1:
                second = combined(Form(tokens, kind), not truths[0], other)
            self.write(target.first, joined[0], "pred")
            self.write(target.second, second, "pred")
        else:
            self.write(target, joined[0], "pred")

    def _test(self, instruction: Instruction) -> None:
        form = Form(instruction.tokens, instruction.tokens[-1])
        target, source = instruction.operands
        self.write(target, has_property(form, self.read(source, form.kind)), "pred")

    def _convert(self, instruction: Instruction) -> None:
        to, come = [t for t in instruction.tokens if t in WIDTHS][:2]
        form = Form(instruction.tokens, to)
        target, *sources = instruction.operands
        if form.has("pack"):
            kinds = (come, come, "b32")
            given = [self.read(s, k) for s, k in zip(sources, kinds[: len(sources)], strict=True)]
            self.write(target, packed(form, to, come, *given), "b32")
            return
        self.write(target, converted(form, to, come, *(self.read(s, come) for s in sources)), to)

    def _select(self, instruction: Instruction) -> None:
        kind = instruction.tokens[-1]
        target, a, b, choice = instruction.operands
        self.write(target, self.read(a if self.read(choice, "pred") else b, kind), kind)

    def _select_by_sign(self, instruction: Instruction) -> None:
        kind, chooser = instruction.tokens[-2:]
        target, a, b, c = instruction.operands
        at_least_zero = holds("ge", Form((), chooser), self.read(c, chooser), 0)
        self.write(target, self.read(a if at_least_zero else b, kind), kind)

    def _move(self, instruction: Instruction) -> None:
        kind = instruction.tokens[-1]
        target, source = instruction.operands
        if isinstance(target, Vector):
            part = WIDTHS[kind] // len(target.items)
            whole = self.read(source, kind)
            for k, item in enumerate(target.items):
                self.write(item, whole >> (k * part), f"b{part}")
        elif isinstance(source, Vector):
            part = WIDTHS[kind] // len(source.items)
            pieces = [self.read(item, f"b{part}") for item in source.items]
            self.write(target, sum(p << (k * part) for k, p in enumerate(pieces)), kind)
        else:
            self.write(target, self.read(source, kind), kind)

    def place(self, instruction: Instruction, operand: Operand) -> tuple[Memory, int]:
        parts = (token.split("::")[0] for token in instruction.tokens)
        space = next(part for part in parts if part in self._spaces)
        assert isinstance(operand, Address)
        base = operand.base
        if isinstance(base, Symbol) and base.name in self._kernel.parameters:
            return self._spaces[space], self._kernel.parameters[base.name] + operand.offset
        return self._spaces[space], self.read(base, "b64") + operand.offset

    def _copy(self, instruction: Instruction) -> None:
        """cp.async: done at once; waiting for copies then has nothing to do."""
        if "shared" not in instruction.tokens:
            return
        target, source, size, *rest = instruction.operands
        assert isinstance(target, Address) and isinstance(source, Address)
        count = self.read(size, "b32")
        given = min(count, self.read(rest[0], "b32")) if rest else count
        there = self._spaces["shared"], self.read(target.base, "b64") + target.offset
        here = self._spaces["global"], self.read(source.base, "b64") + source.offset
        value = here[0].read(here[1], count) & (1 << 8 * given) - 1
        there[0].write(there[1], count, value)

    def _load(self, instruction: Instruction) -> None:
        kind = instruction.tokens[-1]
        size = WIDTHS[kind] // 8
        target, source = instruction.operands
        memory, address = self.place(instruction, source)
        for k, item in enumerate(_items(target)):
            self.write(item, memory.read(address + k * size, size), kind)

    def _store(self, instruction: Instruction) -> None:
        kind = instruction.tokens[-1]
        size = WIDTHS[kind] // 8
        target, source = instruction.operands
        memory, address = self.place(instruction, target)
        for k, item in enumerate(_items(source)):
            memory.write(address + k * size, size, self.read(item, kind))

    def _atomic(self, instruction: Instruction) -> None:
        kind, tokens = instruction.tokens[-1], instruction.tokens
        size = WIDTHS[kind] // 8
        results = instruction.operands[: instruction.opcode == "atom"]
        place, *sources = instruction.operands[len(results) :]
        memory, address = self.place(instruction, place)
        name = next(t for t in tokens if t in _ATOMIC)
        flushing = kind == "f32" and "global" in tokens
        form = Form((name, "ftz") if flushing else (name,), kind)
        for k, items in enumerate(zip(*(_items(source) for source in sources), strict=True)):
            old = memory.read(address + k * size, size)
            new = _ATOMIC[name](form, old, [self.read(item, kind) for item in items])
            memory.write(address + k * size, size, new & (1 << WIDTHS[kind]) - 1)
            for target in results:
                self.write(_items(target)[k], old, kind)


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _immediate(operand: Immediate, kind: str) -> int:
    """Integers, and the bit patterns of `0f` and `0d`; no other literals are used."""
    assert isinstance(operand.value, int) and (operand.is_float or not kind.startswith("f"))
    return operand.value


_OF_32_BITS = {"shl": (1,), "shr": (1,), "bfe": (1, 2), "bfi": (2, 3), "shf": (0, 1, 2),
               "lop3": (3,)} | dict.fromkeys(
    (f"{name}{n}" for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg", "vset")
     for n in (2, 4)), (2,))  # fmt: skip
"""Operands that are 32 bits wide whatever the type says."""
_GIVES_32_BITS = ("popc", "clz", "bfind")

_Update = Callable[[Form, int, list[int]], int]


def _ordinary(form: Form, old: int, values: list[int]) -> int:
    return compute(form, [old, *values])


_ATOMIC: dict[str, _Update] = {
    **dict.fromkeys(("add", "and", "or", "xor", "min", "max"), _ordinary),
    "exch": lambda _form, _old, values: values[0],
    "cas": lambda _form, old, values: values[1] if old == values[0] else old,
    "inc": lambda _form, old, values: 0 if old >= values[0] else old + 1,
    "dec": lambda _form, old, values: values[0] if old == 0 or old > values[0] else old - 1,
}

_STEPS: dict[str, Callable[[_Thread, Instruction], None]] = {
    "setp": _Thread._compare,
    "set": _Thread._compare,
    "testp": _Thread._test,
    "cvt": _Thread._convert,
    "selp": _Thread._select,
    "slct": _Thread._select_by_sign,
    "mov": _Thread._move,
    "cvta": _Thread._move,
    "ld": _Thread._load,
    "st": _Thread._store,
    "atom": _Thread._atomic,
    "red": _Thread._atomic,
    "cp": _Thread._copy,
}
