"""Which slot of a map a save goes to, as PTX."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.instrument import indices
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.scene import Scene, Shared
from gpuwatch.probe.language import KERNEL
from gpuwatch.probe.model import Map, SampleUnit


def slot(code: Code, scene: Scene, map_: Map) -> str:
    """u64 operand: the slot of `map_` that the running thread saves to. Of a map per SM it is
    the SM's number, which may lie beyond the map."""
    if map_.level == "site":
        return scene.site
    if map_.level == "line":
        return scene.line_slot or scene.site
    if map_.thinned:
        key = f"slot {map_.level} {map_.sample_unit} {map_.sample}"
        if key not in code.memo:
            code.memo[key] = _thinned(code, map_)
        return code.memo[key]
    return _WHOLE[map_.level](code)


def _sm(code: Code) -> str:
    return code.once("sm", "u64", "cvt.u64.u32", indices.special(code, "%smid"))


_WHOLE: dict[str, Callable[[Code], str]] = {
    "thread": indices.global_thread,
    "warp": indices.warp,
    "block": indices.block,
    "sm": _sm,
    "kernel": lambda _code: "0",
}
UNITS: dict[SampleUnit, Callable[[Code], str]] = {"warp": indices.warp, "block": indices.block}
"""u64: index of the unit that is sampled."""


def _thinned(code: Code, map_: Map) -> str:
    """As `gpuwatch.instrument.layout.index_of` reads it back."""
    unit = divided(code, UNITS[map_.sample_unit](code), map_.sample)
    if map_.level == map_.sample_unit:
        return unit
    if map_.sample_unit == "warp":
        lane = code.compute("u32", "and.b32", indices.thread(code), "31")
        return _within(code, unit, "32", lane)
    if map_.level == "thread":
        return _within(code, unit, indices.threads(code), indices.thread(code))
    return _within(code, unit, indices.warps(code), indices.warp_in_block(code))


def _within(code: Code, unit: str, size: str, offset: str) -> str:
    """u64: unit * size + offset, the last two u32."""
    wide = size if size.isdigit() else code.compute("u64", "cvt.u64.u32", size)
    more = code.compute("u64", "cvt.u64.u32", offset)
    return code.compute("u64", "mad.lo.u64", unit, wide, more)


def divided(code: Code, value: str, by: int) -> str:
    """u64: value // by."""
    if by & (by - 1) == 0:
        return code.compute("u64", "shr.u64", value, str(by.bit_length() - 1))
    return code.compute("u64", "div.u64", value, str(by))


def sampled(code: Code, scene: Scene) -> str | None:
    """pred: whether the probe runs for this warp or block; None if it runs for all."""
    sample, unit = scene.probe.sample, scene.probe.sample_unit
    if sample == 1:
        return None
    kept = scene.shared.sampled.get((sample, unit))
    return kept or _is_sampled(code, sample, unit)


def keep_sampled(code: Code, shared: Shared) -> list[str]:
    """At a kernel's entry, decide once about each sample that probes at instructions have. Gives
    the `.reg` lines of the predicates that keep it."""
    lines = []
    for probe in shared.program.probes:
        key = probe.sample, probe.sample_unit
        if probe.sample > 1 and probe.position != KERNEL and key not in shared.sampled:
            name = f"{shared.names.registers}s{len(shared.sampled)}"
            code.emit(f"mov.pred \t{name}, {_is_sampled(code, *key)}")
            shared.sampled[key] = name
            lines.append(f"\t.reg .pred \t{name};")
    return lines


def _is_sampled(code: Code, sample: int, unit: SampleUnit) -> str:
    key = f"sampled {unit} {sample}"
    if key not in code.memo:
        index = UNITS[unit](code)
        if sample & (sample - 1) == 0:
            rest = code.compute("u64", "and.b64", index, str(sample - 1))
        else:
            rest = code.compute("u64", "rem.u64", index, str(sample))
        code.memo[key] = code.compute("pred", "setp.eq.u64", rest, "0")
    return code.memo[key]
