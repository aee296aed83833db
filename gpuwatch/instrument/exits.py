"""The end of a thread and of a warp.

A warp ends with its last lane. The lanes that leave together run the probes' arithmetic; their
lowest lane finds out whether they complete the warp (at once if all are here, else by a count
of departed lanes in memory), and if so saves.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.instrument import clocks, indices, lower, saves
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.layout import COUNT_BYTES
from gpuwatch.instrument.scene import Scene, Shared
from gpuwatch.probe.model import Action, Save
from gpuwatch.probe.walk import saves as saves_of


def leave(code: Code, scenes: Sequence[Scene], departed: int) -> None:
    """Code of all after-kernel probes at one exit; buffer `departed` counts departed lanes."""
    shared = scenes[0].shared if scenes else None
    if shared:
        clocks.restore(code, [shared.registers[name] for name in sorted(shared.short)])
    parts = [_begin(code, scene, scenes[place:]) for place, scene in enumerate(scenes, 1)]
    for scene, rest, fields in parts:
        if scene.probe.level == "thread":
            _finish(code, scene, rest, fields)
    warps = [part for part in parts if part[0].probe.level == "warp"]
    if not warps:
        return
    end = code.names.label()
    aside = _unless_complete(code, end, scenes[0].shared, departed)
    for scene, rest, fields in warps:
        scene.alone = True
        _finish(code, scene, rest, fields)
    if aside:
        code.emit(f"bra \t{end}")
        code.lines += aside
    code.label(end)


def _begin(
    code: Code, scene: Scene, later: Sequence[Scene]
) -> tuple[Scene, Sequence[Action], list[str]]:
    """Lower what comes before the first save, its values included; gives what is left. A branch
    that saves is left too. What `later` probes write is copied before they do."""
    body = scene.probe.body
    for number, action in enumerate(body):
        if isinstance(action, Save):
            fields = lower.prepare(code, scene, action)
            return scene, body[number:], _kept(code, scene, fields, later)
        if any(saves_of([action])):
            return scene, body[number:], []
        lower.act(code, scene, [action])
    return scene, (), []


def _kept(code: Code, scene: Scene, fields: Sequence[str], later: Sequence[Scene]) -> list[str]:
    names = set[str]().union(*(clocks.targets(one.probe.body) for one in later))
    written = {value.text: value.type for name, value in scene.shared.registers.items()
               if name in names}  # fmt: skip
    return [
        code.compute(written[one], f"mov.{written[one]}", one) if one in written else one
        for one in fields
    ]


def _finish(code: Code, scene: Scene, rest: Sequence[Action], fields: list[str]) -> None:
    if rest and isinstance(rest[0], Save):
        lower.save(code, scene, rest[0], fields)
        rest = rest[1:]
    lower.act(code, scene, rest)


def _unless_complete(code: Code, end: str, shared: Shared, departed: int) -> list[str]:
    """Branch to `end`, but for one lane of the group that completes its warp: the lowest one.
    Gives lines to put where nothing runs into them: what lanes do that leave a part of a warp."""
    complete = code.names.label()
    if not indices.has_whole_warps(code):
        _count_out(code, complete, end, shared, departed)
        code.label(complete)
        return []
    some = code.names.label()
    part = code.compute("pred", "setp.ne.u32", indices.active(code), "-1")
    code.emit(f"@{part} bra \t{some}")
    forked = len(code.lines)
    with code.region():
        code.label(some)
        _count_out(code, complete, end, shared, departed)
        code.emit(f"bra \t{complete}")
    aside = code.lines[forked:]
    del code.lines[forked:]
    with code.region():
        other = code.compute("pred", "setp.ne.u32", indices.lane(code), "0")
        code.emit(f"@{other} bra \t{end}")
    code.label(complete)
    return aside


def _count_out(code: Code, complete: str, end: str, shared: Shared, departed: int) -> None:
    """Branch to `end` unless the lanes here complete their warp and this is the lowest of them;
    to `complete` where they are a whole one."""
    code.emit(f"@!{indices.leads(code)} bra \t{end}")
    leaving, lanes = indices.active_count(code), indices.lanes(code)
    warp = indices.warp(code)
    if not indices.has_whole_warps(code):
        whole = code.compute("pred", "setp.eq.u32", leaving, lanes)
        code.emit(f"@{whole} bra \t{complete}")
    with code.region():
        counters = saves.buffer_address(code, shared, departed)
        counter = saves.indexed(code, counters, warp, COUNT_BYTES)
        before = code.compute("u32", "atom.global.add.u32", f"[{counter}]", leaving)
        gone = code.compute("u32", "add.u32", before, leaving)
        partial = code.compute("pred", "setp.ne.u32", gone, lanes)
        code.emit(f"@{partial} bra \t{end}")
