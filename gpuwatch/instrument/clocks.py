"""The clock that a thread reads when it begins, and how to keep it in half of its bits."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gpuwatch.instrument.code import Code
from gpuwatch.instrument.values import Value
from gpuwatch.probe.language import KERNEL
from gpuwatch.probe.model import Action, Assign, Expression, Helper, If, Probe, Program, Ptx, Read
from gpuwatch.probe.walk import flat, parts
from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Instruction

CLOCK = Helper("clock")
_CLOCK_REGISTER = "%clock64"


def entry_clocks(program: Program) -> frozenset[str]:
    """Registers of u64 that every thread sets to the SM's clock when it begins, in the first step
    of a probe there, and that nothing else writes."""
    types = {register.name: register.type for register in program.registers}
    written = [name for probe in program.probes for name in targets(probe.body)]
    return frozenset(
        name
        for probe in program.probes
        if probe.position == KERNEL and probe.before and probe.sample == 1
        for name in _first_clock(probe.body)
        if types.get(name) == "u64" and written.count(name) == 1
    )


def read_at_the_end_only(program: Program, names: Collection[str]) -> frozenset[str]:
    """Those of the registers that no probe reads but those behind the kernel."""
    elsewhere = {
        name
        for probe in program.probes
        if probe.position != KERNEL or probe.before
        for name in _reads(probe)
    }
    return frozenset(names) - elsewhere


def is_first_clock(instruction: Instruction) -> bool:
    """Whether PTX text of a probe reads the clock, whatever happens."""
    return (
        instruction.guard is None
        and instruction.tokens == ("mov", "u64")
        and isa.registers_of(instruction.operands[1:]) == [_CLOCK_REGISTER]
    )


def keep_low(code: Code, register: Value) -> None:
    """The low half of the clock into the register's short one."""
    code.emit(f"mov.u32 \t{short(register)}, %clock")


def restore(code: Code, registers: Collection[Value]) -> None:
    """All 64 bits of what `keep_low` kept, less than 2^32 cycles ago."""
    if not registers:
        return
    now = code.compute("u64", "mov.u64", _CLOCK_REGISTER)
    low = code.compute("u32", "cvt.u32.u64", now)
    for register in registers:
        passed = code.compute("u32", "sub.u32", low, short(register))
        wide = code.compute("u64", "cvt.u64.u32", passed)
        code.emit(f"sub.u64 \t{register.text}, {now}, {wide}")
    code.now = now


def clock(code: Code) -> str:
    """The reading that `restore` made, for the first who asks right behind it; "" for none."""
    now, code.now = code.now, ""
    return now


def short(register: Value) -> str:
    """The name of the register of 32 bits."""
    return f"{register.text}_low"


def _first_clock(body: tuple[Action, ...]) -> Iterator[str]:
    match body:
        case (Assign(target, value), *_) if value == CLOCK:
            yield target
        case (Ptx(_, (first, *_)), *_) if is_first_clock(first):
            yield from isa.registers_of(first.operands[:1])


def targets(body: tuple[Action, ...]) -> Iterator[str]:
    """What actions may write, as often as they do."""
    for action in flat(body):
        match action:
            case Assign(target):
                yield target
            case Ptx(_, instructions):
                for one in instructions:
                    yield from isa.registers_of(one.operands[:1])


def _reads(probe: Probe) -> Iterator[str]:
    for action in flat(probe.body):
        for expression in _expressions(action):
            yield from (one.register for one in parts(expression) if isinstance(one, Read))
        if isinstance(action, Ptx):
            for one in action.instructions:
                yield from isa.registers_of(one.operands[1:])
                if one.guard is not None:
                    yield one.guard.register


def _expressions(action: Action) -> tuple[Expression, ...]:
    match action:
        case Assign(_, value):
            return (value,)
        case If(test):
            return (test,)
        case Ptx():
            return ()
    return action.values
