"""What an instruction of one thread alone does to its registers and memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Protocol

import reference_mbarrier
import reference_thread
from reference_memory import WINDOWS, Memory
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
    truth_pattern,
)

from gpuwatch.ptx.model import Address, Instruction, Operand, Pair, Vector


class Thread(reference_thread.Thread, Protocol):
    carry: int

    def address(self, operand: Address) -> int: ...
    def space(self, name: str) -> Memory: ...


form_of = cache(Form)


def items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def step(thread: Thread, instruction: Instruction) -> None:
    tokens = instruction.tokens
    if "cc" in tokens or tokens[0] in ("addc", "subc", "madc"):
        _carrying(thread, instruction)
    elif tokens[0] not in _NOTHING_TO_DO:
        _STEPS.get(tokens[0], _compute)(thread, instruction)


_NOTHING_TO_DO = frozenset({"membar", "fence", "nanosleep", "prefetch", "prefetchu", "pmevent",
                            "discard", "applypriority", "griddepcontrol"})  # fmt: skip
"""Memory is in order and has no caches, so these show in no value."""


def _carrying(thread: Thread, instruction: Instruction) -> None:
    """add, sub and mad with the carry flag, which holds the borrow of a subtraction."""
    tokens = instruction.tokens
    form = form_of(tokens, tokens[-1])
    target, *sources = instruction.operands
    *factors, a, b = (thread.read(source, form.kind) for source in sources)
    if tokens[0].startswith("mad"):
        product = compute(form_of(("mul", *tokens[1:]), form.kind), [factors[0], a])
        a = product & (1 << form.width) - 1
    carry = thread.carry if tokens[0].endswith("c") else 0
    total = a - b - carry if tokens[0].startswith("sub") else a + b + carry
    if "cc" in tokens:
        thread.carry = int(not 0 <= total < 1 << form.width)
    thread.write(target, total, form.kind)


@cache
def _types(tokens: tuple[str, ...], count: int) -> tuple[Form, list[str], str]:
    """Of an opcode with `count` sources: its form, the sources' types and the result's."""
    kind = next(t for t in reversed(tokens) if t in WIDTHS)
    form = Form(tokens, kind)
    kinds = [kind] * count
    for place in _OF_32_BITS.get(tokens[0], ()):
        kinds[place] = "b32"
    result_kind = kind
    if form.has("wide"):
        result_kind = kind[0] + str(2 * form.width)
        kinds[2:] = [result_kind] * len(kinds[2:])
    if tokens[0] in _GIVES_32_BITS:
        result_kind = "u32"
    return form, kinds, result_kind


def _compute(thread: Thread, instruction: Instruction) -> None:
    target, *sources = instruction.operands
    form, kinds, result_kind = _types(instruction.tokens, len(sources))
    operands = [thread.read(s, k) for s, k in zip(sources, kinds, strict=True)]
    thread.write(target, compute(form, operands), result_kind)


_OF_32_BITS = {"shl": (1,), "shr": (1,), "bfe": (1, 2), "bfi": (2, 3), "shf": (0, 1, 2),
               "lop3": (3,)} | dict.fromkeys(
    (f"{name}{n}" for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg", "vset")
     for n in (2, 4)), (2,))  # fmt: skip
"""Operands that are 32 bits wide whatever the type says."""
_GIVES_32_BITS = ("popc", "clz", "bfind")


def _compare(thread: Thread, instruction: Instruction) -> None:
    tokens = instruction.tokens
    kind = tokens[-1]
    form = form_of(tokens, kind)
    target, a, b, *rest = instruction.operands
    other = thread.read(rest[0], "pred") if rest else 0
    truths = compared(form, thread.read(a, kind), thread.read(b, kind))
    joined = [combined(form, truth, other) for truth in truths]
    if tokens[0] == "set":
        to = next(t for t in tokens if t in WIDTHS)
        if kind in PACKED and to not in PACKED:
            to = "u16x2"
        thread.write(target, truth_pattern(to, joined), to)
    elif isinstance(target, Pair):
        second = joined[-1] if len(joined) > 1 else combined(form, not truths[0], other)
        thread.write(target.first, joined[0], "pred")
        thread.write(target.second, second, "pred")
    else:
        thread.write(target, joined[0], "pred")


def _test(thread: Thread, instruction: Instruction) -> None:
    form = form_of(instruction.tokens, instruction.tokens[-1])
    target, source = instruction.operands
    thread.write(target, has_property(form, thread.read(source, form.kind)), "pred")


def _convert(thread: Thread, instruction: Instruction) -> None:
    to, come = [t for t in instruction.tokens if t in WIDTHS][:2]
    form = form_of(instruction.tokens, to)
    target, *sources = instruction.operands
    if form.has("pack"):
        kinds = (come, come, "b32")
        given = [thread.read(s, k) for s, k in zip(sources, kinds[: len(sources)], strict=True)]
        thread.write(target, packed(form, to, come, *given), "b32")
        return
    thread.write(target, converted(form, to, come, *(thread.read(s, come) for s in sources)), to)


def _select(thread: Thread, instruction: Instruction) -> None:
    kind = instruction.tokens[-1]
    target, a, b, choice = instruction.operands
    thread.write(target, thread.read(a if thread.read(choice, "pred") else b, kind), kind)


def _select_by_sign(thread: Thread, instruction: Instruction) -> None:
    kind, chooser = instruction.tokens[-2:]
    target, a, b, c = instruction.operands
    at_least_zero = holds("ge", form_of((), chooser), thread.read(c, chooser), 0)
    thread.write(target, thread.read(a if at_least_zero else b, kind), kind)


def _move(thread: Thread, instruction: Instruction) -> None:
    kind = instruction.tokens[-1]
    target, source = instruction.operands
    if isinstance(target, Vector):
        part = WIDTHS[kind] // len(target.items)
        whole = thread.read(source, kind)
        for k, item in enumerate(target.items):
            thread.write(item, whole >> (k * part), f"b{part}")
    elif isinstance(source, Vector):
        part = WIDTHS[kind] // len(source.items)
        pieces = [thread.read(item, f"b{part}") for item in source.items]
        thread.write(target, sum(p << (k * part) for k, p in enumerate(pieces)), kind)
    else:
        thread.write(target, thread.read(source, kind), kind)


def _change_space(thread: Thread, instruction: Instruction) -> None:
    """cvta: from an address of a space to the generic one, `.to` the other way."""
    kind = instruction.tokens[-1]
    target, source = instruction.operands
    window = sum(WINDOWS.get(token.partition("::")[0], 0) for token in instruction.tokens)
    shift = -window if "to" in instruction.tokens else window
    thread.write(target, thread.read(source, kind) + shift, kind)


def _is_of_space(thread: Thread, instruction: Instruction) -> None:
    """isspacep."""
    target, source = instruction.operands
    window = thread.read(source, "b64") >> 56 << 56
    wanted = WINDOWS.get(instruction.tokens[1].partition("::")[0], 0)
    thread.write(target, window == wanted, "pred")


def _load(thread: Thread, instruction: Instruction) -> None:
    kind = instruction.tokens[-1]
    size = WIDTHS[kind] // 8
    target, source = instruction.operands[:2]
    memory, address = thread.place(instruction, source)
    for k, item in enumerate(items(target)):
        thread.write(item, memory.read(address + k * size, size), kind)


def _store(thread: Thread, instruction: Instruction) -> None:
    kind = instruction.tokens[-1]
    size = WIDTHS[kind] // 8
    target, source = instruction.operands[:2]
    memory, address = thread.place(instruction, target)
    for k, item in enumerate(items(source)):
        memory.write(address + k * size, size, thread.read(item, kind))


def _atomic(thread: Thread, instruction: Instruction) -> None:
    kind, tokens = instruction.tokens[-1], instruction.tokens
    size = WIDTHS[kind] // 8
    results = instruction.operands[: instruction.opcode == "atom"]
    place, *sources = instruction.operands[len(results) :]
    memory, address = thread.place(instruction, place)
    name = next(t for t in tokens if t in _ATOMIC)
    flushing = kind == "f32" and memory is thread.space("global")
    form = form_of((name, "ftz") if flushing else (name,), kind)
    for k, values in enumerate(zip(*(items(source) for source in sources), strict=True)):
        old = memory.read(address + k * size, size)
        new = _ATOMIC[name](form, old, [thread.read(value, kind) for value in values])
        memory.write(address + k * size, size, new & (1 << WIDTHS[kind]) - 1)
        for target in results:
            thread.write(items(target)[k], old, kind)


def _ordinary(form: Form, old: int, values: list[int]) -> int:
    return compute(form, [old, *values])


_ATOMIC: dict[str, Callable[[Form, int, list[int]], int]] = {
    **dict.fromkeys(("add", "and", "or", "xor", "min", "max"), _ordinary),
    "exch": lambda _form, _old, values: values[0],
    "cas": lambda _form, old, values: values[1] if old == values[0] else old,
    "inc": lambda _form, old, values: 0 if old >= values[0] else old + 1,
    "dec": lambda _form, old, values: values[0] if old == 0 or old > values[0] else old - 1,
}


def _copy(thread: Thread, instruction: Instruction) -> None:
    """cp.async: done at once; waiting for copies then has nothing to do."""
    if "shared" not in (token.partition("::")[0] for token in instruction.tokens):
        return
    target, source, size, *rest = instruction.operands
    assert isinstance(target, Address) and isinstance(source, Address)
    count = thread.read(size, "b32")
    given = min(count, thread.read(rest[0], "b32")) if rest else count
    here, there = thread.space("global"), thread.space("shared")
    value = here.read(thread.address(source), given) if given else 0
    there.write(thread.address(target), count, value)


_STEPS: dict[str, Callable[[Thread, Instruction], None]] = {
    "setp": _compare,
    "set": _compare,
    "testp": _test,
    "cvt": _convert,
    "selp": _select,
    "slct": _select_by_sign,
    "mov": _move,
    "cvta": _change_space,
    "isspacep": _is_of_space,
    "ld": _load,
    "ldu": _load,
    "st": _store,
    "atom": _atomic,
    "red": _atomic,
    "cp": _copy,
    "mbarrier": reference_mbarrier.step,
}
