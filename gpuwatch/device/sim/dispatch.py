"""The dispatcher of a warp: which lanes go on where.

Lanes with the smallest program counter go first, so that those behind catch up. Where loops may
poll, no lanes may go on for ever: after some cycles those that begin another round of such a loop
are hidden until others have had their turn; when all are, the warp pauses so that other warps get
theirs. Lanes elsewhere stay together, as behind a branch on hardware.
"""

from __future__ import annotations

from gpuwatch.device.sim.control import is_going
from gpuwatch.device.sim.emitter import Emitter
from gpuwatch.device.sim.ir import WARP, splat, vector
from gpuwatch.device.sim.layout import (
    EXITED_PC,
    MEETING_PC,
    PLAIN_QUANTUM,
    POLLING_QUANTUM,
)

COUNTERS = vector("i32")


def dispatch(e: Emitter) -> None:
    ir = e.ir
    ir.label("dispatch")
    before = ir.load(vector("i1"), "%mask") if e.program.polls else ""
    counters = ir.load(COUNTERS, "%counters")
    _choose(e, counters, counters)
    cycles, limit = ir.load("i64", "%cycles"), ir.load("i64", "%limit")
    within = ir.value(f"icmp sle i64 {cycles}, {limit}")
    ir.emit(f"br i1 {within}, label %ordinary, label %tired, !prof !0")
    ir.label("ordinary")
    bits = ir.bits_of(ir.load(vector("i1"), "%mask"))
    least = ir.load("i32", "%least")
    ir.branch(ir.value(f"icmp eq i32 {bits}, -1"), "whole", "part")
    for label, copy in (("whole", "F"), ("part", "M")):
        ir.label(label)
        cases = " ".join(f"i32 {k}, label %{copy}{k}" for k in range(len(e.program.blocks)))
        ir.emit(f"switch i32 {least}, label %halt [{cases}]")
    ir.label("halt")
    least = ir.load("i32", "%least")
    ir.branch(ir.value(f"icmp uge i32 {least}, {EXITED_PC}"), "done", "blocked")
    ir.label("tired")
    ir.branch(is_going(e), "tired.on", "stopped")
    ir.label("tired.on")
    if e.program.polls:
        _take_turns(e, before, counters)
    else:
        ir.store("i64", ir.value(f"add i64 {cycles}, {PLAIN_QUANTUM}"), "%limit")
        ir.jump("ordinary")


def _choose(e: Emitter, shown: str, counters: str) -> str:
    """Sets %least and %mask; gives the mask."""
    ir = e.ir
    least = ir.call("i32", f"llvm.vector.reduce.umin.v{WARP}i32", [(COUNTERS, shown)])
    mask = ir.compare("eq", "i32", counters, ir.broadcast("i32", least))
    ir.store(vector("i1"), mask, "%mask")
    ir.store("i32", least, "%least")
    return mask


def _take_turns(e: Emitter, before: str, counters: str) -> None:
    """Hides the lanes that ran last and poll again when their turn is over, and takes among the
    others. When the turn of lanes that do not poll is over, those hidden are seen again."""
    ir = e.ir
    cycles, turn = ir.load("i64", "%cycles"), ir.load("i64", "%turn")
    over = ir.value(f"icmp sgt i64 {cycles}, {turn}")
    again = ir.value(f"and i32 {ir.bits_of(before)}, {ir.bits_of(_at_polling(e, counters))}")
    old = ir.load("i32", "%hidden")
    some = ir.value(f"icmp ne i32 {again}, 0")
    more = ir.value(f"or i32 {old}, {again}")
    after = ir.value(f"select i1 {some}, i32 {more}, i32 0")
    hidden = ir.value(f"select i1 {over}, i32 {after}, i32 {old}")
    next_turn = ir.value(f"add i64 {cycles}, {POLLING_QUANTUM}")
    ended = ir.value(f"icmp ne i32 {ir.value(f'or i32 {again}, {old}')}, 0")
    ended = ir.value(f"and i1 {over}, {ended}")
    turn = ir.value(f"select i1 {ended}, i64 {next_turn}, i64 {turn}")
    ir.store("i64", turn, "%turn")
    runnable = ir.compare("ult", "i32", counters, splat("i32", MEETING_PC))
    seen = ir.value(f"xor i32 {hidden}, -1")
    visible = ir.value(f"and i32 {ir.bits_of(runnable)}, {seen}")
    ir.branch(ir.value(f"icmp eq i32 {visible}, 0"), "all.hidden", "some.visible")
    ir.label("some.visible")
    lanes = ir.value(f"bitcast i32 {visible} to {vector('i1')}")
    shown = ir.select(lanes, "i32", counters, splat("i32", -1))
    mask = ir.bits_of(_choose(e, shown, counters))
    hidden = ir.value(f"and i32 {hidden}, {ir.value(f'xor i32 {mask}, -1')}")
    ir.store("i32", hidden, "%hidden")
    none = ir.value(f"icmp eq i32 {hidden}, 0")
    ir.store("i64", ir.value(f"select i1 {none}, i64 {turn}, i64 -1"), "%limit")
    ir.jump("ordinary")
    ir.label("all.hidden")
    some = ir.value(f"icmp ne i32 {ir.bits_of(runnable)}, 0")
    ir.branch(some, "pause", "halt")


def _at_polling(e: Emitter, counters: str) -> str:
    """Lanes that are where a round of a polling loop begins."""
    found = splat("i1", 0)
    for block in sorted(e.program.polling):
        here = e.ir.compare("eq", "i32", counters, splat("i32", block))
        found = e.ir.binary("or", "i1", found, here)
    return found
